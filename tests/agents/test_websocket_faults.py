"""Agents that break down, lie and attack: each episode ends with its own reason, and the next one is fine."""

import asyncio
import contextlib
import errno
import gc
import json
import math
import re
import ssl
import threading
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from served_agents import (
    HELLO,
    MSGPACK,
    RIGHT,
    Agent,
    Conversation,
    accept_upgrade,
    episode,
    free_port,
    listening,
    right,
    served,
)

from proctor.agents import connection
from proctor.agents.handshake import Address, open_session
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import AgentFault, EvaluatorError, UserError
from proctor.core.types import EpisodeInfo, Vector3
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator

PATIENT_S, HASTY_S = 20.0, 0.4
"""For agents that are wrong, and for agents that are late."""


class WideView(MockEnv):
    """A world with so much to see that no buffer of the system takes it."""

    def reset(self, episode):
        return super().reset(episode) | {"view": np.zeros(64 << 20, np.uint8)}


def at_second_step(answer):
    return lambda talk: right(talk) if talk.step == 0 else answer(talk)


def says(action, **changes):
    return lambda talk: talk.reply(action, **changes)


def text(frame):
    return lambda talk: talk.connection.send(frame)


def raw(data):
    return lambda talk: talk.raw(data)


def twice(talk):
    right(talk)
    right(talk)


def drip(talk):
    """Begin a frame of 100 bytes and send one byte of it at a time."""
    talk.raw(b"\x81\x64")
    wait = threading.Event()
    with contextlib.suppress(OSError):  # the evaluator has had enough
        for _ in range(100):
            talk.raw(b" ")
            wait.wait(HASTY_S / 20)


def ping_only(talk):
    wait = threading.Event()
    with contextlib.suppress(OSError):
        for _ in range(40):
            talk.raw(b"\x89\x02hi")
            wait.wait(HASTY_S / 20)


def drip_fragments(talk):
    talk.raw(b"\x01\x01{")
    wait = threading.Event()
    with contextlib.suppress(OSError):
        for _ in range(100):
            talk.raw(b"\x00\x01 ")
            wait.wait(HASTY_S / 20)


def late(talk):
    """Answer when nobody waits any more."""
    threading.Event().wait(2 * HASTY_S)
    right(talk)


def crash(talk):
    raise RuntimeError("out of memory")


def packed(*parts):
    """A msgpack map of type `action` and these parts."""
    return bytes([0x80 + 1 + len(parts) // 2]) + b"\xa4type\xa6action" + b"".join(parts)


DEEP_JSON = '{"type": "action", "action": ' + "[" * 500_000 + "]" * 500_000 + "}"
DEEP_JSON_FIRST = '{"action": ' + "[" * 500_000 + "]" * 500_000 + ', "type": "action"}'
DEEP_PACKED = packed(b"\xa6action", b"\x91" * 500_000 + b"\xc0")
CUT_MAP = b"\x82\xa6action" + b"\x91" * 500_000 + b"\xc0\xa4type\xa6action"

WRONG = {
    "hangs up": (lambda talk: talk.connection.close(), "agent_disconnected"),
    "vanishes": (lambda talk: talk.connection.socket.shutdown(2), "agent_disconnected"),
    "crashes": (crash, "agent_error"),
    "says that it failed": (lambda talk: talk.send({"type": "error", "message": "CUDA"}), "agent_error"),
    "sends no JSON": (text("{oops"), "malformed_frame"),
    "sends nothing in a frame": (text(""), "malformed_frame"),
    "sends no UTF-8": (raw(b"\x81\x02\xff\xfe"), "malformed_frame"),
    "sends no WebSocket frame": (raw(b"\xf1\x01x"), "malformed_frame"),
    "sends another type": (text('{"type": "acton", "action": 1}'), "wrong_message"),
    "sends no type": (text('{"action": 1}'), "wrong_message"),
    "sends no action": (text('{"type": "action"}'), "wrong_message"),
    "sends a list": (text("[1, 2]"), "wrong_message"),
    "says hello again": (lambda talk: talk.send(HELLO), "wrong_message"),
    "does another thing": (says("JUMP"), "invalid_action"),
    "does a float": (says(1.5), "invalid_action"),
    "does several things": (says([1, 1, 1]), "wrong_action_length"),
    "answers another session": (says(1, session_id="somebody else's"), "wrong_session"),
    "answers another request": (says(1, request_id=1), "stale_reply"),
    "answers no request": (says(1, request_id=None), "stale_reply"),
    "sends a giant frame": (text(" " * (5 << 20)), "frame_too_big"),
    "announces a giant frame": (raw(b"\x81\x7f" + (1 << 40).to_bytes(8, "big")), "frame_too_big"),
    "sends countless fragments": (raw(b"\x01\x00" + b"\x00\x00" * 100_000), "frame_too_big"),
    "sends a deep frame": (text(DEEP_JSON), "nested_too_deep"),
    "sends a deep frame, type last": (text(DEEP_JSON_FIRST), "nested_too_deep"),
    "sends binary": (lambda talk: talk.connection.send(json.dumps({}).encode()), "wrong_frame_kind"),
}
WRONG_IN_MSGPACK = {
    "sends text": (text('{"type": "action", "action": 1}'), "wrong_frame_kind"),
    "sends no msgpack": (lambda talk: talk.connection.send(b"\xc1"), "malformed_frame"),
    "sends half of it": (
        lambda talk: talk.connection.send(b"\x82\xa4type\xa6action\xa6act"),
        "malformed_frame",
    ),
    "does NaN": (says(math.nan), "action_not_finite"),
    "does infinity": (says([math.inf]), "action_not_finite"),
    "sends a deep frame": (lambda talk: talk.connection.send(DEEP_PACKED), "nested_too_deep"),
    "sends a deep frame, type last": (lambda talk: talk.connection.send(CUT_MAP), "nested_too_deep"),
}
LATE = {
    "does not answer": (lambda talk: None, "action_timeout"),
    "answers too late": (late, "action_timeout"),
    "only pings": (ping_only, "action_timeout"),
    "drips": (drip, "slow_reply"),
    "drips fragments": (drip_fragments, "slow_reply"),
    "announces a frame and sends none": (raw(b"\x81\x05"), "slow_reply"),
}


def faulty_then_right(agent, port, action_timeout_s, env=None):
    """Let a bad agent take an episode and a good one at the same address the next."""
    policy = WebSocketPolicy("127.0.0.1", port, action_timeout_s=action_timeout_s)
    with VLNEvaluator(env or MockEnv(), policy) as evaluator:
        first = evaluator.evaluate_episode(episode("first"))
        agent.answer = right
        policy._action_timeout_s = PATIENT_S
        second = evaluator.evaluate_episode(episode("second"))
    assert (second.status, second.actions) == ("success", RIGHT), second.error
    assert first.status == "error"
    assert first.error.side == "agent"
    assert first.failure_reason == first.error.kind
    return first


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_in_json_costs_the_agent_its_episode_and_no_other(name):
    answer, kind = WRONG[name]
    agent = Agent(at_second_step(answer))
    with served(agent) as port:
        first = faulty_then_right(agent, port, PATIENT_S)
    assert first.error.kind == kind, first.error.message
    assert (first.steps, first.actions) == (1, [1])
    assert first.metrics["path_length"] == pytest.approx(0.25)
    assert len(first.error.message) < 400


@pytest.mark.parametrize("name", WRONG_IN_MSGPACK)
def test_a_wrong_answer_in_msgpack_costs_the_agent_its_episode_and_no_other(name):
    answer, kind = WRONG_IN_MSGPACK[name]
    agent = Agent(at_second_step(answer))
    with served(agent, subprotocol=MSGPACK) as port:
        first = faulty_then_right(agent, port, PATIENT_S)
    assert first.error.kind == kind, first.error.message
    assert first.actions == [1]


def test_nan_in_json_which_is_none_in_json_is_the_agents_fault():
    agent = Agent(at_second_step(says(math.nan)))  # Python writes NaN without a second thought
    with served(agent) as port:
        assert faulty_then_right(agent, port, PATIENT_S).error.kind in (
            "malformed_frame",
            "action_not_finite",
        )


@pytest.mark.parametrize("name", LATE)
def test_a_late_answer_costs_the_agent_its_episode_and_is_taken_for_no_other(name):
    answer, kind = LATE[name]
    agent = Agent(at_second_step(answer))
    with served(agent) as port:
        first = faulty_then_right(agent, port, HASTY_S)
    assert first.error.kind == kind, first.error.message


def test_an_answer_that_comes_twice_is_found_at_the_next_question():
    agent = Agent(twice)
    with served(agent) as port:
        first = faulty_then_right(agent, port, PATIENT_S)
    assert first.error.kind in ("unasked_message", "stale_reply")
    assert 0 < first.steps < len(RIGHT)


def test_an_answer_that_comes_twice_at_the_end_of_an_episode_does_not_reach_the_next():
    agent = Agent(lambda talk: twice(talk) if talk.step == 4 else right(talk))
    with served(agent) as port, VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        assert [evaluator.evaluate_episode(episode(name)).actions for name in "abc"] == [RIGHT] * 3


class Hasty(Agent):
    """Answers before it is asked: each time an episode begins."""

    def __call__(self, connection):
        self.connections += 1
        talk = Conversation(connection)
        talk.send(HELLO)
        for frame in connection:
            message = json.loads(frame)
            self.messages.append(message)
            if message["type"] == "reset_episode" and self.answer is not right:
                talk.send({"type": "action", "session_id": message["session_id"], "action": 1})
            elif message["type"] == "reset_episode":
                talk.step = 0
            elif message["type"] == "get_action" and self.answer is right:
                talk.message = message
                right(talk)
                talk.step += 1


def test_an_answer_before_the_question_is_one_fault_of_that_episode():
    agent = Hasty(answer=None)
    with served(agent) as port:
        first = faulty_then_right(agent, port, PATIENT_S)
    assert first.error.kind in ("unasked_message", "stale_reply"), first.error.message
    assert (first.steps, first.actions) == (0, [])
    assert agent.connections == 2
    assert len(agent.told("reset_episode")) == 2


def test_all_actions_of_an_episode_share_a_budget():
    agent = Agent(lambda talk: threading.Event().wait(0.15) or talk.reply(2))
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port, episode_budget_s=0.5)
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            results = [evaluator.evaluate_episode(episode(name)) for name in "ab"]
            agent.answer = right
            assert evaluator.evaluate_episode(episode("c")).success
    for result in results:
        assert result.error.kind == "episode_budget"
        assert "more than 0.5 s together" in result.error.message
        assert 1 <= result.steps <= 3


def test_an_agent_that_does_not_read_cannot_hold_the_evaluator_up():
    answer = threading.Event()

    def never_read(connection):
        connection.send(msgspec.msgpack.encode(HELLO))
        answer.wait(PATIENT_S)

    with served(never_read, subprotocol=MSGPACK, max_queue=1, close_timeout=0.1) as port:
        policy = WebSocketPolicy("127.0.0.1", port, action_timeout_s=1.0)
        with VLNEvaluator(WideView(), policy) as evaluator:
            result = evaluator.evaluate_episode(episode())
        answer.set()
    assert (result.error.side, result.error.kind) == ("agent", "action_timeout")
    assert "did not read" in result.error.message


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (HELLO | {"version": 99}, "version 99 of the protocol.*update Proctor here"),
        (HELLO | {"protocol": "gym"}, "speaks 'gym'"),
        ({"type": "action", "action": 1}, "did not say hello"),
        ({"type": "hi"}, "first frame is the text"),
    ],
)
def test_an_agent_of_another_language_is_told_apart(said, problem):
    agent = Agent(hello=said)
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        with VLNEvaluator(MockEnv(), policy) as evaluator:
            result = evaluator.evaluate_episode(episode("a"))
            agent.hello = HELLO
            assert evaluator.evaluate_episode(episode("b")).success
    assert result.error.kind == "protocol_mismatch"
    assert re.search(problem, result.error.message)


def http_answer(response):
    def handle(client):
        client.recv(4096)
        client.sendall(response)

    return handle


def drip_handshake(client):
    wait = threading.Event()
    for _ in range(200):
        client.sendall(b"H")
        wait.wait(0.01)


def tls_server(client):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with contextlib.suppress(ssl.SSLError):
        context.wrap_socket(client, server_side=True)


NO_AGENTS = {
    "takes no part": (lambda client: client.recv(1 << 20) and client.recv(1), "agent_unreachable"),
    "hangs up at once": (lambda client: None, "agent_unreachable"),
    "drips its handshake": (drip_handshake, "agent_unreachable"),
    "is still loading": (http_answer(b"HTTP/1.1 503 Loading\r\n\r\n"), "agent_unreachable"),
    "speaks TLS": (tls_server, "agent_unreachable"),
    "is a web server": (http_answer(b"HTTP/1.1 404 Not Found\r\n\r\n"), "protocol_mismatch"),
    "is a web server that says yes": (http_answer(b"HTTP/1.1 200 OK\r\n\r\nhello"), "protocol_mismatch"),
    "sends us elsewhere": (
        http_answer(b"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\n\r\n"),
        "protocol_mismatch",
    ),
    "speaks something else": (http_answer(b"220 smtp.example.org ESMTP\r\n"), "protocol_mismatch"),
    "sends endless headers": (http_answer(b"HTTP/1.1 101 Ok\r\n" + b"A: b\r\n" * 9000), "protocol_mismatch"),
}


@pytest.mark.parametrize("name", NO_AGENTS)
def test_who_is_no_agent_at_all_costs_the_episode_until_an_agent_is_there(name):
    handle, kind = NO_AGENTS[name]
    with listening(handle) as port:
        policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=0.6)
        evaluator = VLNEvaluator(MockEnv(), policy)
        first = evaluator.evaluate_episode(episode("first"))
    side = "unavailable" if kind == "agent_unreachable" else "agent"
    assert (first.error.side, first.error.kind) == (side, kind), first.error.message
    assert first.steps == 0
    policy._connect_timeout_s = PATIENT_S
    with served(Agent(), port=port), evaluator:
        assert evaluator.evaluate_episode(episode("second")).success


def test_where_nobody_is_the_agent_is_unavailable_after_the_time_for_connecting():
    port = free_port()
    policy = WebSocketPolicy("127.0.0.1", port, connect_timeout_s=0.5)
    evaluator = VLNEvaluator(MockEnv(), policy)
    first = evaluator.evaluate_episode(episode("first"))
    assert (first.error.side, first.error.kind) == ("unavailable", "agent_unreachable")
    assert first.metrics == {}
    assert f"nobody answers at ws://127.0.0.1:{port}: Connection refused" in first.error.message
    policy._connect_timeout_s = PATIENT_S
    with served(Agent(), port=port), evaluator:
        assert evaluator.evaluate_episode(episode("second")).success


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "gopher://me:secret@127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_the_users_business(proxy, monkeypatch):
    monkeypatch.setenv("wss_proxy", proxy)
    monkeypatch.setenv("https_proxy", proxy)
    policy = WebSocketPolicy("wss://agents.example.org", connect_timeout_s=5)
    with pytest.raises(UserError, match="the proxy of this machine cannot be used") as caught:
        policy.check()
    assert "secret" not in str(caught.value)
    assert VLNEvaluator(MockEnv(), policy).evaluate_episode(episode()).is_evaluator_fault


def test_a_proxy_that_does_not_get_through_has_reached_nobody(monkeypatch):
    def turn_down(line):
        line.recv(4096)
        line.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")

    with listening(turn_down) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        policy = WebSocketPolicy("wss://agents.example.org", connect_timeout_s=0.3)
        result = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode())
    assert result.error.kind == "agent_unreachable"
    assert "HTTP 502" in result.error.message


def test_a_machine_without_a_socket_left_is_not_the_agents_fault(monkeypatch):
    async def no_socket(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(connection._loop(), "create_connection", no_socket)
    policy = WebSocketPolicy("127.0.0.1", free_port())
    result = VLNEvaluator(MockEnv(), policy).evaluate_episode(episode())
    assert result.is_evaluator_fault
    assert "Too many open files" in result.error.message


def test_policies_of_several_threads_share_one_loop(monkeypatch):
    monkeypatch.setattr(connection, "_started_loop", cache(connection._started_loop.__wrapped__))
    at_once = threading.Barrier(4)

    def loop(_):
        at_once.wait()
        return connection._loop()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(loop, range(4)))) == 1


def test_a_call_that_is_interrupted_leaves_nothing_behind(monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    async def wait():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted(self):
        assert begun.wait(PATIENT_S)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        connection._run(wait())
    assert ended.wait(PATIENT_S)


def test_a_server_whose_limit_is_too_low_for_observations_is_told_so():
    with served(Agent(), max_size=100) as port:
        evaluator = VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port))
        result = evaluator.evaluate_episode(episode())
        evaluator.close()
    assert result.error.kind == "agent_disconnected"
    assert result.error.message.startswith("the agent's server takes no observation of this size; raise")


def test_an_observation_that_cannot_be_written_is_the_evaluators_fault():
    class Odd(MockEnv):
        def step(self, action):
            observation, *rest = super().step(action)
            return observation | {"pose": Vector3(0, 0, 0), "odd": object()}, *rest

    agent = Agent()
    with served(agent) as port, VLNEvaluator(Odd(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        result = evaluator.evaluate_episode(episode())
    assert result.is_evaluator_fault
    assert result.error.kind == "evaluator_exception"
    assert "cannot be written" in result.error.message


def test_a_briefing_that_cannot_be_written_is_the_evaluators_fault():
    info = EpisodeInfo(episode_id="", instruction="", max_steps=1, seed=0, details={"odd": object()})
    agent = Agent()
    with served(agent) as port:
        policy = WebSocketPolicy("127.0.0.1", port)
        with pytest.raises(EvaluatorError, match="cannot be written"):
            policy.reset(info)
    assert agent.messages == []


class DepthOnly(MockEnv):
    """A world without colours."""

    def reset(self, episode):
        return {"depth": super().reset(episode)["depth"]}


@pytest.mark.parametrize(
    ("dialect", "side", "kind"),
    [("auto", "agent", "protocol_mismatch"), ("openpi", "evaluator", "evaluator_exception")],
)
def test_no_episode_is_got_rid_of_by_a_language_that_has_no_word_for_what_is_seen(dialect, side, kind):
    def openpi(client):
        accept_upgrade(client)
        client.sendall(b"\x82\x01\x80")  # metadata: an empty map
        client.recv(1)

    with listening(openpi) as port:
        policy = WebSocketPolicy("127.0.0.1", port, dialect=dialect)
        with VLNEvaluator(DepthOnly(), policy) as evaluator:
            result = evaluator.evaluate_episode(episode())
    assert (result.error.side, result.error.kind) == (side, kind)
    assert "observations hold: depth" in result.error.message


def test_an_agent_that_fails_before_its_first_episode_is_heard_though_it_hung_up():
    def fail(connection):
        for message in (HELLO, {"type": "error", "message": "no room for a second model"}):
            connection.send(json.dumps(message))
        connection.close(1011)

    with served(fail) as port:
        line, dialect, _ = open_session(Address(url=f"ws://127.0.0.1:{port}"), time.monotonic() + PATIENT_S)
        while line.is_alive(time.monotonic() + PATIENT_S):
            pass
        with pytest.raises(AgentFault, match="no room for a second model"):
            dialect.begin(
                EpisodeInfo(episode_id="ep", instruction="Go.", max_steps=1, seed=0),
                time.monotonic() + PATIENT_S,
            )
        line.drop()


def test_pings_without_end_whose_answers_nobody_reads_fill_no_memory(monkeypatch):
    monkeypatch.setattr(connection, "MAX_UNSENT_BYTES", 1 << 16)

    def flood(client):
        accept_upgrade(client)
        hello = json.dumps(HELLO).encode()
        client.sendall(bytes([0x81, len(hello)]) + hello)
        while True:
            client.sendall((b"\x89\x7d" + b"p" * 125) * 1000)

    with listening(flood) as port:
        evaluator = VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port, action_timeout_s=PATIENT_S))
        result = evaluator.evaluate_episode(episode())
        evaluator.close()
    assert result.error.kind == "agent_disconnected"


def test_a_line_to_an_agent_of_another_language_is_not_left_open():
    agent = Agent(hello=HELLO | {"version": 99})
    closed = threading.Semaphore(0)

    def handle(connection):
        try:
            agent(connection)
        finally:
            closed.release()

    with served(handle) as port, VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port)) as evaluator:
        for _ in range(3):
            evaluator.evaluate_episode(episode())
            gc.collect()
            assert closed.acquire(timeout=PATIENT_S)


def test_a_hundred_bad_episodes_leave_nothing_behind():
    names = ("vanishes", "sends no JSON", "sends no type", "does another thing", "answers another session")
    bad = [WRONG[name][0] for name in names]
    agent = Agent()
    with served(agent) as port, VLNEvaluator(MockEnv(), WebSocketPolicy("127.0.0.1", port)) as evaluator:

        def take(count):
            for index in range(count):
                agent.answer = bad[index % len(bad)]
                agent.messages.clear()
                assert evaluator.evaluate_episode(episode()).error.side == "agent"
            gc.collect()
            return tracemalloc.get_traced_memory()[0], len(list(Path("/proc/self/fd").iterdir()))

        tracemalloc.start()
        try:
            before_bytes, before_files = take(30)
            after_bytes, after_files = take(100)
        finally:
            tracemalloc.stop()
    assert after_bytes - before_bytes < 100_000
    assert after_files - before_files < 10
