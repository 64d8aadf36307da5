"""What an agent's answer means, the same for an agent in this process and for one at the end of a wire."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import AgentFault
from proctor.core.types import Action

INVALID, WRONG_LENGTH, NOT_FINITE = "invalid_action", "wrong_action_length", "action_not_finite"
"""The kinds of `AgentFault` for answers that are no action."""
UNSTABLE = "unstable_physics"
"""The kind of `AgentFault` for a world that broke under what the robot was told to do."""
QPOS_LENGTHS = (7, 10)
LEAST_QUATERNION = 1e-3
"""Shorter than this, a quaternion does not say which way."""


class JointPosition(msgspec.Struct, frozen=True, tag_field="type", tag="joint_position"):
    """Where the joints should go."""

    qpos: tuple[float, ...]
    """7 or 10 numbers in the order of the robot's joints, metres and radians."""


class EePoseTarget(msgspec.Struct, frozen=True, tag_field="type", tag="ee_pose_target"):
    """Where the end effector should go."""

    ee_pose_target: tuple[float, ...]
    """x, y, z in metres and a quaternion w, x, y, z, which need not be of length 1."""
    gripper_action: float
    """How wide the gripper should open, metres."""


ManipulationAction: TypeAlias = JointPosition | EePoseTarget


def action_as_dict(action: ManipulationAction) -> dict[str, Any]:
    """Return an action as messages and results hold it; `parse_manipulation_action` reads it back."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(action))
    return found


def parse_navigation_action(answer: Any) -> Action:
    """Return the action an agent means: a number from 0 to 3 or a name, alone or as `{"action": 1}`.

    Raises:
        AgentFault: It is something else.
    """
    value = answer["action"] if isinstance(answer, dict) and "action" in answer else answer
    if isinstance(value, list | tuple | np.ndarray):
        count = np.size(value) if isinstance(value, np.ndarray) else len(value)
        if count != 1:
            raise AgentFault(WRONG_LENGTH, f"expected one action; found {_described(value)}")
        value = value.reshape(-1)[0] if isinstance(value, np.ndarray) else value[0]
    if isinstance(value, str) and value.upper() in Action.__members__:
        return Action[value.upper()]
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value <= 3:
        return Action(int(value))
    unsure = isinstance(value, float | np.floating) and not math.isfinite(value)
    expected = "expected an integer, 0 STOP, 1 FORWARD, 2 LEFT or 3 RIGHT, or its name"
    raise AgentFault(NOT_FINITE if unsure else INVALID, f"{expected}; found {_described(value)}")


def parse_manipulation_action(answer: Any) -> ManipulationAction:
    """Return the action an agent means, from one of these or its JSON form.

    That is `{"type": "joint_position", "qpos": [...]}` or
    `{"type": "ee_pose_target", "ee_pose_target": [...], "gripper_action": 0.02}`.

    Raises:
        AgentFault: It is something else, has another length, or is not finite.
    """
    if isinstance(answer, JointPosition | EePoseTarget):
        answer = msgspec.structs.asdict(answer) | {"type": answer.__struct_config__.tag}
    if not isinstance(answer, dict):
        raise AgentFault(INVALID, f"expected a dict with a type; found {_described(answer)}")
    kind = answer.get("type")
    if isinstance(kind, str) and kind == "joint_position":
        return JointPosition(_numbers(answer, "qpos", QPOS_LENGTHS))
    if isinstance(kind, str) and kind == "ee_pose_target":
        pose = _numbers(answer, "ee_pose_target", (7,))
        if math.hypot(*pose[3:]) < LEAST_QUATERNION:
            problem = (
                "ee_pose_target: expected x, y, z and a quaternion w, x, y, z; found a quaternion of zeros"
            )
            raise AgentFault(INVALID, problem)
        return EePoseTarget(pose, *_numbers(answer, "gripper_action", (1,)))
    found = _described(kind) if "type" in answer else "none"
    raise AgentFault(INVALID, f"type: expected 'joint_position' or 'ee_pose_target'; found {found}")


def _numbers(answer: dict[Any, Any], key: str, lengths: tuple[int, ...]) -> tuple[float, ...]:
    """Return so many finite numbers; a single one need not be in a list."""
    expected = f"{key}: expected {' or '.join(map(str, lengths))} number{'s' if lengths != (1,) else ''}"
    if key not in answer:
        raise AgentFault(INVALID, f"{expected}; found none")
    value = answer[key]
    if lengths == (1,) and not isinstance(value, list | tuple | np.ndarray):
        value = [value]
    if not isinstance(value, list | tuple | np.ndarray):
        raise AgentFault(INVALID, f"{expected}; found {_described(value)}")
    if (
        (value.ndim > 1 or value.size not in lengths)
        if isinstance(value, np.ndarray)
        else len(value) not in lengths
    ):
        raise AgentFault(WRONG_LENGTH, f"{expected}; found {_described(value)}")
    numbers = []
    for index, item in enumerate(value.reshape(-1) if isinstance(value, np.ndarray) else value):
        place = f"{key}[{index}]" if lengths != (1,) else key
        if not isinstance(item, int | float | np.integer | np.floating) or isinstance(item, bool):
            raise AgentFault(INVALID, f"{place}: expected a number; found {_described(item)}")
        try:
            numbers.append(float(item))
        except OverflowError:
            numbers.append(math.inf)
        if not math.isfinite(numbers[-1]):
            raise AgentFault(NOT_FINITE, f"{place}: expected a finite number; found {_described(item)}")
    return tuple(numbers)


def _described(value: Any) -> str:
    """Tell what a value is. Only plain ones are quoted: the repr of others may be huge, or change."""
    name = type(value).__name__[:40]
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {str(value.dtype)[:40]}"
    if type(value) in (list, tuple):
        return f"a {name} of {len(value)}"
    if type(value) is int and value.bit_length() > 64:
        return f"an int of {value.bit_length()} bits"
    if type(value) is str:
        return f"str {value[:40]!r}{'...' if len(value) > 40 else ''}"
    if value is None or type(value) in (bool, int, float) or isinstance(value, np.number):
        return f"{name} {value}"
    return name
