"""What a chat policy asks on each wire, and what it does with the answers."""

import gzip
import hashlib
import json

import pytest
from chat_episodes import asking, info, view
from strict_servers import KEY, PROFILES, WIRES, Said, StrictChat, StrictMessages, StrictResponses, acts

from proctor.agents.chat.policy import ChatPolicy
from proctor.core.errors import AgentFault, UserError
from proctor.core.types import Usage

GO = acts("FORWARD", "FORWARD", "LEFT", note="left the bedroom")


def texts(body):
    return json.dumps(body)


@pytest.mark.parametrize("wire", WIRES)
def test_one_reply_gives_several_actions(wire, monkeypatch):
    with wire(GO, acts("STOP")) as server, asking(server, monkeypatch) as policy:
        assert [policy.act(view(step)) for step in range(4)] == [1, 1, 2, 0]
        assert len(server.seen) == 2
        first, second = map(texts, server.seen)
        assert "Go to the sofa." in first
        assert "Step 1 of 50, decision 1 of at most 50" in first
        assert "(nothing yet)" in first
        assert r"1-3: FORWARD FORWARD LEFT \"left the bedroom\"" in second
        assert "Step 4 of 50, decision 2" in second
        assert first.count("/9j/") == 1  # JPEG in base64
        assert second.count("/9j/") == 2
        assert "What you saw before step 1:" in second
        assert "What you see now:" in second


@pytest.mark.parametrize("profile", PROFILES)
def test_servers_of_chat_completions(profile, monkeypatch):
    with StrictChat(GO, profile=profile) as server, asking(server, monkeypatch) as policy:
        policy.check()
        assert policy.act(view()) == 1
        assert policy.usage() == Usage(
            decisions=1,
            requests=1,
            input_tokens=1200,
            cached_tokens=1000 if profile in ("openai", "llamacpp") else 0,
            output_tokens=20,
        )
        assert policy.usage() is None


@pytest.mark.parametrize("wire", WIRES)
def test_tokens_and_cost(wire, monkeypatch, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"gpt-x": {"input": 2.0, "cached": 0.5, "output": 10.0}}')
    with wire(GO) as server, asking(server, monkeypatch, prices=str(prices)) as policy:
        policy.act(view())
        used = policy.usage()
    assert (used.input_tokens, used.cached_tokens, used.output_tokens) == (1200, 1000, 20)
    assert used.cost_usd == pytest.approx((200 * 2.0 + 1000 * 0.5 + 20 * 10.0) / 1e6)


def test_no_more_tokens_are_cached_than_there_are(monkeypatch):
    message = {"tool_calls": [{"function": {"name": "act", "arguments": '{"actions": ["FORWARD"]}'}}]}
    usage = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}
    reply = (200, {"choices": [{"message": message}], "usage": usage}, {})
    with StrictChat(reply) as server, asking(server, monkeypatch) as policy:
        policy.act(view())
        assert policy.usage().cached_tokens == 10


@pytest.mark.parametrize("wire", WIRES)
def test_options_are_sent_as_each_wire_has_them(wire, monkeypatch):
    options = {"effort": "low", "max_tokens": 99, "tool_choice": "required"}
    with wire(GO) as server, asking(server, monkeypatch, **options) as policy:
        policy.act(view())
        body = server.seen[0]
    if wire is StrictChat:
        assert (body["reasoning_effort"], body["max_tokens"], body["tool_choice"]) == ("low", 99, "required")
    elif wire is StrictResponses:
        assert (body["reasoning"], body["max_output_tokens"]) == ({"effort": "low"}, 99)
        assert body["tool_choice"] == "required"
    else:
        assert (body["output_config"], body["max_tokens"]) == ({"effort": "low"}, 99)
        assert body["tool_choice"] == {"type": "any"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_can_be_named(wire, monkeypatch):
    with wire(GO) as server, asking(server, monkeypatch, tool_choice="act") as policy:
        assert policy.act(view()) == 1


def test_seed_temperature_and_detail(monkeypatch):
    options = {"seed": 3, "temperature": 0, "detail": "low"}
    with StrictChat(GO) as server, asking(server, monkeypatch, **options) as policy:
        policy.act(view())
        body = server.seen[0]
    assert (body["seed"], body["temperature"]) == (3, 0)
    assert body["messages"][1]["content"][1]["image_url"]["detail"] == "low"


@pytest.mark.parametrize(
    ("scheme", "name"), [("responses", "seed"), ("anthropic", "seed"), ("anthropic", "detail")]
)
def test_parameters_that_a_wire_does_not_have(scheme, name):
    value = {"seed": 1, "detail": "low"}[name]
    with pytest.raises(UserError, match=f"{name}: the API of .* has no such parameter"):
        ChatPolicy(f"chat+{scheme}+http://127.0.0.1:1/v1", model="m", **{name: value})


@pytest.mark.parametrize("wire", WIRES)
def test_refused_parameters_are_left_out_and_remembered(wire, monkeypatch):
    """Of Anthropic's, the types know no temperature: the server refuses it by itself."""
    with wire(GO, GO) as server, asking(server, monkeypatch, temperature=0.5) as policy:
        if wire is not StrictMessages:
            server.forbidden = ("temperature",)
        for _ in range(2):
            for _ in range(3):
                policy.act(view())
        assert len(server.seen) == 2
        assert len(server.raw) == 3
        assert policy.usage().requests == 3


def test_reasoning_models_get_max_completion_tokens(monkeypatch):
    with StrictChat(GO, model="gpt-5.6") as server, asking(server, monkeypatch, max_tokens=77) as policy:
        policy.act(view())
        assert server.seen[0]["max_completion_tokens"] == 77
        assert "max_tokens" not in server.seen[0]


def test_models_without_tools_are_asked_for_json(monkeypatch):
    said = Said('Sure!\n```json\n{"name": "act", "arguments": {"actions": ["RIGHT"], "note": "n"}}\n```')
    alone = Said('{"actions": ["LEFT"], "note": "n"}')
    with StrictChat(said, alone) as server, asking(server, monkeypatch, tool_choice="none") as policy:
        assert [policy.act(view()), policy.act(view())] == [3, 2]
        assert "tools" not in server.seen[0]
        assert "Answer with one JSON object" in texts(server.seen[0])


def test_calls_that_a_server_passes_on_as_text(monkeypatch):
    said = Said('<tool_call>{"name": "act", "arguments": {"actions": ["RIGHT"]}}</tool_call>')
    with StrictChat(said, profile="vllm") as server, asking(server, monkeypatch) as policy:
        assert policy.act(view()) == 3


def test_several_calls_are_done_in_order(monkeypatch):
    calls = (("act", {"actions": ["LEFT"]}), ("act", {"actions": ["FORWARD", "STOP"]}))
    with StrictChat(Said(calls=calls)) as server, asking(server, monkeypatch) as policy:
        assert [policy.act(view()) for _ in range(3)] == [2, 1, 0]


def test_nothing_is_done_after_stop(monkeypatch):
    with (
        StrictChat(acts("FORWARD", "STOP", "LEFT"), acts("RIGHT")) as server,
        asking(server, monkeypatch) as policy,
    ):
        assert [policy.act(view()) for _ in range(3)] == [1, 0, 3]


@pytest.mark.parametrize("wire", WIRES)
def test_the_same_replies_make_the_same_requests(wire, monkeypatch):
    def digest():
        said = [GO, Said("let me think"), acts("LEFT"), acts("STOP")]
        with wire(*said) as server, asking(server, monkeypatch) as policy:
            for step in range(5):
                policy.act(view(step))
            return hashlib.sha256(b"".join(server.raw)).hexdigest(), len(server.raw)

    assert digest() == digest()
    assert digest()[1] == 4


def test_history_and_pictures_are_limited(monkeypatch):
    with StrictChat(*[acts("FORWARD", note=f"note {n}") for n in range(6)]) as server:
        with asking(server, monkeypatch, history=2, pictures=1) as policy:
            for step in range(6):
                policy.act(view(step))
        last = texts(server.seen[-1])
    assert "(3 earlier decisions)" in last
    assert "note 2" not in last
    assert "note 3" in last
    assert last.count("/9j/") == 1


def test_without_pictures(monkeypatch):
    with StrictChat(GO) as server, asking(server, monkeypatch, pictures=0) as policy:
        policy.act(view())
        assert "image_url" not in texts(server.seen[0])


def test_decisions_are_limited(monkeypatch):
    with (
        StrictChat(acts("LEFT"), acts("LEFT")) as server,
        asking(server, monkeypatch, max_decisions=1) as policy,
    ):
        policy.act(view())
        assert "decision 1 of at most 1" in texts(server.seen[0])
        with pytest.raises(AgentFault, match="the 1 decisions") as caught:
            policy.act(view())
    assert caught.value.kind == "decision_limit"


def test_what_is_told_of_the_camera(monkeypatch):
    with StrictChat(GO, GO) as server, asking(server, monkeypatch) as policy:
        policy.act(view())
        policy.reset(info(camera=None))
        policy.act(view())
        told, untold = (body["messages"][0]["content"] for body in server.seen)
    assert "from 1.25 m above the floor. The picture is 75 degrees wide and 60 degrees high." in told
    assert "The floor nearer than 2.2 m is below the picture." in told
    assert "FORWARD drives 0.25 m, LEFT and RIGHT turn 15 degrees" in untold
    assert "camera looks" not in untold


def test_an_exam_without_a_chat_task(monkeypatch):
    action = {"type": "joint_position", "qpos": [0.1]}
    said = Said(calls=(("act", {"action": action, "note": "n"}),))
    with StrictChat(said) as server, asking(server, monkeypatch, begin=False) as policy:
        policy.reset(info(chat="", actions=("joint_position",), details={"goal": "far"}))
        assert policy.act(view(joints=view()["rgb"][0, :2, 0].astype(float), odom={"x": 1.0})) == action
        sent = texts(server.seen[0])
    assert "one of joint_position" in sent
    assert r"{\"goal\": \"far\"}" in sent
    assert "joints: [" in sent
    assert r"odom: {\"x\":1.0}" in sent


def lines_of(policy):
    return [json.loads(line) for line in gzip.decompress(policy.transcript()).splitlines()]


@pytest.mark.parametrize("wire", WIRES)
def test_the_transcript_tells_all_but_the_key(wire, monkeypatch):
    echo = (500, {"error": {"message": f"bad key {KEY}", "type": "x", "param": None, "code": None}}, {})
    with wire(GO, echo, acts("STOP")) as server, asking(server, monkeypatch) as policy:
        for step in range(4):
            policy.act(view(step))
        packed = policy.transcript()
        assert policy.transcript() == b""
    raw = gzip.decompress(packed)
    assert KEY.encode() not in raw
    lines = [json.loads(line) for line in raw.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds == [
        *("picture", "request", "reply", "decision"),
        *("picture", "request", "reply", "request", "reply", "decision"),
    ]
    pictures = {line["sha256"] for line in lines if line["kind"] == "picture"}
    assert len(pictures) == 2
    for line in lines:
        if line["kind"] == "request":
            assert "/9j/" not in json.dumps(line["body"])
            assert "$picture:" in json.dumps(line["body"])
    failed = lines[6]
    assert (failed["status"], failed["step"], failed["attempt"]) == (500, 3, 1)
    assert lines[2]["usage"]["input_tokens"] == 1200
    decision = lines[3]
    assert (decision["actions"], decision["note"]) == (["FORWARD", "FORWARD", "LEFT"], "left the bedroom")
    assert "Go to the sofa." in decision["prompt"]
    assert set(decision["pictures"]) <= pictures


def test_no_transcript_without_wire(monkeypatch):
    with StrictChat(GO) as server, asking(server, monkeypatch, wire=False) as policy:
        policy.act(view())
        assert policy.transcript() == b""


def test_the_transcript_begins_anew_with_each_episode(monkeypatch):
    with StrictChat(GO, acts("STOP")) as server, asking(server, monkeypatch) as policy:
        policy.act(view())
        policy.reset(info())
        assert policy.act(view()) == 0
        assert [line["kind"] for line in lines_of(policy)] == ["picture", "request", "reply", "decision"]
