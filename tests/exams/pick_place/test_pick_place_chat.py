"""Tools of pick-and-place for chat models: frames, steps, and a real grasp."""

import math

import numpy as np
import pytest

from proctor.agents.chat.faults import Unusable
from proctor.agents.chat.task import ToolCall
from proctor.core.geometry import pose_out_of
from proctor.core.registry import suite_path
from proctor.core.types import EpisodeInfo, Pose2
from proctor.exams.datasets import load_dataset
from proctor.exams.pick_place.chat import MOST_MOVE_STEPS, SETTLE_STEPS, PickPlaceChat
from proctor.exams.pick_place.env import PickPlaceEnv
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.robots.stretch_kinematics import hand_quaternion, heading_of

BASE = Pose2(0.3, -0.1, 0.5)
HAND = (0.0, -0.4, 0.8)
"""Seen from the base; its heading there is -1.5."""


def chat(most_actions=None, **details):
    info = EpisodeInfo(episode_id="", instruction="Pick it up.", max_steps=500, seed=0, details=details)
    return PickPlaceChat(info, most_actions)


def observation(gripper_m=0.0):
    qpos = np.array([BASE.x, BASE.y, BASE.yaw, 0.7, 0.05, 0.05, 0.05, 0.05, 0.2, gripper_m])
    return {"qpos": qpos, "ee_pose": np.array([*HAND, *hand_quaternion(-1.5)]), "gripper_state": gripper_m}


def move(**changes):
    seen = pose_out_of(BASE, Pose2(HAND[0], HAND[1], -1.5))
    here = {"x": seen.x, "y": seen.y, "z": HAND[2], "yaw": seen.yaw, "gripper": "keep"}
    return ToolCall("move", here | changes)


def actions(task, *calls):
    return [task.action(step, observation()) for step in task.decide(calls, observation()).steps]


def test_a_move_to_where_the_hand_is_stays_there():
    for action in actions(chat(), move()):
        assert action["type"] == "ee_pose_target"
        assert action["ee_pose_target"][:3] == pytest.approx(HAND)
        assert heading_of(np.array(action["ee_pose_target"][3:])) == pytest.approx(-1.5)


def test_places_are_in_the_frame_of_the_start_however_the_base_has_moved():
    goal = {"x": 0.2, "y": -0.6, "z": 0.9, "yaw": -1.0}
    last = actions(chat(), move(**goal))[-1]["ee_pose_target"]
    there = pose_out_of(BASE, Pose2(last[0], last[1], heading_of(np.array(last[3:]))))
    assert (there.x, there.y, last[2], there.yaw) == pytest.approx(tuple(goal.values()))


def test_a_short_move_is_a_straight_line_in_small_steps():
    heights = [action["ee_pose_target"][2] for action in actions(chat(), move(z=1.0))]
    assert len(heights) == 10 + SETTLE_STEPS
    assert np.diff(heights).max() == pytest.approx(0.02)
    assert heights[-1] == pytest.approx(1.0)


def test_a_long_move_is_left_to_the_robot():
    heights = [action["ee_pose_target"][2] for action in actions(chat(), move(z=1.2))]
    assert heights == [1.2] * MOST_MOVE_STEPS


def test_the_gripper_moves_at_the_end_and_stays_so():
    task = chat()
    openings = [action["gripper_action"] for action in actions(task, move(z=0.9, gripper="open"))]
    assert openings[:5] == [0.0] * 5
    assert openings[-12:] == [0.04] * 12  # a second, and a bit
    assert {action["gripper_action"] for action in actions(task, move(gripper="keep"))} == {0.04}


def test_joints_that_are_left_out_stay():
    task = chat()
    first = actions(task, ToolCall("set_joints", {"lift": 0.9}))[0]
    assert first == {"type": "joint_position", "qpos": pytest.approx([0.3, -0.1, 0.5, 0.9, 0.2, 0.2, 0.0])}
    waited = actions(task, ToolCall("wait", {"steps": 3}))
    assert waited == [first] * 3


def test_a_wait_at_the_start_keeps_the_joints():
    assert actions(chat(), ToolCall("wait", {"steps": 2}))[1]["qpos"][:4] == pytest.approx(
        [0.3, -0.1, 0.5, 0.7]
    )


def test_the_model_is_asked_again_after_so_many_steps():
    assert len(chat(7).decide([move(z=1.2)], observation()).steps) == 7


@pytest.mark.parametrize("before", [[], [move(z=0.7, gripper="open")]])
def test_a_wait_after_a_move_keeps_still_where_the_move_ends(before):
    task = chat()
    for call in before:
        actions(task, call)
    done = actions(task, move(z=0.95), ToolCall("wait", {"steps": 5}))
    assert done[-5:] == [done[-6]] * 5
    assert done[-1]["ee_pose_target"][2] == pytest.approx(0.95)


def test_a_move_that_is_refused_is_not_told_of():
    task = chat()
    with pytest.raises(Unusable, match="wait: steps"):
        actions(task, move(z=0.95), ToolCall("wait", {"steps": 50}))
    actions(task, ToolCall("wait", {"steps": 5}))
    assert "Your last move" not in task.state(observation())


def test_one_motion_per_reply_and_any_waits():
    task, wait = chat(), ToolCall("wait", {"steps": 2})
    alone = len(actions(task, move(z=0.9)))
    assert len(actions(task, move(z=0.9), move(z=0.9), wait)) == alone + 2
    with pytest.raises(Unusable, match="one motion per reply") as caught:
        task.decide([move(z=0.9), ToolCall("set_joints", {"lift": 0.5})], observation())
    assert caught.value.kind == "contradicting_actions"
    with pytest.raises(Unusable, match="one motion per reply"):
        task.decide([move(z=0.9), move(z=0.8)], observation())


@pytest.mark.parametrize(
    "call",
    [
        move(x="left"),
        move(x=math.nan),
        move(x=1e300),
        move(z=True),
        move(gripper="squeeze"),
        move(gripper=None),
        move(gripper=["open"]),
        ToolCall("wait", {"steps": 0}),
        ToolCall("wait", {"steps": 1000}),
        ToolCall("set_joints", {"lift": "up"}),
    ],
    ids=str,
)
def test_numbers_that_are_none_can_be_repaired(call):
    with pytest.raises(Unusable) as caught:
        chat().decide([call], observation())
    assert caught.value.kind == "invalid_action"


def test_a_hidden_goal_is_not_told():
    episode = load_dataset(suite_path("tabletop-v1")).episodes[0]
    hidden = PickPlaceExam(PickPlaceExam.options_type(hide_goal=True)).brief(episode, {})
    shown = PickPlaceExam().brief(episode, {})
    assert " at x=" in PickPlaceChat(shown).details()
    assert " at x=" not in PickPlaceChat(hidden).details()
    assert "block_red (red, block" in PickPlaceChat(hidden).details()


def test_an_object_can_be_grasped_by_moves():
    """As a model would do that knows where the object is."""
    episode = load_dataset(suite_path("tabletop-v1")).episodes[9]
    env, exam = PickPlaceEnv(sensors=[]), PickPlaceExam()
    seen = env.reset(episode)
    task = PickPlaceChat(exam.brief(episode, seen))
    line = next(row for row in task.details().splitlines() if row.startswith(f"- {episode.target_name} "))
    x, y, z = (float(word[2:]) for word in line.split()[-3:])
    hand = task._hand(seen)
    yaw = math.atan2(y - hand.y, x - hand.x)
    behind = {"x": x - 0.1 * math.cos(yaw), "y": y - 0.1 * math.sin(yaw), "yaw": yaw, "gripper": "keep"}
    at = {"x": x, "y": y, "yaw": yaw}
    for arguments in (
        {"x": hand.x, "y": hand.y, "z": z + 0.2, "yaw": hand.yaw, "gripper": "open"},
        behind | {"z": z + 0.15},
        behind | {"z": z + 0.15},
        behind | {"z": z + 0.03},
        at | {"z": z + 0.03, "gripper": "close"},
        at | {"z": z + 0.2, "gripper": "keep"},
    ):
        for step in task.decide([ToolCall("move", arguments)], seen).steps:
            seen, _, _, info = env.step(exam.parse_action(task.action(step, seen)))
    env.close()
    assert info["object_grasped"]
    assert info["object_position"][2] > z + 0.1
    assert "from its target" in task.state(seen)
