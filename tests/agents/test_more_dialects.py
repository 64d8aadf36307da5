"""The policy servers of RoboArena, XPolicyLab, VLN-CE-Docker and GR00T, and servers that are refused."""

import http.server
import io
import re
import threading
from concurrent import futures
from contextlib import contextmanager

import grpc
import msgpack
import msgpack_numpy
import numpy as np
import pytest
from policy_servers import (
    Gr00t,
    briefing,
    listening,
    modality,
    roboarena,
    serving,
    serving_zmq,
    soon,
    vln_ce_docker,
    xpolicylab,
)

from proctor.agents import handshake, zmtp_connection
from proctor.agents.dialects.mapping import ActionMapping, Mapping
from proctor.agents.dialects.packed_arrays import read_value
from proctor.agents.handshake import Address, load_dialects, open_session
from proctor.agents.messages import BadFrame
from proctor.agents.websocket_policy import WebSocketPolicy
from proctor.core.errors import AgentFault, AgentUnavailable, UserError
from proctor.core.types import Outcome
from proctor.exams.driving import parse_driving_action

RGB = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
DEPTH = np.full((48, 64), 2500, np.uint16)
VLN = {"rgb": RGB, "depth": DEPTH}
ARM = {
    "rgb_head": RGB,
    "rgb_wrist": RGB[:24],
    "qpos": np.arange(10.0),
    "ee_pose": np.arange(7.0),
    "gripper_state": 0.04,
}
OUTCOME = Outcome(status="success", metrics={"success": 1.0}, num_steps=3)


@contextmanager
def talking(url, dialect="auto", mapping=None, token=None):
    address = Address(url=url, token=token)
    connection, found, _ = open_session(address, soon(), dialects=load_dialects(dialect), mapping=mapping)
    try:
        yield found
    finally:
        connection.drop()


def answers(url, dialect="auto", mapping=None, *, task="vln", asks=1):
    seen = {"vln": VLN, "pick_and_place": ARM}[task]
    with talking(url, dialect, mapping) as agent:
        agent.begin(briefing(task), soon())
        found = [agent.ask(seen, soon()) for _ in range(asks)]
        agent.end(OUTCOME, soon())
        return found


def fault_of(url, dialect="auto", mapping=None, *, task="vln"):
    with pytest.raises(AgentFault) as caught:
        answers(url, dialect, mapping, task=task)
    assert "\n" not in str(caught.value)
    return caught.value.kind, str(caught.value)


# RoboArena


def test_roboarena_gets_what_its_configuration_says_and_is_reset_after_each_episode():
    seen, resets = [], []

    def infer(observation):
        seen.append(observation)
        return {"actions": np.tile(np.arange(7, dtype=np.float32), (15, 1))}

    with (
        serving(roboarena(infer, resets, image_resolution=[180, 320])) as url,
        talking(url) as agent,
    ):
        assert agent.name == "roboarena"
        for _ in range(2):
            agent.begin(briefing("pick_and_place"), soon())
            answer = agent.ask(ARM, soon())
            agent.end(OUTCOME, soon())
    assert answer == {"type": "joint_position", "qpos": [0, 1, 2, 3, 4, 5, 6]}
    assert [reset["session_id"] for reset in resets] == ["e1"] * 3, "at first, and after each episode"
    pictures = ("observation/exterior_image_0_left", "observation/wrist_image_left")
    assert [seen[0][name].shape for name in pictures] == [(180, 320, 3)] * 2
    assert seen[0]["observation/gripper_position"].tolist() == [0.04]
    assert (seen[0]["session_id"], seen[0]["prompt"]) == ("e1", "go left")


def test_roboarena_takes_navigation_too_and_keeps_sessions_apart():
    resets = []
    server = roboarena(
        lambda _: {"actions": np.ones((3, 1))}, resets, needs_session_id=True, image_resolution=None
    )
    with serving(server) as url:
        assert answers(url) == [1]
        assert len(resets) == 1, "a server that is told sessions needs no reset before the first"


@pytest.mark.parametrize("space", ["cartesian_velocity", "joint_velocity"])
def test_roboarena_with_actions_that_the_exam_does_not_have(space):
    with serving(roboarena(lambda _: {"actions": np.zeros((1, 8))}, action_space=space)) as url:
        kind, text = fault_of(url, task="pick_and_place")
        assert kind == "protocol_mismatch"
        assert f"'{space}', expected joint_position or ee_pose_target; 'action.kind'" in text
        mapping = Mapping(resize={}, action=ActionMapping(kind="ee_pose_target"))
        assert answers(url, mapping=mapping, task="pick_and_place")[0]["type"] == "ee_pose_target"


def test_roboarena_joints_of_another_robot_are_not_taken_for_a_pose():
    with serving(roboarena(lambda _: {"actions": np.zeros((1, 8))})) as url:
        assert answers(url, task="pick_and_place")[0]["type"] == "joint_position", (
            "the exam refuses 8 of them"
        )


@pytest.mark.parametrize("reset", ["a\nTraceback\nKeyError: 'e1'", b"\x80"])
def test_roboarena_cannot_reset(reset):
    async def handle(websocket):
        await websocket.send(msgpack.packb({"action_space": "joint_position", "needs_session_id": False}))
        async for _ in websocket:
            await websocket.send(reset)

    with serving(handle) as url:
        kind, text = fault_of(url)
    assert kind == "agent_error"
    assert re.search(r"did not reset: (KeyError: 'e1'|1 bytes)", text)


# XPolicyLab


def test_xpolicylab_is_told_of_episodes_and_sees_its_own_names():
    heard = []
    action = {"arm_joint_state": np.arange(6, dtype=np.float32), "ee_joint_state": np.array([0.5])}
    with serving(xpolicylab(lambda _: [action, action], heard)) as url:
        (answer,) = answers(url, "xpolicylab", task="pick_and_place")
    assert answer == {"type": "joint_position", "qpos": [0, 1, 2, 3, 4, 5, 0.5]}
    assert [message["message_type"] for message in heard] == ["hello", "reset", "infer", "trial_end"]
    assert len({message["message_id"] for message in heard}) == 4
    seen = heard[2]["payload"]["observation"]
    np.testing.assert_array_equal(seen["vision"]["cam_head"]["color"], RGB)
    np.testing.assert_array_equal(seen["vision"]["cam_wrist"]["color"], RGB[:24])
    assert seen["state"]["ee_joint_state"].tolist() == [0.04]
    assert seen["instruction"] == "go left"
    assert heard[3]["payload"]["status"] == "success"


@pytest.mark.parametrize(
    ("actions", "task", "expected"),
    [
        (np.array([[2.0], [1.0]]), "vln", 2),
        (3, "vln", 3),
        (
            [{"ee_pose": np.arange(7.0), "ee_joint_state": np.array([0.1])}],
            "pick_and_place",
            {"type": "ee_pose_target", "ee_pose_target": [0, 1, 2, 3, 4, 5, 6], "gripper_action": 0.1},
        ),
    ],
)
def test_xpolicylab_actions(actions, task, expected):
    with serving(xpolicylab(lambda _: actions)) as url:
        assert answers(url, "xpolicylab", task=task) == [expected]


def test_xpolicylab_chunks():
    with serving(xpolicylab(lambda _: np.array([[1], [2], [3]]))) as url:
        mapping = Mapping(action=ActionMapping(chunk=2))
        assert answers(url, "xpolicylab", mapping, asks=3) == [1, 2, 1]


@pytest.mark.parametrize(
    ("actions", "kind", "words"),
    [
        ([{"left_arm_joint_state": np.zeros(7)}], "wrong_message", "one arm.*found left_arm_joint_state"),
        ([{}], "wrong_message", "found nothing"),
        ("forward", "malformed_frame", "expected numbers, found str"),
        (None, "malformed_frame", "found NoneType"),
        ([[1], [2, 3]], "malformed_frame", "expected numbers"),
        (np.zeros((0, 1)), "wrong_action_length", r"shape \(0, 1\)"),
        (np.zeros(40_000), "frame_too_big", "more than 262144 bytes"),
        (np.array([None, 1]), "malformed_frame", "only unpickling"),
        (np.array([1 + 2j]), "malformed_frame", "found '<c16'"),
    ],
)
def test_xpolicylab_replies_that_are_no_action(actions, kind, words):
    with serving(xpolicylab(lambda _: actions)) as url:
        found, text = fault_of(url, "xpolicylab")
    assert found == kind
    assert re.search(words, text), text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"message_id": "other"}, "found one to another message"),
        ({"message_type": "heartbeat_ack"}, "expected a message of type 'hello_ack', found 'heartbeat_ack'"),
        ({"message_id": 7}, "a message of XPolicyLab"),
        ({"payload": [1]}, "expected a map as payload, found list"),
    ],
)
def test_xpolicylab_replies_to_hello_that_are_none(changes, words):
    with serving(xpolicylab(lambda _: 1, **changes)) as url:
        kind, text = fault_of(url, "xpolicylab")
    assert kind in ("protocol_mismatch", "stale_reply")
    assert words in text


def test_xpolicylab_says_why_it_failed():
    def infer(_):
        raise ValueError("no GPU")

    with serving(xpolicylab(infer)) as url:
        assert fault_of(url, "xpolicylab") == ("agent_error", "the server failed: no GPU")


def test_a_silent_server_may_be_xpolicylabs():
    with serving(xpolicylab(lambda _: 1)) as url:
        policy = WebSocketPolicy(url, action_timeout_s=0.3)
        policy.reset(briefing())
        with pytest.raises(AgentFault, match="dialect=xpolicylab"):
            policy.act(VLN)
        policy.close()


# VLN-CE-Docker


def test_vln_ce_docker_is_known_by_its_hello():
    heard = []
    with serving(vln_ce_docker(lambda _: 3, heard)) as url:
        assert answers(url, asks=2) == [3, 3]
        with talking(url) as agent:
            assert agent.name == "vln-ce-docker"
    hello, start, first, second, last = heard[:5]
    assert hello["protocol_version"] == "1.1"
    assert start["instruction"] == {"text": "go left", "tokens": None, "trajectory_id": ""}
    assert [message["step"] for message in (first, second, last)] == [0, 1, 2]
    assert [message["done"] for message in (first, second, last)] == [False, False, True]
    assert first["rgb"].shape == (224, 224, 3)
    assert (first["depth"].shape, first["depth"].dtype) == ((256, 256, 1), np.float32)
    assert first["depth"].max() == np.float32(0.25), "2.5 m of 10 m"


def test_vln_ce_docker_may_stop_by_name():
    with serving(vln_ce_docker(lambda _: {"action": "STOP"})) as url:
        assert answers(url) == [0]


@pytest.mark.parametrize(
    ("action", "kind", "words"),
    [
        (
            {"action": "GO_TOWARD_POINT", "action_args": {"r": 1.0}},
            "wrong_message",
            "found 'GO_TOWARD_POINT'",
        ),
        (4, "invalid_action", "4"),  # LOOK_UP
        ("FORWARD", "malformed_frame", "expected numbers"),
        (None, "malformed_frame", "expected numbers"),
    ],
)
def test_vln_ce_docker_actions_that_the_exam_does_not_have(action, kind, words):
    with serving(vln_ce_docker(lambda _: action)) as url, talking(url) as agent:
        agent.begin(briefing(), soon())
        with pytest.raises(AgentFault, match=words) as caught:
            parse_driving_action(agent.ask(VLN, soon()))
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        ({"observation_mode": "panoramic", "num_panos": 12}, "panoramic pictures.*serve one with egocentric"),
        ({"action_type": "waypoint"}, "waypoint actions"),
        ({"rgb_shape": [2**40, 1, 3]}, "rgb_shape"),
        ({"depth_shape": [256]}, "depth_shape"),
        ({"rgb_shape": "big"}, "server_hello"),
    ],
)
def test_vln_ce_docker_that_wants_what_we_cannot_show(capabilities, words):
    with serving(vln_ce_docker(lambda _: 1, **capabilities)) as url:
        kind, text = fault_of(url)
    assert kind == "protocol_mismatch"
    assert re.search(words, text), text


def test_vln_ce_docker_that_refuses_us():
    async def handle(websocket):
        await websocket.send(msgpack.packb({"type": "server_hello", "protocol_version": "1.1"}))
        await websocket.recv()
        refusal = {"type": "handshake_complete", "status": "error", "message": "mode mismatch"}
        await websocket.send(msgpack.packb(refusal))

    with serving(handle) as url:
        assert "did not complete the handshake: mode mismatch" in fault_of(url)[1]


# GR00T


def arm_server(act, **options):
    video, state = modality(["head", "wrist"], [-1, 0]), modality(["qpos"])
    return Gr00t(act, video=video, state=state, **options)


def chunk(*_):
    return {"a": np.tile(np.arange(7, dtype=np.float32), (1, 16, 1))}


def test_gr00t_sees_batches_with_a_past_and_answers_in_streams():
    seen = []

    def act(observation):
        seen.append(observation)
        return {"arm": np.zeros((1, 16, 6), np.float32), "gripper": np.ones((1, 16, 1), np.float32)}

    server = arm_server(act, action=modality(["arm", "gripper"], range(16)))
    with serving_zmq(server.reply) as url, talking(url) as agent:
        assert agent.name == "gr00t"
        for _ in range(2):
            agent.begin(briefing("pick_and_place"), soon())
            answers_ = [agent.ask({**ARM, "rgb_head": RGB // (n + 1)}, soon()) for n in range(2)]
            agent.end(OUTCOME, soon())
    assert answers_ == [{"type": "joint_position", "qpos": [0, 0, 0, 0, 0, 0, 1]}] * 2
    endpoints = [request["endpoint"] for request in server.heard]
    assert endpoints == ["get_modality_config", *["reset", "get_action", "get_action"] * 2]
    assert seen[0]["video"]["head"].shape == (1, 2, 48, 64, 3)
    np.testing.assert_array_equal(seen[2]["video"]["head"][0], [RGB, RGB], "the past ends with the episode")
    np.testing.assert_array_equal(seen[3]["video"]["head"][0], [RGB, RGB // 2])
    assert (seen[0]["state"]["qpos"].dtype, seen[0]["state"]["qpos"].shape) == (np.float32, (1, 1, 10))
    assert seen[0]["language"] == {"task": [["go left"]]}


def test_gr00t_with_modalities_as_older_versions_write_them_and_a_mapping():
    server = Gr00t(
        lambda seen: {"a": np.full((1, 4, 1), len(seen["video"])), "b": np.zeros((1, 4, 2))},
        video=modality(["ego_view"], as_text=True),
        language=modality(["annotation.human.task"], as_text=True),
    )
    mapping = Mapping(
        observation={"video": {"ego_view": "rgb"}, "language": {"annotation.human.task": "instruction"}},
        resize={"rgb": (24, 32)},
        action=ActionMapping(key="a", chunk=3),
    )
    with serving_zmq(server.reply) as url:
        assert answers(url, mapping=mapping, asks=4) == [1, 1, 1, 1]
        kind, text = fault_of(url)
    actions = [request for request in server.heard if request["endpoint"] == "get_action"]
    assert len(actions) == 2
    assert actions[0]["data"]["observation"]["video"]["ego_view"].shape == (1, 1, 24, 32, 3)
    assert kind == "protocol_mismatch"
    assert "the model wants video ego_view, but is sent head; name its keys in a mapping file" in text


def test_gr00t_with_a_token():
    with serving_zmq(arm_server(chunk, token="open sesame").reply) as url:
        kind, text = fault_of(url, task="pick_and_place")
        assert (kind, "PROCTOR_AGENT_TOKEN" in text) == ("protocol_mismatch", True)
        with talking(url, token="open sesame") as agent:
            agent.begin(briefing("pick_and_place"), soon())
            assert agent.ask(ARM, soon())["qpos"] == [0, 1, 2, 3, 4, 5, 6]


def npy(data):
    return {"__ndarray_class__": True, "as_npy": data}


OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([None, 1]), allow_pickle=True)
HUGE = io.BytesIO()
np.lib.format.write_array_header_1_0(HUGE, {"descr": "<f4", "fortran_order": False, "shape": (2**40,)})


@pytest.mark.parametrize(
    ("action", "kind", "words"),
    [
        ({"b": np.zeros((1, 2, 7))}, "wrong_message", "has no 'a', only b"),
        ({"a": np.zeros((2, 7))}, "wrong_message", r"shape \(1, steps, numbers\), found \(2, 7\)"),
        ({"a": np.zeros((2, 2, 7))}, "wrong_message", "expected streams"),
        ({"a": np.zeros((1, 0, 7))}, "wrong_action_length", "found shape"),
        ({"a": "left"}, "malformed_frame", "expected numbers"),
        ([1], "wrong_message", "map of action streams, found list"),
        ({"a": np.array([None])}, "malformed_frame", "only unpickling"),
        (
            {"a": {"__ndarray_class__": True, "as_npy": OBJECTS.getvalue()}},
            "malformed_frame",
            "only unpickling",
        ),
        ({"a": {"__ndarray_class__": True, "as_npy": HUGE.getvalue()}}, "malformed_frame", "found 0"),
        ({"a": {"__ndarray_class__": True, "as_npy": b"\x93NUMPY"}}, "malformed_frame", "not a .npy file"),
        ({"a": {"__ndarray_class__": True}}, "malformed_frame", "the bytes 'as_npy'"),
    ],
)
def test_gr00t_replies_that_are_no_action(action, kind, words):
    with serving_zmq(arm_server(lambda _: action).reply) as url:
        found, text = fault_of(url, task="pick_and_place")
    assert found == kind
    assert re.search(words, text), text


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"ERROR", "pickled tensors.*N1.6 or later"),
        (b"PK\x03\x04data.pkl", "pickled tensors"),
        (b"\x80\x04.", "pickled tensors"),
        (b"\xc1", "not the msgpack"),
        (b"\x91" * 100_000, "nested without end"),
        ({"video": 7}, "expected a modality"),
        ({"video": modality(["x"], [-(10**6)])}, "at most 100 steps"),
        ([1], "expected modalities, found list"),
        ({"error": "no\nGPU"}, "the server failed: GPU"),
        ({"error": "Unknown endpoint: reset"}, "older than GR00T N1.6"),
    ],
)
def test_gr00t_servers_that_are_none(reply, words):
    with serving_zmq(lambda _: reply) as url:
        _, text = fault_of(url)
    assert re.search(words, text), text


def test_gr00t_that_is_not_there_or_goes_away():
    with serving_zmq(arm_server(chunk).reply) as url:
        pass
    with pytest.raises(AgentUnavailable, match="nobody answers at"):
        answers(url)
    policy = WebSocketPolicy(url, connect_timeout_s=0.2)
    with pytest.raises(UserError, match="nobody answers at"):
        policy.check()
    server = arm_server(chunk)
    server.get_action = lambda **_: None
    replies = iter(range(2))

    def reply(frame):
        return server.reply(frame) if next(replies, None) is not None else None

    with serving_zmq(reply) as url:
        assert fault_of(url, task="pick_and_place")[0] == "agent_disconnected"


def test_gr00t_that_sends_too_much_or_nothing():
    with serving_zmq(lambda _: bytes(2 << 20)) as url:
        assert fault_of(url) == ("frame_too_big", "a frame of more than 1048576 bytes")
    may_end = threading.Event()
    server = arm_server(chunk)

    def act(_):
        may_end.wait(30)
        return chunk()

    server.act = act
    with serving_zmq(server.reply) as url:
        policy = WebSocketPolicy(url, action_timeout_s=0.3)
        policy.reset(briefing("pick_and_place"))
        with pytest.raises(AgentFault, match=r"no reply in time \(0.3 s\)"):
            policy.act(ARM)
        policy.close()
        may_end.set()


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REP"
REPLY = b"\x01\x00\x00\x01\x80"  # an empty part, and an empty map


@pytest.mark.parametrize(
    ("sent", "kind", "words"),
    [
        (GREETING + READY + b"\x01\x00" + b"\x01\x02ab" * 1000, "malformed_frame", "a reply of one part"),
        (GREETING + READY + b"\x01\x00\x02" + b"\xff" * 8, "frame_too_big", "more than 1048576"),
        (GREETING + READY + b"\x88\x00", "malformed_frame", "flags 0x88"),
        (GREETING + READY + REPLY, "unasked_message", "not been asked for"),
        (GREETING + READY.replace(b"REP", b"PUB"), "protocol_mismatch", "its socket takes no requests"),
        (GREETING + b"\x04\x08\x05ERROR\x01a", "protocol_mismatch", "complete ZeroMQ's handshake"),
        (GREETING.replace(b"NULL", b"CURV"), "protocol_mismatch", "or encrypted"),
        (GREETING + b"\x06" + b"\xff" * 8, "protocol_mismatch", "more than 4096 bytes"),
    ],
)
def test_zeromq_of_a_hostile_server(sent, kind, words):
    def talk(line):
        begin, heard = len(GREETING + READY), b""
        if kind not in ("malformed_frame", "frame_too_big"):  # these come as replies
            return line.sendall(sent)
        line.sendall(sent[:begin])
        while b"get_modality_config" not in heard:
            heard += line.recv(1 << 16)
        return line.sendall(sent[begin:])

    with listening(talk) as url:
        found, text = fault_of(url.replace("ws://", "gr00t+tcp://"))
    assert found == kind
    assert words in text


def test_gr00t_is_not_spoken_elsewhere(monkeypatch):
    with pytest.raises(UserError, match=r"dialect 'gr00t' is for addresses of gr00t\+tcp://, found ws://"):
        answers("ws://127.0.0.1:1", "gr00t")
    with pytest.raises(UserError, match=r"dialect 'openpi' is for addresses of ws:// or wss://"):
        answers("gr00t+tcp://127.0.0.1:1", "openpi")
    monkeypatch.setattr(zmtp_connection, "HANDSHAKE_S", 0.3)
    with listening(lambda line: line.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as url:
        kind, text = fault_of(url.replace("ws://", "gr00t+tcp://"))
    assert (kind, "not a server for ZeroMQ requests" in text) == ("protocol_mismatch", True)


# Arrays of msgpack_numpy, and servers that are refused


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.zeros((0, 2), ">i4"), np.float32(2.5)])
def test_arrays_of_the_real_package_are_read(array):
    found = read_value(msgpack.packb({"x": [array]}, default=msgpack_numpy.encode))["x"][0]
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({b"kind": b"O"}, "only unpickling"),
        ({b"type": "|O"}, "found '|O'"),
        ({b"type": [["x", "<f4"]], b"kind": b"V"}, "the text 'type'"),
        ({b"shape": [2**40, 2**40]}, "found 8"),
        ({b"shape": [-2]}, "shape"),
        ({b"data": "text"}, "the bytes 'data'"),
    ],
)
def test_broken_arrays_of_msgpack_numpy(changes, words):
    parts = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [2], b"data": bytes(8)}
    with pytest.raises(BadFrame, match=re.escape(words)):
        read_value(msgpack.packb({**parts, **changes}))


def test_a_column_major_npy_file():
    file, array = io.BytesIO(), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.save(file, array)
    packed = msgpack.packb({"__ndarray_class__": True, "as_npy": file.getvalue()})
    np.testing.assert_array_equal(read_value(packed), array)


def refusal(url):
    with pytest.raises(AgentFault) as caught:
        open_session(Address(url=url), soon(60))
    assert caught.value.kind == "protocol_mismatch"
    return str(caught.value)


@pytest.fixture
def patient(monkeypatch):
    """Wait for servers that speak first as long as a busy machine needs."""
    monkeypatch.setattr(handshake, "LISTEN_S", 10.0)


@pytest.mark.usefixtures("patient")
def test_a_grpc_server_such_as_lerobots_is_refused_with_what_to_do():
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        text = refusal(f"ws://127.0.0.1:{port}")
    finally:
        server.stop(0).wait()
    assert re.search(r"gRPC server, as LeRobot's.*pickled.*`proctor serve-policy my_agent:Agent`", text), text


@pytest.mark.usefixtures("patient")
def test_a_zeromq_server_at_a_websocket_address_is_named():
    with serving_zmq(arm_server(chunk).reply) as url:
        text = refusal(url.replace("gr00t+tcp://", "ws://"))
    assert f"is a ZeroMQ server: if it is GR00T's, write {url}" in text


@contextmanager
def web_server(pages):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = pages.get(self.path, b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_http_server_is_named():
    with web_server({}) as place:
        assert refusal(f"ws://{place}").endswith("is an HTTP server, but has no WebSocket there (status 404)")


def test_the_api_of_a_chat_model_is_named():
    with web_server({"/v1/models": b'{"object": "list", "data": [{"id": "m"}]}'}) as place:
        text = refusal(f"ws://{place}")
    assert text.endswith(f"by OpenAI's API: write chat+http://{place}/v1 and the option model=NAME")
