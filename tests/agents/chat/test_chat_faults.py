"""Replies that are not actions, and servers that fail: who is at fault, and what is said about it."""

import gzip
import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from time import sleep

import pytest
from chat_episodes import asking, info, view
from strict_servers import KEY, WIRES, Said, StrictChat, StrictMessages, StrictResponses, acts, say

from proctor.agents.chat import api
from proctor.agents.chat.client import retry_after_s
from proctor.agents.chat.policy import ChatPolicy
from proctor.core.errors import AgentFault, AgentUnavailable, UserError

GO = acts("FORWARD")
ERROR = {"error": {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}


@pytest.fixture
def naps(monkeypatch):
    """Do not wait between retries, but note how long it would have been."""
    slept = []
    monkeypatch.setattr(api.time, "sleep", slept.append)
    return slept


BAD_REPLIES = {
    "refusal": Said(refusal="I can't help with that."),
    "no_action": Said("I would go forward, since the door is open."),
    "unknown_tool": Said(calls=(("fly", {"actions": ["FORWARD"]}),)),
    "invalid_action": acts("JUMP"),
    "wrong_action_length": acts(*["FORWARD"] * 9),
    "contradicting_actions": Said(calls=(("act", {"actions": ["LEFT"]}), ("act", {"actions": ["RIGHT"]}))),
    "invalid_arguments": Said(calls=(("act", {"action": "FORWARD"}),)),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", BAD_REPLIES)
def test_a_bad_reply_can_be_repaired_once(wire, kind, monkeypatch):
    bad = BAD_REPLIES[kind]
    with wire(bad, acts("LEFT"), bad, bad) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 2
        assert policy.usage().repairs == 1
        assert "That was not usable: " in server.raw[1].decode()
        with pytest.raises(AgentFault, match=r"after 1 repair turn\)") as caught:
            policy.act(view())
        assert caught.value.kind == kind
        assert not isinstance(caught.value, AgentUnavailable)
        assert len(server.seen) == 4
        assert policy.usage().requests == 2


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (Said(calls=(("act", '{"actions": ["FORW'),)), "truncated_reply"),
        (Said(calls=(("act", '{"actions": ["FORWARD" oops}'),)), "invalid_arguments"),
        (Said(calls=(("act", "[1]"),)), "invalid_arguments"),
        (Said(calls=(("act", "[" * 100_000),)), "truncated_reply"),
        (Said("I am thinking about", stop="length"), "truncated_reply"),
        (Said("", stop="content_filter"), "refusal"),
        (Said(None, stop="tool_calls"), "no_action"),  # vLLM does that
        (Said(calls=(("act", {"actions": []}),)), "no_action"),
        (
            Said(calls=(("act", {"actions": ["STOP"]}), ("act", {"actions": ["LEFT"]}))),
            "contradicting_actions",
        ),
        (Said(calls=(("act", {"actions": ["LEFT"]}),) * 40), "contradicting_actions"),
        (Said(calls=(("act", {"actions": "a" * 100}),)), "invalid_action"),
    ],
)
def test_kinds_of_bad_replies(said, kind, monkeypatch):
    with StrictChat(said) as server, asking(server, monkeypatch, repairs=0) as policy:
        with pytest.raises(AgentFault) as caught:
            policy.act(view())
        assert caught.value.kind == kind
        assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("wire", "stop"), [(StrictResponses, "max_output_tokens"), (StrictMessages, "max_tokens")]
)
def test_truncation_on_other_wires(wire, stop, monkeypatch):
    with wire(Said("I am", stop=stop)) as server, asking(server, monkeypatch, repairs=0) as policy:
        with pytest.raises(AgentFault) as caught:
            policy.act(view())
        assert caught.value.kind == "truncated_reply"


def test_a_cut_reply_whose_call_is_whole_counts(monkeypatch):
    cut = Said(calls=(("act", {"actions": ["LEFT"]}),), stop="length")
    with StrictChat(cut) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 2


# Servers that fail for a while


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_busy_servers_are_asked_again(wire, status, monkeypatch, naps):
    busy = (status, b"<html>busy</html>", {})
    with wire(busy, busy, GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1
        assert policy.usage().requests == 3
        assert 0.25 <= naps[0] <= 0.5 <= naps[1] <= 1.0
        assert server.raw[0] == server.raw[2]


def test_retry_after_is_honoured(monkeypatch, naps):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=18), usegmt=True)
    busy = [(429, ERROR, {"retry-after": "3"}), (503, ERROR, {"retry-after": soon})]
    with StrictChat(*busy, GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1
    assert naps[0] == 3.0
    assert 1 < naps[1] <= 18


def test_a_huge_retry_after_ends_the_episode(monkeypatch, naps):
    with (
        StrictChat((429, ERROR, {"retry-after": "86400"})) as server,
        asking(server, monkeypatch) as policy,
        pytest.raises(AgentUnavailable, match="asks to wait 86400 s") as caught,
    ):
        policy.act(view())
    assert caught.value.is_outage
    assert naps == []


@pytest.mark.parametrize("header", ["", "soon", "nan", "-5", "1e400", "Wed, 99 Foo 2026 99:99:99 GMT"])
def test_odd_retry_after(header):
    found = retry_after_s(header)
    assert found is None or found >= 0


def test_retries_end(monkeypatch, naps):
    with StrictChat(*[(503, ERROR, {})] * 9) as server, asking(server, monkeypatch, max_retries=4) as policy:
        with pytest.raises(AgentUnavailable, match=r"answered 503: slow down \(asked 5 times\)") as caught:
            policy.act(view())
        assert (caught.value.kind, caught.value.is_outage) == ("model_overloaded", True)
        assert len(naps) == 4
        assert policy.usage().requests == 5


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": "Unauthorized"}, "key_refused"),
        (403, {"error": {"message": "no", "code": "x"}}, "key_refused"),
        (402, {"error": {"message": "no credit", "code": 402}}, "no_credit"),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, "no_credit"),
        (400, {"type": "error", "error": {"type": "billing_error", "message": "no"}}, "no_credit"),
        (400, {"error": {"message": "maximum context length", "param": None}}, "request_refused"),
        (404, {"detail": "Not Found"}, "request_refused"),
        (413, b"", "request_refused"),
        (200, {"error": {"message": "no such provider", "code": 400}}, "request_refused"),
        (302, b"", "unreadable_reply"),
    ],
)
def test_what_does_not_get_better_is_not_asked_again(status, body, kind, monkeypatch, naps):
    with StrictChat((status, body, {})) as server, asking(server, monkeypatch) as policy:
        with pytest.raises(AgentUnavailable, match="fix: ") as caught:
            policy.act(view())
        assert (caught.value.kind, caught.value.is_outage) == (kind, True)
        assert len(server.seen) == 1
    assert naps == []


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "provider failed", "code": 502}},
        {"error": {"message": "provider failed"}},
        {"id": "x", "object": "chat.completion"},
        {"choices": []},
        b'{"choices": [{"mess',
        b"<html>welcome</html>",
        b"[" * 50_000,
        b"\xff\xfe",
    ],
    ids=lambda body: str(body)[:20],
)
def test_a_200_that_is_no_reply_is_asked_again(body, monkeypatch, naps):
    with StrictChat((200, body, {}), GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1
    assert len(naps) == 1


def test_a_failed_response_is_asked_again(monkeypatch, naps):
    error = {"code": "server_error", "message": "oops"}
    failed = {"id": "r", "object": "response", "status": "failed", "error": error, "output": []}
    with StrictResponses((200, failed, {}), GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1


def test_a_filtered_request_is_a_refusal(monkeypatch):
    body = {"error": {"message": "filtered", "code": "content_filter"}}
    with (
        StrictChat(*[(400, body, {})] * 2) as server,
        asking(server, monkeypatch) as policy,
        pytest.raises(AgentFault) as caught,
    ):
        policy.act(view())
    assert caught.value.kind == "refusal"


def test_the_next_replica_is_asked(monkeypatch, naps):
    with StrictChat((503, ERROR, {})) as busy, StrictChat(GO) as free:
        monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
        with asking(busy, monkeypatch, begin=False) as policy:
            policy.close()
        policy = ChatPolicy(f"{busy.address},{free.address}", model="gpt-x")
        from chat_episodes import info  # noqa: PLC0415

        policy.reset(info())
        assert policy.act(view()) == 1
        policy.close()


# Hostile servers


def good_reply():
    arguments = json.dumps({"actions": ["LEFT"]})
    message = {"tool_calls": [{"function": {"name": "act", "arguments": arguments}}]}
    return json.dumps({"choices": [{"message": message}]}).encode()


def drip(handler):
    """Send a good reply, so slowly that each read is quick but the whole takes 4 s."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    for _ in range(100):
        handler.wfile.write(b" ")
        sleep(0.04)
    handler.wfile.write(good_reply())


def drip_headers(handler):
    """Send headers like that."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(100):
        handler.wfile.write(f"x-{number}: y\r\n".encode())
        sleep(0.04)
    handler.wfile.write(b"\r\n" + good_reply())


def flood(handler):
    """Send 10 MB of text."""
    say(handler, 200, b'{"choices": [{"message": {"content": "' + b"a" * 10_000_000 + b'"}}]}')


def flood_of_errors(handler):
    """Send a status that says all, and 10 MB of text."""
    say(handler, 503, b"a" * 10_000_000)


def endless_error(handler):
    """Send a status that says all, and text without an end."""
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 503 Busy\r\n\r\n")
    for _ in range(100):
        handler.wfile.write(b" ")
        sleep(0.04)


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def hang_up_halfway(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{")
    handler.connection.shutdown(socket.SHUT_RDWR)


def hang(handler):
    handler.server.stopped.wait(20)


@pytest.mark.parametrize(("hostile", "kind"), [(drip, "reply_timeout"), (flood, "reply_too_large")])
def test_replies_without_an_end_are_the_agents_fault(hostile, kind, monkeypatch):
    limit = {"timeout_s": 0.5} if hostile is drip else {}
    with (
        StrictChat(hostile, hostile) as server,
        asking(server, monkeypatch, **limit) as policy,
        pytest.raises(AgentFault, match="after 1 repair turn") as caught,
    ):
        policy.act(view())
    assert caught.value.kind == kind
    assert not isinstance(caught.value, AgentUnavailable)


@pytest.mark.parametrize("hostile", [flood_of_errors, endless_error])
def test_a_busy_server_that_says_too_much_is_still_busy(hostile, monkeypatch, naps):
    with StrictChat(hostile, acts("LEFT")) as server, asking(server, monkeypatch, timeout_s=1) as policy:
        assert policy.act(view()) == 2
        assert policy.usage().repairs == 0
    assert len(naps) == 1


@pytest.mark.parametrize(
    "said",
    [
        Said(calls=(("act", '{"actions": ["LEFT"], "note": "\\ud83d"}'),)),
        Said('{"actions": ["LEFT"], "note": "\\ud83d"}'),
        (200, good_reply()[:-1] + b', "x": "\\ud83d"}', {}),
        (200, good_reply()[:-1] + b', "x": "\xff"}', {}),
        (200, b"\xef\xbb\xbf" + good_reply(), {}),
    ],
    ids=["arguments", "text", "body", "bytes", "mark"],
)
def test_halves_of_characters_do_no_harm(said, monkeypatch):
    with StrictChat(said, GO) as server, asking(server, monkeypatch) as policy:
        assert [policy.act(view()), policy.act(view())] == [2, 1]
        assert policy.usage().repairs == 0
        for line in gzip.decompress(policy.transcript()).splitlines():
            json.loads(line)


@pytest.mark.parametrize("code", ["²", "9" * 80, [1], {}])
def test_odd_codes_of_errors(code, monkeypatch, naps):
    odd = (200, {"error": {"code": code, "message": "odd"}}, {})
    with StrictChat(odd, GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1


def test_a_redirect_that_leads_nowhere(monkeypatch, naps):
    redirect = (302, {}, {"location": "javascript:1"})
    with StrictChat(redirect, acts("LEFT")) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 2


def test_cookies_are_not_kept(monkeypatch):
    cookie = {"set-cookie": "a=\xff"}
    replies = (200, good_reply(), cookie), (200, good_reply(), cookie)
    with StrictChat(*replies) as server, asking(server, monkeypatch) as policy:
        assert [policy.act(view()), policy.act(view())] == [2, 2]


@pytest.mark.parametrize("slow", [drip, drip_headers])
def test_what_is_slow_but_in_time_counts(slow, monkeypatch):
    with StrictChat(slow) as server, asking(server, monkeypatch, timeout_s=60, repairs=0) as policy:
        assert policy.act(view()) == 2


def test_a_flood_can_be_repaired(monkeypatch):
    with StrictChat(flood, acts("LEFT")) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 2


@pytest.mark.parametrize("hostile", [hang, drip_headers])
def test_silence_is_unavailability(hostile, monkeypatch, naps):
    with StrictChat(hostile, hostile) as server:
        server._http.stopped = threading.Event()
        with asking(server, monkeypatch, timeout_s=0.5, max_retries=1) as policy:
            with pytest.raises(AgentUnavailable, match=r"no reply within 0\.5 s") as caught:
                policy.act(view())
            server._http.stopped.set()
    assert (caught.value.kind, caught.value.is_outage) == ("model_unreachable", True)


@pytest.mark.parametrize("hostile", [hang_up, hang_up_halfway])
def test_broken_connections_are_tried_again(hostile, monkeypatch, naps):
    with StrictChat(hostile, GO) as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 1
    assert len(naps) == 1


def test_a_server_that_has_gone(monkeypatch, naps):
    with StrictChat(acts("LEFT")) as server:
        monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
        with asking(server, monkeypatch, max_retries=2) as policy:
            policy.act(view())
            server.__exit__()
            with pytest.raises(AgentUnavailable, match="is the server started") as caught:
                policy.act(view())
            server.__exit__ = lambda *_: None
    assert caught.value.is_outage


# Before a run


@pytest.mark.parametrize("wire", WIRES)
def test_check_costs_nothing_where_models_are_listed(wire, monkeypatch):
    with wire() as server, asking(server, monkeypatch, begin=False) as policy:
        policy.check()
        assert server.asked == ["GET /v1/models"]


@pytest.mark.parametrize("wire", WIRES)
def test_check_asks_for_a_few_tokens_where_they_are_not(wire, monkeypatch):
    with wire(Said("OK")) as server, asking(server, monkeypatch, begin=False) as policy:
        server.lists_models = False
        policy.check()
        assert server.asked == ["GET /v1/models", f"POST /v1{server.path}"]


@pytest.mark.parametrize("wire", WIRES)
def test_check_names_a_wrong_model(wire, monkeypatch):
    with (
        wire() as server,
        asking(server, monkeypatch, begin=False, model="gpt-y") as policy,
        pytest.raises(UserError, match=r"answered 404: .*did you mean 'gpt-x'.*models there: gpt-x"),
    ):
        policy.check()


@pytest.mark.parametrize("wire", WIRES)
def test_check_names_a_wrong_key_but_never_says_it(wire, monkeypatch):
    with (
        wire(key="another") as server,
        asking(server, monkeypatch, begin=False) as policy,
        pytest.raises(
            UserError, match=r"answered 401.*PROCTOR_CHAT_KEY in the environment; it is ref"
        ) as caught,
    ):
        policy.check()
    assert KEY not in str(caught.value)


def test_check_says_that_no_key_is_set(monkeypatch):
    with StrictChat() as server:
        monkeypatch.delenv("PROCTOR_CHAT_KEY", raising=False)
        policy = ChatPolicy(server.address, model="gpt-x")
        with pytest.raises(UserError, match="none is set"):
            policy.check()
        policy.close()


def test_check_of_a_page_for_people(monkeypatch):
    class Page(StrictChat):
        def answer_get(self, handler):
            say(handler, 200, b"<html>welcome</html>")

        answer_post = answer_get

    with (
        Page() as server,
        asking(server, monkeypatch, begin=False) as policy,
        pytest.raises(
            UserError, match=r"with an HTML page, not as a model's API does. fix: is this the addr"
        ),
    ):
        policy.check()


def test_check_of_a_websocket_server(monkeypatch):
    from websockets.sync.server import serve  # noqa: PLC0415

    with serve(lambda connection: None, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.socket.getsockname()[1]
        policy = ChatPolicy(f"chat+http://127.0.0.1:{port}/v1", model="m")
        with pytest.raises(UserError, match="fix: "):
            policy.check()
        policy.close()


def test_check_of_a_port_where_nobody_is(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        policy = ChatPolicy(f"chat+http://127.0.0.1:{free.getsockname()[1]}/v1", model="m")
        with pytest.raises(UserError, match="is the server started, and are host and port right"):
            policy.check()
        policy.close()


def test_check_of_a_path_without_v1(monkeypatch):
    with StrictChat() as server:
        monkeypatch.setenv("PROCTOR_CHAT_KEY", KEY)
        policy = ChatPolicy(server.address.removesuffix("/v1"), model="gpt-x")
        with pytest.raises(UserError, match=r"answered 404.*does the address end with /v1"):
            policy.check()
        policy.close()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "said",
    [
        Said(refusal=f"not with {KEY}"),
        Said(calls=((KEY, {}),)),
        Said(calls=(("act", {"actions": [KEY]}),)),
        Said(calls=(("act", json.dumps({"actions": [KEY]})),)),
    ],
    ids=["refusal", "tool", "action", "arguments"],
)
def test_a_model_that_repeats_the_key(wire, said, monkeypatch):
    with wire(said, said) as server, asking(server, monkeypatch) as policy:
        with pytest.raises(AgentFault) as caught:
            policy.act(view())
        assert KEY not in str(caught.value)
        assert KEY.encode() not in gzip.decompress(policy.transcript())


@pytest.mark.parametrize("key", ["x", "null", "act"])
def test_a_short_key_is_not_looked_for(key, monkeypatch):
    with StrictChat(GO, key=key) as server, asking(server, monkeypatch, begin=False):
        monkeypatch.setenv("PROCTOR_CHAT_KEY", key)
        policy = ChatPolicy(server.address, model=server.model)
        policy.reset(info())
        assert policy.act(view()) == 1
        lines = [json.loads(line) for line in gzip.decompress(policy.transcript()).splitlines()]
        assert [line["kind"] for line in lines] == ["picture", "request", "reply", "decision"]
        policy.close()
