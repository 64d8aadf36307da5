import re
from contextlib import contextmanager

import msgpack
import msgspec
import numpy as np
import pytest
from policy_servers import briefing, openpi, pack_openpi, serving, soon, vla_eval

from proctor.agents.dialects.mapping import ActionMapping, Mapping
from proctor.agents.dialects.packed_arrays import read_numbers
from proctor.agents.handshake import Address, load_dialects, open_session
from proctor.agents.messages import BadFrame
from proctor.core.errors import AgentFault, UserError
from proctor.core.types import Outcome
from proctor.exams.driving import parse_driving_action
from proctor.exams.pick_place.actions import parse_manipulation_action

RGB = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
ARM = {"rgb_head": RGB, "rgb_wrist": RGB[:24], "qpos": np.arange(10.0)}
OUTCOME = Outcome(status="success", metrics={"success": 1.0}, num_steps=3)
AS_IT_IS = Mapping(resize={})
PARSERS = {"vln": parse_driving_action, "pick_and_place": parse_manipulation_action}
"""The exams' own: nothing else parses an answer."""


@contextmanager
def talking(handler, dialect, mapping=AS_IT_IS):
    with serving(handler) as url:
        dialects = load_dialects(dialect)
        connection, found, _ = open_session(Address(url=url), soon(), dialects=dialects, mapping=mapping)
        yield found
        connection.drop()


def fault_of(handler, dialect="openpi", mapping=AS_IT_IS, *, task="vln"):
    with talking(handler, dialect, mapping) as agent:
        agent.begin(briefing(task), soon())
        with pytest.raises(AgentFault) as caught:
            PARSERS[task](agent.ask({"rgb": RGB, **ARM}, soon()))
    assert "\n" not in str(caught.value)
    return caught.value.kind, str(caught.value)


def actions_of(reply, mapping=AS_IT_IS, *, task="vln", dialect="openpi", asks=1):
    """Return the actions that an agent takes of a server that always replies the same."""
    serve_as = {"openpi": openpi, "vla-eval": vla_eval}[dialect]
    with talking(serve_as(lambda _: reply), dialect, mapping) as agent:
        agent.begin(briefing(task), soon())
        return [agent.ask({"rgb": RGB, **ARM}, soon()) for _ in range(asks)]


@pytest.mark.parametrize("dialect", ["openpi", "vla-eval"])
@pytest.mark.parametrize("view", ["plain", "flipped", "read-only", "column-major"])
def test_pictures_arrive_as_they_are(dialect, view):
    pictures = {"plain": RGB, "flipped": RGB[::-1, ::-1], "read-only": RGB.copy()}
    pictures |= {"column-major": np.asfortranarray(RGB)}
    pictures["read-only"].flags.writeable = False
    seen = []

    def infer(observation):
        seen.append(observation)
        return {"actions": np.array([3], np.int64)}

    serve_as = {"openpi": openpi, "vla-eval": vla_eval}[dialect]
    with talking(serve_as(infer), dialect) as agent:
        agent.begin(briefing(), soon())
        assert agent.ask({"rgb": pictures[view]}, soon()) == 3
    if dialect == "openpi":
        assert seen[0].keys() == {"observation/image", "prompt"}
        found, text = seen[0]["observation/image"], seen[0]["prompt"]
    else:
        assert seen[0].keys() == {"images", "task_description"}
        found, text = seen[0]["images"]["head"], seen[0]["task_description"]
        assert found.flags.writeable
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, pictures[view])
    assert text == "go left"


@pytest.mark.parametrize("dialect", ["openpi", "vla-eval"])
def test_an_arm_is_shown_its_joints_and_both_cameras(dialect):
    seen = []

    def infer(observation):
        seen.append(observation)
        return {"actions": np.arange(10, dtype=np.float32)}

    serve_as = {"openpi": openpi, "vla-eval": vla_eval}[dialect]
    with talking(serve_as(infer), dialect) as agent:
        agent.begin(briefing("pick_and_place"), soon())
        action = agent.ask(ARM, soon())
    assert action == {"type": "joint_position", "qpos": [float(i) for i in range(10)]}
    if dialect == "openpi":
        names = ("observation/image", "observation/wrist_image", "observation/state")
        head, wrist, state = (seen[0][name] for name in names)
    else:
        head, wrist, state = seen[0]["images"]["head"], seen[0]["images"]["wrist"], seen[0]["states"]
    np.testing.assert_array_equal(head, RGB)
    np.testing.assert_array_equal(wrist, RGB[:24])
    np.testing.assert_array_equal(state, np.arange(10.0))


def test_openpi_gets_small_pictures_unless_told_otherwise():
    shapes = []

    def infer(observation):
        shapes.append(observation["observation/image"].shape)
        return {"actions": np.zeros(1)}

    for mapping in (None, Mapping(resize={"rgb": (30, 20)}), AS_IT_IS):
        with talking(openpi(infer), "openpi", mapping) as agent:
            agent.begin(briefing(), soon())
            agent.ask({"rgb": RGB}, soon())
    assert shapes == [(224, 224, 3), (30, 20, 3), (48, 64, 3)]


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (np.array([1.0], np.float32), 1),
        (np.array([[2.0], [1.0]]), 2),
        (np.array(3), 3),
        (np.int64(3), 3),
        ([[0]], 0),
        (2, 2),
        (np.array([0.9999999]), 1),
        (np.array([1.4]), 1.4),  # the task says what is wrong with it
        (np.array([7]), 7),
    ],
)
def test_the_number_of_an_action(actions, expected):
    (found,) = actions_of({"actions": actions})
    assert found == expected
    assert type(found) is type(expected)


def test_scores_of_actions():
    mapping = Mapping(resize={}, action=ActionMapping(kind="scores"))
    assert actions_of({"actions": np.array([0.1, -2.0, 0.7, 0.2])}, mapping) == [2]
    assert actions_of({"actions": np.array([-np.inf, -9.0, -np.inf, -np.inf])}, mapping) == [1]
    for scores, kind in (([0.1, np.nan, 0.7, 0.2], "action_not_finite"), ([1.0, 2.0], "wrong_action_length")):
        assert fault_of(openpi(lambda _, s=scores: {"actions": np.array(s)}), mapping=mapping)[0] == kind


@pytest.mark.parametrize("dialect", ["openpi", "vla-eval"])
def test_a_chunk_is_done_row_by_row_and_forgotten_with_its_episode(dialect):
    asked = []

    def infer(observation):
        asked.append(observation)
        return {"actions": np.array([[1.0], [2.0], [3.0], [0.0]], np.float32)}

    serve_as = {"openpi": openpi, "vla-eval": vla_eval}[dialect]
    mapping = Mapping(resize={}, action=ActionMapping(chunk=3))
    with talking(serve_as(infer), dialect, mapping) as agent:
        agent.begin(briefing(), soon())
        assert [agent.ask({"rgb": RGB}, soon()) for _ in range(5)] == [1, 2, 3, 1, 2]
        assert len(asked) == 2
        agent.begin(briefing(), soon())
        assert agent.ask({"rgb": RGB}, soon()) == 1
        assert len(asked) == 3


def test_a_chunk_shorter_than_asked_for():
    mapping = Mapping(resize={}, action=ActionMapping(chunk=50))
    assert actions_of({"actions": np.array([[1.0], [2.0]])}, mapping, asks=3) == [1, 2, 1]


def test_a_fault_in_a_later_row_is_that_rows():
    mapping = Mapping(resize={}, action=ActionMapping(chunk=2))
    with talking(openpi(lambda _: {"actions": np.array([[1.0], [np.nan]])}), "openpi", mapping) as agent:
        agent.begin(briefing(), soon())
        assert parse_driving_action(agent.ask({"rgb": RGB}, soon())) == 1
        with pytest.raises(AgentFault, match="float nan"):
            parse_driving_action(agent.ask({"rgb": RGB}, soon()))


@pytest.mark.parametrize(
    ("length", "kind", "expected"),
    [
        (7, None, {"type": "joint_position", "qpos": [0, 1, 2, 3, 4, 5, 6]}),
        (10, None, {"type": "joint_position", "qpos": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}),
        (8, None, {"type": "ee_pose_target", "ee_pose_target": [0, 1, 2, 3, 4, 5, 6], "gripper_action": 7}),
        (8, "joint_position", {"type": "joint_position", "qpos": [0, 1, 2, 3, 4, 5, 6, 7]}),
    ],
)
def test_rows_for_an_arm(length, kind, expected):
    mapping = Mapping(resize={}, action=ActionMapping(kind=kind))
    rows = {"actions": np.tile(np.arange(length, dtype=np.float32), (50, 1))}
    assert actions_of(rows, mapping, task="pick_and_place") == [expected]


@pytest.mark.parametrize(
    ("actions", "task", "kind", "words"),
    [
        (np.zeros(4), "vln", "wrong_action_length", "set 'action.kind' in the mapping to 'scores'"),
        (np.zeros(3), "vln", "wrong_action_length", r"shape \(n, 1\)"),
        (np.zeros((2, 3, 4)), "vln", "wrong_action_length", r"found shape \(2, 3, 4\)"),
        (np.zeros((0, 1)), "vln", "wrong_action_length", r"found shape \(0, 1\)"),
        (np.array([np.nan]), "vln", "action_not_finite", "nan"),
        (np.array([np.inf]), "vln", "action_not_finite", "inf"),
        (np.array([-np.inf]), "vln", "action_not_finite", "inf"),
        (np.zeros(6), "pick_and_place", "wrong_action_length", r"7 or 10 \(joint_position\).*found 6"),
        (np.full(10, np.nan), "pick_and_place", "action_not_finite", "nan"),
        ("forward", "vln", "malformed_frame", "expected numbers, found str"),
        (None, "vln", "malformed_frame", "found NoneType"),
        ([1, "2"], "vln", "malformed_frame", "found list"),
        ([[1], [2, 3]], "vln", "malformed_frame", "expected numbers"),
        (np.zeros(40_000), "vln", "frame_too_big", "more than 262144 bytes"),
    ],
)
def test_replies_that_are_no_action(actions, task, kind, words):
    found, text = fault_of(openpi(lambda _: {"actions": actions}), task=task)
    assert found == kind
    assert re.search(words, text), text


def test_another_key_for_the_action():
    """As BEHAVIOR's servers have it."""
    server = openpi(lambda _: {"action": np.array([1.0])})
    kind, text = fault_of(server)
    assert kind == "wrong_message"
    assert text.startswith("the reply has no 'actions', only action, server_timing; 'action.key'")
    mapping = Mapping(resize={}, action=ActionMapping(key="action"))
    assert actions_of({"action": np.array([1.0])}, mapping) == [1]


def test_what_a_server_writes_stays_on_one_line():
    kind, text = fault_of(openpi(lambda _: {"action\x1b[2J\n": 1, "x" * 9999: 2}))
    assert kind == "wrong_message"
    assert "\x1b" not in text
    assert len(text) < 500


ARRAY = {"__ndarray__": True, "data": bytes(8), "dtype": "<f4", "shape": [2]}


@pytest.mark.parametrize("key", [str, str.encode])
def test_arrays_are_read_with_keys_of_either_kind(key):
    def packed(**changes):
        parts = {key(name): part for name, part in (ARRAY | changes).items()}
        return msgspec.Raw(msgpack.packb(parts))

    assert read_numbers(packed()).tolist() == [0.0, 0.0]
    assert read_numbers(packed(dtype="|u1", data=b"\x01\x02")).tolist() == [1.0, 2.0]
    assert read_numbers(packed()).flags.writeable
    for changes, words in (
        ({"dtype": "O"}, "found 'O'"),
        ({"dtype": "<V2"}, "found '<V2'"),
        ({"dtype": "<c8"}, "found '<c8'"),
        ({"dtype": "f4,f4"}, "found 'f4,f4'"),
        ({"dtype": "<f3"}, "expected numbers"),
        ({"dtype": "U" * 9999}, "found 'U{40}'"),
        ({"dtype": 7}, "the text 'dtype'"),
        ({"shape": [3]}, "needs 12 bytes, found 8"),
        ({"shape": [-2]}, "shape"),
        ({"shape": [-1, -2]}, "shape"),
        ({"shape": [True, 2]}, "shape"),
        ({"shape": [2**40, 2**40]}, "found 8"),
        ({"shape": [1] * 40}, "shape"),
        ({"shape": 2}, "shape"),
        ({"data": "text"}, "the bytes 'data'"),
        ({"data": bytes(7)}, "found 7"),
    ):
        with pytest.raises(BadFrame, match=words):
            read_numbers(packed(**changes))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [1], b"data": bytes(4)}, "msgpack_numpy"),
        ({"x": 1}, r"keys \['x'\]"),
        ({b"\xff": 1}, "expected numbers"),
        ({b"__npgeneric__": True, b"data": "text", b"dtype": "<U4"}, "found dict"),
    ],
)
def test_other_maps_are_no_arrays(value, words):
    with pytest.raises(BadFrame, match=words):
        read_numbers(msgspec.Raw(msgpack.packb(value)))


def test_lists_without_end():
    with pytest.raises(BadFrame, match="without end"):
        read_numbers(msgspec.Raw(b"\x91" * 100_000 + b"\xc0"))


def test_openpi_says_why_it_failed():
    def infer(_):
        raise KeyError("observation/state")

    assert fault_of(openpi(infer)) == ("agent_error", "the server failed: KeyError: 'observation/state'")


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (b"\xc1", "malformed_frame"),
        (msgpack.packb([1]), "wrong_message"),
        (b"\x81\xa7actions" + b"\x91" * 100_000 + b"\xc0", "nested_too_deep"),
        ("\x1b[31m\n\n", "agent_error"),
    ],
)
def test_openpi_replies_that_are_none(frame, kind):
    async def handle(websocket):
        await websocket.send(msgpack.packb({}))
        await websocket.recv()
        await websocket.send(frame)
        await websocket.wait_closed()

    found, text = fault_of(handle)
    assert found == kind
    assert "\x1b" not in text


def test_openpi_must_not_speak_unasked():
    async def handle(websocket):
        await websocket.send(msgpack.packb({}))
        await websocket.recv()
        for number in (1, 2):
            await websocket.send(msgpack.packb({"actions": np.array([number])}, default=pack_openpi))
        await websocket.wait_closed()

    with talking(handle, "openpi") as agent:
        agent.begin(briefing(), soon())
        assert agent.ask({"rgb": RGB}, soon()) == 1
        agent.end(OUTCOME, soon())
        agent.begin(briefing(), soon())
        assert agent.connection.is_alive(soon())  # what was sent before the pong is there now
        with pytest.raises(AgentFault) as caught:
            agent.ask({"rgb": RGB}, soon())
    assert caught.value.kind == "unasked_message"


def test_vla_eval_hears_of_episodes():
    heard = []
    with talking(vla_eval(lambda _: {"actions": np.array([2])}, heard), "vla-eval") as agent:
        agent.begin(briefing(), soon())
        assert agent.ask({"rgb": RGB}, soon()) == 2
        agent.end(OUTCOME, soon())
        agent.begin(briefing(instruction="go right"), soon())
        assert agent.ask({"rgb": RGB}, soon()) == 2
    types = [message["type"] for message in heard]
    assert types == ["hello", "episode_start", "observation", "episode_end", "episode_start", "observation"]
    assert [message["seq"] for message in heard] == [1, 2, 3, 4, 5, 6]
    assert heard[0]["payload"]["protocol_version"] == 1
    assert heard[1]["payload"]["task"]["task_description"] == "go left"
    assert heard[3]["payload"] == {"status": "success", "metrics": {"success": 1.0}, "steps": 3}
    assert heard[5]["payload"]["task_description"] == "go right"


def test_vla_eval_replies_to_another_message():
    kind, text = fault_of(vla_eval(lambda _: {"actions": np.array([2])}, seq_offset=-1), "vla-eval")
    assert kind == "stale_reply"
    assert "expected a reply to message 3, found one to 2" in text


def test_vla_eval_says_why_it_failed():
    def predict(_):
        raise ValueError("a\nlong story\nno GPU")

    assert fault_of(vla_eval(predict), "vla-eval") == ("agent_error", "the server failed: no GPU")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("text", "wrong_frame_kind"),
        (b"\xc1", "malformed_frame"),
        (msgpack.packb({"type": "action", "seq": 3}), "wrong_message"),
        (msgpack.packb({"type": "hello", "payload": {}, "seq": 3, "timestamp": 1}), "wrong_message"),
        (msgpack.packb({"type": "error", "payload": {"error": [1]}, "seq": 3}), "agent_error"),
        (b"\x82\xa4type\xa6action\xa7payload\x81\xa1a" + b"\x91" * 100_000, "nested_too_deep"),
    ],
)
def test_vla_eval_replies_that_are_none(reply, kind):
    async def handle(websocket):
        hello = {"type": "hello", "payload": {"protocol_version": 1}, "seq": 1, "timestamp": 0.0}
        await websocket.recv()
        await websocket.send(msgpack.packb(hello))
        await websocket.recv()
        await websocket.recv()
        await websocket.send(reply)
        await websocket.wait_closed()

    assert fault_of(handle, "vla-eval")[0] == kind


@pytest.mark.parametrize("dialect", ["openpi", "vla-eval"])
def test_a_mapping_of_what_is_not_there_is_the_users_mistake(dialect):
    mapping = Mapping(observation={"image": "rbg", "prompt": "instruction"}, resize={})
    serve_as = {"openpi": openpi, "vla-eval": vla_eval}[dialect]
    with talking(serve_as(lambda _: {}), dialect, mapping) as agent:
        agent.begin(briefing(), soon())
        with pytest.raises(UserError, match=r"'rbg'.*did you mean 'rgb'.*hold: instruction, rgb"):
            agent.ask({"rgb": RGB}, soon())
