"""A policy's server as evaluators meet it: real sockets, many at a time, some of them rude."""

import base64
import http.client
import json
import logging
import re
import select
import socket
import ssl
import struct
import subprocess
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from evaluators import call, picture
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from proctor.agents import admission
from proctor.agents.dialects.proctor import ProctorDialect
from proctor.agents.handshake import Address, open_session
from proctor.agents.messages import (
    JSON,
    MSGPACK,
    ActionReply,
    EpisodeEnd,
    ErrorMessage,
    GetAction,
    Hello,
)
from proctor.agents.server import PolicyServer, serve
from proctor.core.errors import AgentFault, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo, Outcome, Sensor
from proctor.exams.vln.baselines import ForwardPolicy
from proctor.runs.replay import ReplayPolicy


class Recorder(Policy):
    """Answers with what it is told to, and remembers what it was told."""

    def __init__(self, answer=Action.LEFT):
        self.answer, self.calls = answer, []

    def reset(self, episode_info):
        self.calls.append(episode_info)

    def act(self, observation):
        self.calls.append(observation)
        return self.answer

    def episode_end(self, outcome):
        self.calls.append(outcome)

    def close(self):
        self.calls.append("close")


class Signing(Policy):
    """Signs every action with its instruction and how often it has acted."""

    def reset(self, episode_info):
        self.instruction, self.count = episode_info.instruction, 0

    def act(self, observation):
        self.count += 1
        return [self.instruction, self.count, observation["mark"], int(observation["rgb"].sum())]

    @classmethod
    def act_batch(cls, policies, observations):
        return [policy.act(observation) for policy, observation in zip(policies, observations, strict=True)]


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def server(recorder):
    with PolicyServer(recorder, port=0, name="tester") as running:
        yield running


def closed_with(caller):
    """Read to the end of a session and return the close code."""
    try:
        while True:
            caller.socket.recv(timeout=30)
    except ConnectionClosed as ended:
        return ended.rcvd.code


def http_get(server, path, headers=()):
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    line.request("GET", path, headers=dict(headers))
    answer = line.getresponse()
    body = answer.read().decode()
    line.close()
    return answer.status, answer.headers, body


# The conversation


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_policy_hears_the_whole_episode_and_its_actions_come_back(server, recorder, codec):
    rgb, qpos = picture(), np.array([0.5, 1.5])
    sensors = {
        "rgb": Sensor(dtype="uint8", shape=rgb.shape),
        "qpos": Sensor(dtype="float64", shape=qpos.shape),
    }
    with call(server, codec=codec) as caller:
        assert caller.hello == Hello(protocol="proctor", version=1, name="tester", request_ids=True)
        caller.greet(actions=["STOP", "FORWARD"])
        caller.reset(sensors=sensors, robot_config={"dof": 7})
        reply = caller.act(rgb=rgb, qpos=qpos, gripper_state=0.5, instruction={"text": "Go ahead."})
        assert reply == ActionReply(session_id="s", request_id=1, action=2)
        assert caller.act().request_id == 2
        caller.send(EpisodeEnd(session_id="s", status="success", metrics={"spl": 0.5}, num_steps=2))
    wait_for_its_end(server)
    server.shutdown()
    info, first, _, outcome, last = recorder.calls
    assert info == EpisodeInfo(
        episode_id="ep",
        instruction="Go ahead.",
        max_steps=40,
        seed=7,
        task="vln",
        sensors=sensors,
        actions=("STOP", "FORWARD"),
        details={"robot_config": {"dof": 7}},
    )
    np.testing.assert_array_equal(first["rgb"], rgb)
    assert first["rgb"].dtype == np.uint8
    first["rgb"][0] = 0  # a policy may write into what it is shown
    np.testing.assert_array_equal(first["qpos"], qpos)
    assert (first["gripper_state"], first["instruction"]) == (0.5, {"text": "Go ahead."})
    assert outcome == Outcome(status="success", metrics={"spl": 0.5}, num_steps=2)
    assert last == "close"


@pytest.mark.parametrize(
    ("offered", "chosen"), [([JSON, MSGPACK], MSGPACK), ([JSON], JSON), (["other"], None), (None, None)]
)
def test_msgpack_is_chosen_by_name_and_nothing_is_forced(server, offered, chosen):
    with connect(server.url, subprotocols=offered) as client:
        assert client.subprotocol == chosen


def test_an_evaluator_that_knows_only_the_three_messages_is_served(server):
    with connect(server.url) as client:
        episode = {
            "episode_id": "e",
            "instruction": {"text": "Pick up the cup"},
            "task_type": "pick_and_place",
        }
        client.send(json.dumps({"type": "reset_episode", "session_id": "uuid", "episode": episode}))
        client.send(json.dumps({"type": "get_action", "session_id": "uuid", "observation": {"qpos": [0]}}))
        reply = json.loads(client.recv(timeout=30))  # no hello before it
        assert {key: reply[key] for key in ("type", "session_id", "action")} == {
            "type": "action",
            "session_id": "uuid",
            "action": 2,
        }
        end = {
            "type": "episode_end",
            "session_id": "uuid",
            "status": "success",
            "metrics": {},
            "num_steps": 1,
        }
        client.send(json.dumps(end))


def test_our_own_evaluator_meets_it(server):
    deadline_s = time.monotonic() + 30
    connection, dialect, _ = open_session(Address(url=server.url), deadline_s)
    assert isinstance(dialect, ProctorDialect)
    assert dialect.name == MSGPACK
    rgb = picture()
    sensors = {"rgb": Sensor(dtype="uint8", shape=rgb.shape)}
    info = EpisodeInfo(episode_id="e", instruction="Go.", max_steps=3, seed=1, sensors=sensors)
    dialect.begin(info, deadline_s)
    assert dialect.ask({"rgb": rgb}, deadline_s) == Action.LEFT
    dialect.end(Outcome(status="failure", metrics={}, num_steps=1), deadline_s)
    connection.close()


def test_jpeg_can_be_asked_for():
    with PolicyServer(Recorder, port=0, pictures="jpeg") as server, call(server, codec="json") as caller:
        assert caller.hello.pictures == "jpeg"
        assert caller.hello.name == "Recorder"


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize(
    ("answer", "action"),
    [
        (Action.FORWARD, 1),
        (np.int64(3), 3),
        (np.arange(3.0), [0.0, 1.0, 2.0]),
        (
            {"type": "joint_position", "qpos": np.zeros(2, np.float32)},
            {"type": "joint_position", "qpos": [0, 0]},
        ),
        ((np.float32(0.5), [Action.STOP]), [0.5, [0]]),
        ("FORWARD", "FORWARD"),
        (None, None),
    ],
    ids=str,
)
def test_answers_of_all_kinds_are_written_plainly(server, recorder, codec, answer, action):
    recorder.answer = answer
    with call(server, codec=codec) as caller:
        caller.reset()
        assert caller.act().action == action


# Sessions


@pytest.mark.parametrize("max_batch", [1, 8])
def test_32_sessions_at_a_time_get_their_own_answers(max_batch):
    sessions, steps = 32, 10
    together = threading.Barrier(sessions)

    def take_exam(number):
        rgb = picture(12, 16, seed=number)
        with call(server, session_id=f"s{number}", codec=("json", "msgpack")[number % 2]) as caller:
            caller.greet()
            together.wait(60)
            for episode in range(2):
                text = f"session {number} episode {episode}"
                caller.reset(
                    instruction={"text": text}, sensors={"rgb": Sensor(dtype="uint8", shape=rgb.shape)}
                )
                for step in range(steps):
                    reply = caller.act(rgb=rgb, mark=f"{number}.{step}")
                    signed = [text, step + 1, f"{number}.{step}", int(rgb.sum())]
                    assert reply == ActionReply(
                        session_id=f"s{number}", request_id=episode * steps + step + 1, action=signed
                    )

    with (
        PolicyServer(Signing, port=0, max_batch=max_batch) as server,
        ThreadPoolExecutor(sessions) as executor,
    ):
        for done in [executor.submit(take_exam, number) for number in range(sessions)]:
            done.result(60)


def test_sessions_beyond_the_most_are_told_to_come_back(recorder):
    with PolicyServer(Recorder, port=0, max_sessions=2) as server:
        with call(server) as one, call(server) as two:
            one.reset()
            two.reset()
            with pytest.raises(InvalidStatus) as refused, call(server):
                pass
            assert refused.value.response.status_code == 503
            assert b"All 2 sessions" in refused.value.response.body
            assert one.act().action == two.act().action == 2
        wait_for_its_end(server)
        with call(server) as three:
            three.reset()
            assert three.act().action == 2


def wait_for(condition):
    deadline_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline_s


def wait_for_its_end(server):
    """Wait until the last session has ended."""

    def has_ended():
        try:
            return json.loads(http_get(server, "/healthz")[2])["sessions"] == 0
        except (OSError, http.client.HTTPException):  # connections of before are still being closed
            return False

    wait_for(has_ended)


def test_a_policy_object_has_one_session_at_a_time_and_is_closed_at_the_end(server, recorder):
    for _ in range(2):
        with call(server) as caller:
            caller.reset()
            caller.act()
            with pytest.raises(InvalidStatus), call(server):
                pass
        wait_for_its_end(server)
    assert "close" not in recorder.calls
    server.shutdown()
    assert recorder.calls.count("close") == 1


def test_the_first_policy_is_made_at_the_start_and_all_are_closed():
    made = []

    def make():
        made.append(Recorder())
        return made[-1]

    with PolicyServer(make, port=0) as server:
        assert len(made) == 1
        for _ in range(2):
            with call(server) as caller:
                caller.reset()
                caller.act()
        assert len(made) == 2
    assert [policy.calls.count("close") for policy in made] == [1, 1]
    assert [len(policy.calls) for policy in made] == [3, 3]


def test_a_policy_that_nobody_asked_for_is_closed_too(recorder):
    with PolicyServer(lambda: recorder, port=0):
        pass
    assert recorder.calls == ["close"]


def test_while_the_policy_is_being_made_evaluators_are_told_to_wait():
    begun, may_go_on = threading.Event(), threading.Event()

    def make():
        begun.set()
        assert may_go_on.wait(30)
        return Recorder()

    server = PolicyServer(make, port=0)
    starter = threading.Thread(target=server.start)
    starter.start()
    assert begun.wait(30)
    with pytest.raises(InvalidStatus) as refused, call(server):
        pass
    assert refused.value.response.status_code == 503
    status, _, body = http_get(server, "/healthz")
    assert (status, json.loads(body)["status"]) == (503, "loading")
    may_go_on.set()
    starter.join(30)
    with call(server):
        pass
    server.shutdown()


# Health, tokens, TLS


def test_health_is_told_over_plain_http(server):
    with call(server):
        status, headers, body = http_get(server, "/healthz")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body) == {
        "status": "ok",
        "protocol": "proctor",
        "version": 1,
        "name": "tester",
        "sessions": 1,
        "max_sessions": 1,
    }
    assert http_get(server, "/healthz?verbose=1")[0] == 200


@pytest.mark.parametrize(("path", "status", "words"), [("/", 426, "WebSocket only"), ("/x", 404, "/healthz")])
def test_other_plain_requests_get_a_sentence(server, path, status, words):
    found, _, body = http_get(server, path)
    assert found == status
    assert words in body


def test_a_token_keeps_others_out():
    with PolicyServer(Recorder, port=0, token="right") as server:
        for token in (None, "wrong", "right2", "righ", "r\u00efght"):
            with pytest.raises(InvalidStatus) as refused, call(server, token=token):
                pass
            assert refused.value.response.status_code == 401
            assert b"Authorization: Bearer TOKEN" in refused.value.response.body
            assert refused.value.response.headers["WWW-Authenticate"] == "Bearer"
        with call(server, token="right") as caller:
            caller.reset()
            assert caller.act().action == 2
        assert http_get(server, "/healthz")[0] == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem", folder / "key.pem"


def test_tls_is_spoken_with_a_certificate(certificate):
    cert, key = certificate
    trust = ssl.create_default_context(cafile=cert)
    rgb = picture(480, 640)  # more than one TLS record
    with PolicyServer(Recorder, port=0, certificate=cert, key=key, token="right") as server:
        assert server.url.startswith("wss://")
        with call(server, ssl=trust, token="right") as caller:
            caller.reset(sensors={"rgb": Sensor(dtype="uint8", shape=rgb.shape)})
            assert caller.act(rgb=rgb).action == 2
        with pytest.raises(ssl.SSLError), call(server, ssl=ssl.create_default_context(), token="right"):
            pass


# What cannot be served


@pytest.mark.parametrize(
    ("source", "options", "complaint"),
    [
        (ReplayPolicy, {}, "ReplayPolicy is privileged: it needs the truth, which is never sent"),
        (lambda: "no policy", {}, "expected a Policy to serve, found str"),
        (Recorder, {"max_batch": 2}, "needs a classmethod or staticmethod act_batch"),
        (Recorder, {"max_sessions": 0}, "max_sessions: expected a number from 1 up, found 0"),
        (Recorder, {"batch_wait_s": float("nan")}, "batch_wait_s: expected seconds from 0 to 60, found nan"),
        (Recorder, {"batch_wait_s": float("inf")}, "batch_wait_s: expected seconds from 0 to 60, found inf"),
        (Recorder, {"port": 70000}, "port: expected a number from 0 to 65535, found 70000"),
        (Recorder, {"token": "l\u00f6we"}, "ASCII without spaces"),
        (Recorder, {"token": "two words"}, "ASCII without spaces"),
        (Recorder, {"token": ""}, "ASCII without spaces"),
        (Recorder, {"host": "192.0.2.1"}, "cannot listen on 192.0.2.1"),
        (Recorder, {"certificate": "cert.pem"}, "both a certificate and its key"),
        (
            Recorder,
            {"certificate": "no.pem", "key": "no.pem"},
            "certificate no.pem and key no.pem: No such file",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_reason(source, options, complaint):
    with pytest.raises(UserError, match=complaint), PolicyServer(source, **({"port": 0} | options)):
        pass


def test_a_port_that_is_taken_is_named(server):
    taken = f"port {server.port} on 127.0.0.1 is taken.*choose another port"
    with pytest.raises(UserError, match=taken), PolicyServer(Recorder, port=server.port):
        pass


def test_an_act_batch_that_needs_an_object_is_refused():
    class Half(Recorder):
        def act_batch(self, policies, observations):
            return [0] * len(policies)

    with pytest.raises(UserError, match="there is only a function"), PolicyServer(Half, port=0, max_batch=2):
        pass


# Faults


class Failing(Policy):
    def __init__(self, where="act"):
        self.where = where

    def reset(self, episode_info):
        self._maybe("reset")

    def act(self, observation):
        self._maybe("act")
        return 1

    def episode_end(self, outcome):
        self._maybe("episode_end")

    def _maybe(self, where):
        if self.where == where:
            raise ValueError(f"bad {where}\ud800")


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("where", ["reset", "act", "episode_end"])
def test_what_a_policy_raises_is_told_and_ends_its_session_only(caplog, where, codec):
    sources = iter([Failing("no"), Failing(where)])
    with PolicyServer(lambda: next(sources), port=0) as server, call(server) as other:
        other.reset()
        other.act()  # so that it has got the first policy
        with call(server, codec=codec) as caller:
            caller.reset()
            if where != "reset":
                caller.ask()
            if where == "episode_end":
                assert isinstance(caller.read(), ActionReply)
                caller.send(EpisodeEnd(session_id="s", status="error", metrics={}, num_steps=1))
            reply = caller.read()
            assert isinstance(reply, ErrorMessage)
            assert (reply.kind, reply.message) == ("policy_exception", f"ValueError: bad {where}?")
            assert closed_with(caller) == 1011
        assert other.act().action == 1
    assert any(record.exc_info and "bad" in str(record.exc_info[1]) for record in caplog.records)


def test_a_fault_keeps_its_kind(server, recorder):
    def refuse(observation):
        raise AgentFault("nothing_to_replay", "there is no such episode")

    recorder.act = refuse
    with call(server) as caller:
        caller.reset()
        reply = caller.act()
        assert (reply.kind, reply.message) == ("nothing_to_replay", "there is no such episode")


def test_a_policy_that_exits_does_not_end_the_server(caplog):
    class Quitting(Policy):
        def act(self, observation):
            raise SystemExit(3)

    with PolicyServer(Quitting, port=0) as server:
        for _ in range(2):
            with call(server) as caller:
                caller.reset()
                assert caller.act().message == "SystemExit: 3"
                assert closed_with(caller) == 1011
    assert "the policy failed: SystemExit: 3" in caplog.text


def test_who_only_looks_whether_somebody_is_there_uses_up_no_policy():
    made = []

    def make():
        made.append(Recorder())
        return made[-1]

    with PolicyServer(make, port=0) as server:
        with call(server) as visitor:
            assert visitor.hello is not None
        with call(server) as caller:
            caller.reset()
            caller.act()
        assert len(made) == 1


def test_a_policy_that_cannot_be_made_for_a_later_session_is_told():
    made = []

    def make():
        if made:
            raise MemoryError("no room for a second model")
        made.append(Recorder())
        return made[0]

    with PolicyServer(make, port=0) as server, call(server) as one:
        one.reset()
        one.act()
        with call(server) as two:
            two.reset()
            reply = two.read()
            assert (reply.kind, reply.message) == (
                "policy_exception",
                "MemoryError: no room for a second model",
            )
        assert one.act().action == 2


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (object(), "act returned a object that cannot be sent: .*object"),
        (
            {"type": "joint_position", "qpos": {1, object()}},
            "act returned a dict that cannot be sent: .*object",
        ),
        (np.array([object()]), "act returned a ndarray that cannot be sent: .*object"),
        ("\ud800", "act returned a str that cannot be sent"),
    ],
    ids=["object", "dict", "array", "surrogate"],
)
def test_an_answer_that_cannot_be_written_is_named(server, recorder, codec, answer, words):
    recorder.answer = answer
    with call(server, codec=codec) as caller:
        caller.reset()
        reply = caller.act()
        assert isinstance(reply, ErrorMessage)
        assert reply.kind == "policy_exception"
        assert re.match(f"TypeError: {words}", reply.message)


def test_an_endless_answer_is_an_error_of_its_policy(server, recorder):
    recorder.answer = []
    recorder.answer.append(recorder.answer)
    with call(server) as caller:
        caller.reset()
        assert "RecursionError" in caller.act().message


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        ({"version": 2}, "version 2 of the protocol, this agent version 1; update Proctor where the agent"),
        (
            {"version": 0},
            "version 0 of the protocol, this agent version 1; update Proctor where the evaluator",
        ),
        ({"protocol": "openpi"}, "speaks 'openpi', not 'proctor'"),
    ],
)
def test_an_evaluator_of_another_version_is_told_what_to_do(server, hello, words):
    with call(server) as caller:
        caller.greet(**hello)
        reply = caller.read()
        assert reply.kind == "protocol_mismatch"
        assert words in reply.message
        assert closed_with(caller) == 1002


BAD_FRAMES = [
    ("json", "{", "malformed_frame", 1007),
    ("json", b"{}", "wrong_frame_kind", 1003),
    ("json", '{"type":"dance"}', "wrong_message", 1002),
    ("json", '{"type":"reset_episode","session_id":"s","episode":{}}', "wrong_message", 1002),
    ("json", '{"type":"get_action","session_id":"s","observation":{}}', "wrong_message", 1002),
    ("json", '{"type":"action","action":1}', "wrong_message", 1002),
    ("msgpack", b"\xc1", "malformed_frame", 1007),
    ("msgpack", "{}", "wrong_frame_kind", 1003),
    ("msgpack", msgspec.msgpack.encode({"type": "get_action", "session_id": "s"}), "wrong_message", 1002),
    ("json", '{"type":"hello","x":' + "[" * 100_000 + "]" * 100_000 + "}", "nested_too_deep", 1007),
]


@pytest.mark.parametrize(("codec", "frame", "kind", "code"), BAD_FRAMES, ids=[f[2] for f in BAD_FRAMES])
def test_a_bad_frame_is_refused_and_the_next_session_is_served(server, codec, frame, kind, code):
    with call(server, codec=codec) as caller:
        caller.socket.send(frame)
        reply = caller.read()
        assert (type(reply), reply.kind) == (ErrorMessage, kind)
        assert closed_with(caller) == code
    with_next_session(server)


def with_next_session(server):
    wait_for_its_end(server)
    with call(server) as caller:
        caller.reset()
        assert caller.act().action == 2


def png(width, height, rows=b""):
    """Write a PNG file that announces a size, whatever it holds."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("size", [(100_000, 100_000), (12_000, 12_000), (5, 4)], ids=str)
def test_a_picture_that_is_not_what_was_announced_is_refused_without_being_unpacked(server, recorder, size):
    with call(server, codec="json") as caller:
        caller.reset(sensors={"rgb": Sensor(dtype="uint8", shape=(4, 6, 3))})
        caller.ask(rgb=base64.b64encode(png(*size)).decode())
        reply = caller.read()
        assert (type(reply), reply.kind) == (ErrorMessage, "malformed_frame")
        assert "rgb" in reply.message
        assert closed_with(caller) == 1007
    assert len(recorder.calls) == 1
    with_next_session(server)


def test_another_sessions_id_is_refused(server):
    with call(server) as caller:
        caller.reset()
        caller.send(GetAction(session_id="another", request_id=1, observation={}))
        assert caller.read().kind == "wrong_session"


def test_after_an_episode_the_next_one_must_begin_first(server):
    with call(server) as caller:
        caller.reset()
        caller.act()
        caller.send(EpisodeEnd(session_id="s", status="success", metrics={}, num_steps=1))
        assert "reset_episode" in caller.act().message


def test_the_evaluators_own_error_ends_the_episode_only(server, caplog):
    with call(server) as caller:
        caller.reset()
        caller.send(ErrorMessage(kind="world", message="the world\x1b broke"))
        caller.reset()
        assert caller.act().action == 2
    assert "the evaluator reports: world: the world\\u001b broke" in caplog.text


def test_a_frame_above_the_limit_closes_the_connection(monkeypatch):
    monkeypatch.setattr("proctor.agents.server.MAX_FRAME_BYTES", 10_000)
    with PolicyServer(Recorder, port=0) as server:
        with call(server) as caller:
            caller.socket.send(b"x" * 10_001)
            assert closed_with(caller) == 1009
        with_next_session(server)


def test_silence_and_rubbish_cost_nothing_but_their_connection(server, monkeypatch):
    with socket.create_connection(("127.0.0.1", server.port)) as rubbish:
        rubbish.sendall(b"\x00\xff rubbish\r\n\r\n")
        with_next_session(server)
    monkeypatch.setattr("proctor.agents.server.OPEN_TIMEOUT_S", 0.05)
    with (
        PolicyServer(Recorder, port=0) as strict,
        socket.create_connection(("127.0.0.1", strict.port)) as mute,
    ):
        mute.sendall(b"GET / HTTP/1.1\r\n")
        mute.settimeout(30)
        assert mute.recv(100) == b""


def test_an_evaluator_that_does_not_read_loses_its_session(server, recorder, monkeypatch):
    monkeypatch.setattr("proctor.agents.server.SEND_TIMEOUT_S", 0.05)
    recorder.answer = "x" * 1_000_000
    with call(server, max_queue=1, close_timeout=0.1) as caller:
        caller.reset()
        for _ in range(100):  # more than sockets hold
            caller.ask()
        wait_for_its_end(server)
    assert len(recorder.calls) < 100
    recorder.answer = 2
    monkeypatch.undo()
    with_next_session(server)


def test_an_address_of_version_6_is_one_too():
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with PolicyServer(Recorder, host="::1", port=0) as server, call(server) as caller:
        assert server.url == f"ws://[::1]:{server.port}"
        caller.reset()
        assert caller.act().action == 2


def test_there_may_be_only_so_many_connections(monkeypatch):
    monkeypatch.setattr(admission, "MAX_OPENING", 3)
    monkeypatch.setattr("proctor.agents.server.OPEN_TIMEOUT_S", 3600)
    with PolicyServer(Recorder, port=0, max_sessions=1) as server:
        mute = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(6)]
        wait_for(lambda: len(select.select(mute, [], [], 0)[0]) == 2)
        assert [one.recv(1) for one in select.select(mute, [], [], 0)[0]] == [b"", b""]
        for one in mute:
            one.close()
        wait_for(lambda: is_reachable(server))
        with_next_session(server)


def is_reachable(server):
    try:
        return http_get(server, "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


# The end


class Slow(Policy):
    """Takes as long as the test wants it to."""

    asked, may_answer = threading.Event(), threading.Event()

    def __init__(self):
        self.is_closed = False

    def act(self, observation):
        self.asked.set()
        assert self.may_answer.wait(30)
        return 1

    def close(self):
        self.is_closed = True


@pytest.fixture
def slow():
    Slow.asked.clear()
    Slow.may_answer.clear()
    yield Slow()
    Slow.may_answer.set()


def test_at_the_end_an_action_that_is_being_chosen_is_still_sent(slow):
    policies = iter([slow, Recorder()])
    server = PolicyServer(lambda: next(policies), port=0)
    server.start()
    with call(server) as busy, call(server) as idle:
        busy.reset()
        busy.ask()
        assert slow.asked.wait(30)
        ending = threading.Thread(target=server.shutdown, args=(3600,))
        ending.start()
        assert closed_with(idle) == 1001
        with pytest.raises((InvalidStatus, OSError)) as refused, call(server):
            pass
        assert refused.value.response.status_code == 503
        assert not slow.is_closed
        slow.may_answer.set()
        assert busy.read().action == 1
        assert closed_with(busy) == 1001
        ending.join(30)
        assert not ending.is_alive()
    assert slow.is_closed
    with pytest.raises(ConnectionRefusedError), call(server):
        pass
    server.shutdown()  # once more does no harm


def test_at_the_end_a_policy_still_hears_of_an_episode_end_that_was_sent_before():
    begun, may_begin = threading.Event(), threading.Event()

    class Beginner(Recorder):
        def reset(self, episode_info):
            super().reset(episode_info)
            begun.set()
            assert may_begin.wait(30)

    policy = Beginner()
    server = PolicyServer(lambda: policy, port=0)
    server.start()
    with call(server) as caller:
        caller.reset()
        assert begun.wait(30)
        caller.send(EpisodeEnd(session_id="s", status="failure", metrics={}, num_steps=0))
        caller.reset()  # of the next episode, which the server must not begin
        caller.ask()
        ending = threading.Thread(target=server.shutdown, args=(3600,))
        ending.start()
        (session,) = server._sessions
        wait_for(lambda: session._is_ending)
        may_begin.set()
        assert closed_with(caller) == 1001
        ending.join(30)
        assert not ending.is_alive()
    _, outcome, last = policy.calls
    assert outcome == Outcome(status="failure", metrics={}, num_steps=0)
    assert last == "close"


def test_at_the_end_an_evaluator_that_does_not_close_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("proctor.agents.server.CLOSE_TIMEOUT_S", 0.05)
    server = PolicyServer(Recorder, port=0)
    server.start()
    with socket.create_connection(("127.0.0.1", server.port)) as mute:
        mute.sendall(
            b"GET / HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        wait_for(lambda: server._sessions)
        ending = threading.Thread(target=server.shutdown, args=(3600,))
        ending.start()
        ending.join(30)
        assert not ending.is_alive()


ORIGIN = "https://evil.example.org"


@pytest.mark.parametrize("origin", [ORIGIN, "null", "http://127.0.0.1:8080", "http://localhost"])
def test_web_pages_are_refused_and_the_log_says_so(server, recorder, caplog, origin):
    with pytest.raises(InvalidStatus) as refused, call(server, origin=origin):
        pass
    assert refused.value.response.status_code == 403
    assert b"--allow-origin" in refused.value.response.body
    assert f"refused a connection from a web page of {origin}; --allow-origin" in caplog.text
    with call(server) as caller:  # who is no page is let in
        caller.reset()
        assert caller.act().action == 2


@pytest.mark.parametrize("allowed", [["HTTPS://Evil.example.org"], ["http://a:3000", ORIGIN], ["*"]])
def test_web_pages_that_are_allowed_may_connect(allowed):
    with PolicyServer(Recorder, port=0, allow_origins=allowed) as server, call(server, origin=ORIGIN) as page:
        page.reset()
        assert page.act().action == 2


@pytest.mark.parametrize("wrong", [["https://a.org/page"], ["a.org"], [""], "https://a.org"])
def test_what_is_no_origin_is_refused(wrong):
    with pytest.raises(UserError, match=r"allow_origins: expected .* origin"):
        PolicyServer(Recorder, allow_origins=wrong)


def test_a_page_that_is_allowed_still_needs_the_token():
    with PolicyServer(Recorder, port=0, token="secret", allow_origins=[ORIGIN]) as server:
        with pytest.raises(InvalidStatus) as refused, call(server, origin=ORIGIN):
            pass
        assert refused.value.response.status_code == 401
        with call(server, origin=ORIGIN, token="secret") as page:
            page.reset()


def test_a_policy_that_is_stuck_does_not_hold_up_the_end(slow, caplog):
    server = PolicyServer(lambda: slow, port=0)
    server.start()
    with call(server) as caller:
        caller.reset()
        caller.ask()
        assert slow.asked.wait(30)
        server.shutdown(grace_s=0.01)
        assert closed_with(caller) == 1001
    assert "its policy did not finish within 0.01 s" in caplog.text
    assert not slow.is_closed
    slow.may_answer.set()
    wait_for(lambda: slow.is_closed)


def test_a_policy_that_cannot_be_closed_does_not_hold_up_the_end_either(caplog):
    may_close = threading.Event()

    class Clinging(Recorder):
        def close(self):
            may_close.wait(30)

    server = PolicyServer(Clinging, port=0)
    server.start()
    ending = threading.Thread(target=server.shutdown, args=(0.01,))
    ending.start()
    ending.join(20)
    is_held_up = ending.is_alive()
    may_close.set()
    ending.join()
    assert not is_held_up
    assert "the policy could not be closed within 0.01 s" in caplog.text


def test_serve_runs_until_it_is_shut_down(caplog):
    caplog.set_level(logging.INFO, logger="proctor.server")
    seen = []

    def on_ready(server):
        with call(server) as caller:
            caller.reset()
            seen.append(caller.act().action)
            caller.send(EpisodeEnd(session_id="s", status="failure", metrics={}, num_steps=1))
        threading.Thread(target=server.shutdown).start()

    serve(ForwardPolicy, port=0, on_ready=on_ready)
    assert seen == [1]
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "session 1: begins, from 127.0.0.1",
        "session 1: episode ep: failure, 1 steps",
        "session 1: ends",
    ]
