"""What counts as an action, and what is said about that which does not."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.errors import AgentFault
from proctor.core.types import Action
from proctor.exams.driving import parse_driving_action
from proctor.exams.pick_place.actions import EePoseTarget, JointPosition, parse_manipulation_action

POSE = [0.5, 0.0, 0.9, 1.0, 0.0, 0.0, 0.0]


def fault_of(parse, answer):
    with pytest.raises(AgentFault) as caught:
        parse(answer)
    return caught.value.kind, str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        *(1, np.int64(1), np.uint8(1), Action.FORWARD, "FORWARD", "forward", "Forward"),
        *({"action": 1}, {"action": "forward"}, {"action": 1, "why": "the door is open"}),
        *([1], (1,), np.array(1), np.array([1]), np.array([[1]]), {"action": np.array([1])}, ["FORWARD"]),
    ],
)
def test_all_these_mean_forward(answer):
    assert parse_driving_action(answer) is Action.FORWARD


def test_every_number_and_every_name_means_its_action():
    assert [parse_driving_action(number) for number in range(4)] == list(Action)
    assert [parse_driving_action(name) for name in Action.__members__] == list(Action)


@pytest.mark.parametrize(
    ("answer", "kind", "found"),
    [
        (4, "invalid_action", "found int 4"),
        (-1, "invalid_action", "found int -1"),
        (True, "invalid_action", "found bool True"),
        (np.True_, "invalid_action", "found bool"),
        (1.0, "invalid_action", "found float 1.0"),
        (np.float32(1), "invalid_action", "found float32 1.0"),
        (np.array([1.0]), "invalid_action", "found float64 1.0"),
        (math.nan, "action_not_finite", "found float nan"),
        (np.float32(math.inf), "action_not_finite", "found float32 inf"),
        ({"action": -math.inf}, "action_not_finite", "found float -inf"),
        (np.array(math.nan), "action_not_finite", "found float64 nan"),
        ("", "invalid_action", "found str ''"),
        ("JUMP", "invalid_action", "found str 'JUMP'"),
        (None, "invalid_action", "found NoneType None"),
        ({}, "invalid_action", "found dict"),
        ({"action": {"action": 1}}, "invalid_action", "found dict"),
        ([[1]], "invalid_action", "found a list of 1"),
        ([], "wrong_action_length", "found a list of 0"),
        ([1, 2], "wrong_action_length", "found a list of 2"),
        (np.zeros((10, 7)), "wrong_action_length", "found an array of shape (10, 7)"),
        pytest.param(10**5000, "invalid_action", "found an int of 16610 bits", id="huge"),
        (object(), "invalid_action", "found object"),
    ],
)
def test_what_is_no_navigation_action_is_told_by_kind_and_without_quoting_too_much(answer, kind, found):
    told, message = fault_of(parse_driving_action, answer)
    assert told == kind
    assert found in message
    assert "expected" in message


def test_a_hostile_text_is_not_repeated():
    _, message = fault_of(parse_driving_action, "\x1b[31m" + "A" * 1_000_000)
    assert len(message) < 200
    assert "\x1b" not in message


@pytest.mark.parametrize("length", [7, 10])
@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda v: np.array(v, np.float32)])
def test_joint_positions_may_be_lists_tuples_or_arrays(length, kind):
    values = [0.25 * i for i in range(length)]
    action = parse_manipulation_action({"type": "joint_position", "qpos": kind(values)})
    assert action == JointPosition(tuple(values))
    assert parse_manipulation_action(action) == action


def test_whole_numbers_and_numpys_numbers_are_numbers():
    action = parse_manipulation_action(
        {"type": "joint_position", "qpos": [0, 1, np.int32(2), np.float32(3), 4, 5, 6]}
    )
    assert action.qpos == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert all(type(value) is float for value in action.qpos)


@pytest.mark.parametrize("gripper", [0.02, [0.02], np.float64(0.02), np.array(0.02), np.array([0.02])])
def test_a_pose_target_has_a_gripper(gripper):
    answer = {"type": "ee_pose_target", "ee_pose_target": POSE, "gripper_action": gripper}
    action = parse_manipulation_action(answer)
    assert action == EePoseTarget(tuple(POSE), 0.02)
    assert parse_manipulation_action(action) == action
    assert parse_manipulation_action(msgspec.to_builtins(action)) == action


def joints(*qpos):
    return {"type": "joint_position", "qpos": list(qpos)}


def target(*pose, gripper=0.0):
    return {"type": "ee_pose_target", "ee_pose_target": list(pose), "gripper_action": gripper}


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (1, "invalid_action", "expected a dict with a type; found int 1"),
        (None, "invalid_action", "found NoneType None"),
        ({}, "invalid_action", "type: expected 'joint_position' or 'ee_pose_target'; found none"),
        ({"type": "jont_position"}, "invalid_action", "found str 'jont_position'"),
        ({"type": ["joint_position"]}, "invalid_action", "found a list of 1"),
        ({"type": "joint_position"}, "invalid_action", "qpos: expected 7 or 10 numbers; found none"),
        ({"type": "joint_position", "qpos": "0000000"}, "invalid_action", "found str '0000000'"),
        (joints(*range(8)), "wrong_action_length", "expected 7 or 10 numbers; found a list of 8"),
        (joints(), "wrong_action_length", "found a list of 0"),
        ({"type": "joint_position", "qpos": np.zeros((1, 10))}, "wrong_action_length", "shape (1, 10)"),
        (joints(0, 0, 0, 0, 0, 0, "0"), "invalid_action", "qpos[6]: expected a number; found str '0'"),
        (joints(0, 0, True, 0, 0, 0, 0), "invalid_action", "qpos[2]: expected a number; found bool"),
        ({"type": "joint_position", "qpos": np.zeros(7, bool)}, "invalid_action", "qpos[0]"),
        ({"type": "joint_position", "qpos": np.zeros(7, complex)}, "invalid_action", "qpos[0]"),
        (
            joints(0, math.nan, 0, 0, 0, 0, 0),
            "action_not_finite",
            "qpos[1]: expected a finite number; found float nan",
        ),
        (joints(0, 0, 0, 0, 0, 0, -math.inf), "action_not_finite", "qpos[6]"),
        (joints(10**400, 0, 0, 0, 0, 0, 0), "action_not_finite", "found an int of 1329 bits"),
        (target(0, 0, 0, 0, 0, 0, 0), "invalid_action", "found a quaternion of zeros"),
        (target(0, 0, 0), "wrong_action_length", "ee_pose_target: expected 7 numbers; found a list of 3"),
        (target(*POSE, gripper=math.nan), "action_not_finite", "gripper_action: expected a finite number"),
        (target(*POSE, gripper=None), "invalid_action", "gripper_action: expected a number; found NoneType"),
        (target(*POSE, gripper=[0, 0]), "wrong_action_length", "gripper_action: expected 1 number;"),
        ({"type": "ee_pose_target", "ee_pose_target": POSE}, "invalid_action", "gripper_action"),
    ],
)
def test_what_is_no_manipulation_action_is_told_by_kind_and_place(answer, kind, said):
    told, message = fault_of(parse_manipulation_action, answer)
    assert told == kind
    assert said in message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["action", "type", "qpos"]), inner)
    ),
)


@given(JSON)
def test_whatever_comes_is_an_action_or_a_fault_of_the_agent(answer):
    for parse in (parse_driving_action, parse_manipulation_action):
        message = ""
        try:
            action = parse(answer)
        except AgentFault as fault:
            message = str(fault)
        assert 0 < len(message) < 300 or isinstance(action, Action | JointPosition | EePoseTarget)
