"""How a person moves the robot: the hand by a few centimetres with a key or to a place with a slider.

Directions are those of the head's picture, which looks along the arm: away is -y of the base, right is -x.
Some tables are behind the robot, so keys drive and turn the base, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from proctor.core.geometry import pose_into, pose_out_of, wrap_angle
from proctor.core.types import Array, EpisodeInfo, Observation, Pose2
from proctor.exams.controls import Button, Controls, Slider, button
from proctor.exams.pick_place.actions import EePoseTarget, JointPosition, ManipulationAction
from proctor.exams.pick_place.baselines import joints_as_they_are
from proctor.robots.stretch import CONTROLS, GRIPPER_OPEN_M, controls_of_qpos
from proctor.robots.stretch_kinematics import (
    HEADING_AT_ZERO,
    HIGHEST_M,
    LOWEST_M,
    hand_quaternion,
    heading_of,
)

RIGHT, AWAY, HEIGHT, TURN, OPENING = range(5)
"""A target of the hand, seen from the base: metres to the right, away and up, radians to the left, metres."""
KEY_M, KEY_RAD, KEY_STEPS = 0.02, math.radians(10), 2
DRIVE_M, DRIVE_RAD, DRIVE_STEPS = 0.04, math.radians(10), 3
WAIT_STEPS = 5
STEP_LIMITS = (0.015, 0.015, 0.015, math.radians(10), 0.004)
"""How far a slider or the gripper moves the target in one step: about what the joints can do."""
SETTLED_M, MOST_SETTLING_STEPS = 0.01, 15
LARGEST_LAG_M = 0.12
"""A hand that is held back further than this goes on from where it is, not from where it should be."""
WRIST = CONTROLS[5]
LOW = np.array([-1.0, 0.2, LOWEST_M, WRIST.low, 0.0])
HIGH = np.array([1.0, 1.2, HIGHEST_M, WRIST.high, GRIPPER_OPEN_M])
UNITS = (100.0, 100.0, 100.0, math.degrees(1.0), 100.0)
"""Sliders count centimetres and degrees."""

HAND_KEYS = (
    (button("turn_left", ("Turn hand left", "手左转"), "↺", "KeyQ", (1, 1)), TURN, KEY_RAD),
    (button("away", ("Away", "向前"), "↑", "KeyW ArrowUp", (1, 2)), AWAY, KEY_M),
    (button("turn_right", ("Turn hand right", "手右转"), "↻", "KeyE", (1, 3)), TURN, -KEY_RAD),
    (button("left", ("Left", "向左"), "←", "KeyA ArrowLeft", (2, 1)), RIGHT, -KEY_M),
    (button("nearer", ("Nearer", "向后"), "↓", "KeyS ArrowDown", (2, 2)), AWAY, -KEY_M),
    (button("right", ("Right", "向右"), "→", "KeyD ArrowRight", (2, 3)), RIGHT, KEY_M),
    (button("up", ("Up", "上升"), "⇧", "KeyR PageUp", (3, 1)), HEIGHT, KEY_M),
    (button("down", ("Down", "下降"), "⇩", "KeyF PageDown", (3, 2)), HEIGHT, -KEY_M),
    (button("wait", ("Wait", "等待"), "…", "KeyT", (3, 3)), HEIGHT, 0.0),
    (button("open", ("Open", "张开"), "‹ ›", "KeyZ", (4, 1)), OPENING, GRIPPER_OPEN_M),
    (button("close", ("Close", "合拢"), "› ‹", "KeyX Space", (4, 2)), OPENING, -GRIPPER_OPEN_M),
)
"""What is moved by a key, and how far."""
BASE_KEYS = (
    (button("base_turn_left", ("Turn robot left", "机器人左转"), "⟲", "KeyU", (5, 1)), 0.0, DRIVE_RAD),
    (button("base_turn_right", ("Turn robot right", "机器人右转"), "⟳", "KeyO", (5, 3)), 0.0, -DRIVE_RAD),
    (button("base_left", ("Drive left", "机器人左移"), "⇤", "KeyJ", (6, 1)), DRIVE_M, 0.0),
    (button("base_right", ("Drive right", "机器人右移"), "⇥", "KeyL", (6, 3)), -DRIVE_M, 0.0),
)
"""How far the base drives ahead, which is to the left in the picture, and turns to the left."""
HAND_MOVES = {key.name: (index, moved) for key, index, moved in HAND_KEYS}
BASE_MOVES = {key.name: (ahead_m, turned) for key, ahead_m, turned in BASE_KEYS}
SLIDERS = {"to_right": RIGHT, "to_away": AWAY, "to_height": HEIGHT, "to_turn": TURN, "to_opening": OPENING}


def _slider(name: str, en: str, zh: str, step: float = 1.0) -> Slider:
    index = SLIDERS[name]
    low, high = math.ceil(UNITS[index] * LOW[index]), math.floor(UNITS[index] * HIGH[index])
    unit = "°" if index == TURN else "cm"
    return Slider(name=name, words={"en": en, "zh": zh}, low=low, high=high, step=step, unit=unit)


class HandControls(Controls):
    """Keeps a target of the hand in the frame of the start, and moves it by what is pressed."""

    buttons: ClassVar[Sequence[Button]] = tuple(key for key, *_ in (*HAND_KEYS, *BASE_KEYS))
    sliders: ClassVar[Sequence[Slider]] = (
        _slider("to_right", "Left to right", "左右"),
        _slider("to_away", "Near to far", "远近"),
        _slider("to_height", "Height", "高度"),
        _slider("to_turn", "Turn", "转角", 5.0),
        _slider("to_opening", "Gripper", "夹爪", 0.5),
    )
    pictures = ("rgb_head", "rgb_wrist")
    how_to: ClassVar[Mapping[str, Sequence[str]]] = {
        "en": (
            "You see what the cameras at a robot's head and wrist see. Do what the instruction says.",
            "The table may be behind you: turn the robot until you see it.",
            "A key moves the hand by 2 cm in the directions of the head's picture; hold it to go on. "
            "A slider moves it all the way.",
            "To pick up: open, bring the fingers around the object, close, wait a moment, go up.",
            "To put down: lower it onto its place, open, and wait: the episode ends by itself. "
            "If you are only asked to pick it up, hold it up and wait.",
            "Your steps are limited: each key takes two or three.",
        ),
        "zh": (
            "你看到的是机器人头部和手腕摄像头的画面。请按照指令行动。",
            "桌子可能在你身后：转动机器人直到看见它。",
            "按键让手沿头部画面的方向移动 2 厘米，按住可连续移动。滑块可以一次移到位。",
            "抓取：张开夹爪，让手指围住物体，合拢，稍等，上升。",
            "放置：把物体降到位置上，张开夹爪并等待，本题会自动结束。如果只要求拿起，请举着等待。",
            "步数有限：每次按键用两到三步。",
        ),
    }

    def __init__(self) -> None:
        self._base = self._base_goal = Pose2(0.0, 0.0, 0.0)
        self._target = self._goal = np.zeros(5)  # as `_hand` returns them, but in the frame of the start
        self._joints: Array | None = None  # lift, arm and wrist, while the base is driven
        self._pressed: tuple[str, float | None] | None = None
        self._steps = self._settling = 0

    def begin(self, info: EpisodeInfo, observation: Observation) -> None:
        """Begin where the hand is."""
        self._pressed, self._joints, self._steps, self._settling = None, None, 0, 0
        self._base = _base(observation)
        self._target = self._goal = self._out(_hand(observation))

    def press(self, name: str, value: float | None = None) -> None:
        """Take in a key of hand or base, or a slider."""
        self._pressed = name, value

    def action(self, observation: Observation) -> ManipulationAction | None:
        """Move the target towards its goal; after a slider, wait until the hand is there."""
        self._base = _base(observation)
        if self._pressed is not None:
            name, value = self._pressed
            self._pressed = None
            if name in BASE_MOVES:
                self._start_driving(observation, *BASE_MOVES[name])
            else:
                self._start_moving(_hand(observation), name, value)
        if self._steps:
            self._target = self._target + (self._goal - self._target) / self._steps
            self._steps -= 1
        elif self._settling and self._lag_m(_hand(observation)) >= SETTLED_M:
            self._settling -= 1
        else:
            self._settling = 0
            return None
        return self._hand_action() if self._joints is None else self._base_action(self._joints)

    def values(self) -> dict[str, float]:
        """Return the target in centimetres and degrees, seen from the base."""
        target = self._into(self._target)
        return {name: round(UNITS[index] * float(target[index]), 1) for name, index in SLIDERS.items()}

    def _start_moving(self, hand: Array, name: str, value: float | None) -> None:
        target = self._into(self._target)
        if self._joints is not None or self._lag_m(hand) > LARGEST_LAG_M:
            target[:OPENING] = hand[:OPENING]
        self._joints, goal = None, target.copy()
        if name in HAND_MOVES:
            index, moved = HAND_MOVES[name]
            goal[index] += moved
        else:
            index = SLIDERS[name]
            goal[index] = float(value or 0.0) / UNITS[index]
        goal = np.clip(goal, np.minimum(LOW, target), np.maximum(HIGH, target))
        goal[OPENING] = min(max(goal[OPENING], LOW[OPENING]), HIGH[OPENING])
        self._steps, self._settling = (WAIT_STEPS if name == "wait" else KEY_STEPS), 0
        if index == OPENING or name in SLIDERS:
            self._steps = max(1, math.ceil(abs(goal[index] - target[index]) / STEP_LIMITS[index] - 1e-9))
            self._settling = 0 if index == OPENING else MOST_SETTLING_STEPS
        self._target, self._goal = self._out(target), self._out(goal)

    def _start_driving(self, observation: Observation, ahead_m: float, turned: float) -> None:
        if self._joints is None:
            self._joints = np.array(controls_of_qpos(joints_as_they_are(observation).qpos)[3:6])
            self._base_goal = self._base
        goal = pose_out_of(self._base_goal, Pose2(ahead_m, 0.0, turned))
        lag_m = math.hypot(goal.x - self._base.x, goal.y - self._base.y)
        if lag_m <= LARGEST_LAG_M + DRIVE_M:  # else something holds the base back
            self._base_goal = goal
        self._goal, self._steps, self._settling = self._target, DRIVE_STEPS, 0

    def _lag_m(self, hand: Array) -> float:
        return float(np.abs(hand - self._into(self._target))[:TURN].max())

    def _hand_action(self) -> EePoseTarget:
        right, away, height, turn, opening = self._into(self._target).tolist()
        return EePoseTarget(
            (-right, -away, height, *hand_quaternion(turn + HEADING_AT_ZERO).tolist()), opening
        )

    def _base_action(self, joints: Array) -> JointPosition:
        base = self._base_goal
        return JointPosition((base.x, base.y, base.yaw, *joints.tolist(), float(self._target[OPENING])))

    def _out(self, seen: Array) -> Array:
        """Return a target that is seen from the base in the frame of the start."""
        pose = pose_out_of(self._base, Pose2(-seen[RIGHT], -seen[AWAY], seen[TURN]))
        return np.array([-pose.x, -pose.y, seen[HEIGHT], pose.yaw, seen[OPENING]])

    def _into(self, target: Array) -> Array:
        """Return a target as it is seen from the base."""
        pose = pose_into(self._base, Pose2(-target[RIGHT], -target[AWAY], target[TURN]))
        return np.array([-pose.x, -pose.y, target[HEIGHT], wrap_angle(pose.yaw), target[OPENING]])


def _base(observation: Observation) -> Pose2:
    """Return where the base is, in the frame of the start."""
    return Pose2(*joints_as_they_are(observation).qpos[:3])


def _hand(observation: Observation) -> Array:
    """Return where the hand is, seen from the base."""
    pose = np.asarray(observation["ee_pose"], float)
    turn = wrap_angle(heading_of(pose[3:]) - HEADING_AT_ZERO)
    return np.array([-pose[0], -pose[1], pose[2], turn, float(observation["gripper_state"])])
