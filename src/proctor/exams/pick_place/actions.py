"""The actions of pick-and-place, and what an agent's answer means."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgspec
import numpy as np

from proctor.core.answers import INVALID_ACTION, NOT_FINITE, WRONG_LENGTH, describe_answer
from proctor.core.errors import AgentFault

LEAST_QUATERNION = 1e-3  # shorter than this, a quaternion has no direction


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


def parse_manipulation_action(answer: Any) -> ManipulationAction:
    """Return the action an agent means, from one of these or its JSON form.

    That is `{"type": "joint_position", "qpos": [...]}` or
    `{"type": "ee_pose_target", "ee_pose_target": [...], "gripper_action": 0.02}`.
    Raises AgentFault for anything else, another length, and numbers that are not finite.
    """
    if isinstance(answer, JointPosition | EePoseTarget):  # made by a policy, it may hold anything
        answer = msgspec.structs.asdict(answer) | {"type": answer.__struct_config__.tag}
    if not isinstance(answer, dict):
        raise AgentFault(INVALID_ACTION, f"expected a dict with a type; found {describe_answer(answer)}")
    kind = answer.get("type")
    if isinstance(kind, str) and kind == "joint_position":
        return JointPosition(_numbers(answer, "qpos", (7, 10)))
    if isinstance(kind, str) and kind == "ee_pose_target":
        pose = _numbers(answer, "ee_pose_target", (7,))
        if math.hypot(*pose[3:]) < LEAST_QUATERNION:
            problem = (
                "ee_pose_target: expected x, y, z and a quaternion w, x, y, z; found a quaternion of zeros"
            )
            raise AgentFault(INVALID_ACTION, problem)
        return EePoseTarget(pose, *_numbers(answer, "gripper_action", (1,)))
    found = describe_answer(kind) if "type" in answer else "none"
    raise AgentFault(INVALID_ACTION, f"type: expected 'joint_position' or 'ee_pose_target'; found {found}")


def _numbers(answer: dict[Any, Any], key: str, lengths: tuple[int, ...]) -> tuple[float, ...]:
    """Return so many finite numbers; a single one need not be in a list."""
    expected = f"{key}: expected {' or '.join(map(str, lengths))} number{'s' if lengths != (1,) else ''}"
    if key not in answer:
        raise AgentFault(INVALID_ACTION, f"{expected}; found none")
    value = answer[key]
    if lengths == (1,) and not isinstance(value, list | tuple | np.ndarray):
        value = [value]
    if not isinstance(value, list | tuple | np.ndarray):
        raise AgentFault(INVALID_ACTION, f"{expected}; found {describe_answer(value)}")
    if (
        (value.ndim > 1 or value.size not in lengths)
        if isinstance(value, np.ndarray)
        else len(value) not in lengths
    ):
        raise AgentFault(WRONG_LENGTH, f"{expected}; found {describe_answer(value)}")
    numbers = []
    for index, item in enumerate(value.reshape(-1) if isinstance(value, np.ndarray) else value):
        place = f"{key}[{index}]" if lengths != (1,) else key
        if not isinstance(item, int | float | np.integer | np.floating) or isinstance(item, bool):
            raise AgentFault(INVALID_ACTION, f"{place}: expected a number; found {describe_answer(item)}")
        try:
            numbers.append(float(item))
        except OverflowError:
            numbers.append(math.inf)
        if not math.isfinite(numbers[-1]):
            raise AgentFault(NOT_FINITE, f"{place}: expected a finite number; found {describe_answer(item)}")
    return tuple(numbers)
