"""Where a navigation is to end, as callers say it and as it is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from proctor.core.errors import UserError, did_you_mean
from proctor.core.geometry import wrap_angle, yaw_of_quaternion
from proctor.core.types import Pose2
from proctor.maps.failure import NavigationFailure, Reason

MAX_TIMEOUT_S = 86_400.0
PARAMS = ("goal_pos", "goal_quat", "timeout")


class NavigationGoal(msgspec.Struct, frozen=True):
    """A goal that makes sense; ValueError if a number is not finite or the time is out of range."""

    position: tuple[float, float, float]
    yaw: float | None = None  # the heading that is asked for; None if any will do
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        finite = all(map(math.isfinite, (*self.position, self.yaw or 0.0)))
        if not finite or not 0 < self.timeout_s <= MAX_TIMEOUT_S:
            raise ValueError(f"expected finite numbers and at most {MAX_TIMEOUT_S:g} s, found {self}")

    @property
    def xy(self) -> tuple[float, float]:
        """Where on the floor."""
        return self.position[:2]

    def distance_m(self, pose: Pose2) -> float:
        """Return the straight distance from a pose."""
        return math.dist((pose.x, pose.y), self.xy)

    def yaw_error_rad(self, pose: Pose2) -> float | None:
        """Return how far a heading is off, if one is asked for."""
        return None if self.yaw is None else abs(wrap_angle(pose.yaw - self.yaw))


def asked_for(params: Mapping[str, Any]) -> NavigationGoal | str:
    """Return the goal of a call, or what is wrong about it; UserError if there is no such parameter."""
    goal = params.get("goal")
    if isinstance(goal, NavigationGoal) and len(params) == 1:
        return goal
    for name in params:
        if name not in PARAMS:
            raise UserError(f"navigate_to has no parameter '{name}'{did_you_mean(name, PARAMS)}")
    try:
        return read_goal(params.get("goal_pos"), params.get("goal_quat"), params.get("timeout"))
    except NavigationFailure as failure:
        return str(failure)


def read_goal(goal_pos: Any, goal_quat: Any = None, timeout: Any = None) -> NavigationGoal:
    """Check what a caller asks for; NavigationFailure if it makes no sense.

    `goal_pos` is [x, y, z] in the world, `goal_quat` [qx, qy, qz, qw], of which the heading counts, or
    None, `timeout` seconds, or None for the default.
    """
    x, y, z = _numbers("goal_pos", goal_pos, 3, "[x, y, z]")
    yaw = None
    if goal_quat is not None:
        qx, qy, qz, qw = _numbers("goal_quat", goal_quat, 4, "[qx, qy, qz, qw]")
        norm = math.sqrt(qx * qx + qy * qy + qz * qz + qw * qw)
        if not 1e-6 < norm < 1e6:
            raise _invalid(f"goal_quat has the length {norm:g}; a rotation has the length 1")
        yaw = yaw_of_quaternion(np.array([qw, qx, qy, qz]) / norm)
    if timeout is None:
        return NavigationGoal((x, y, z), yaw)
    (seconds,) = _numbers("timeout", [timeout], 1, "seconds")
    if not 0 < seconds <= MAX_TIMEOUT_S:
        raise _invalid(f"timeout is {seconds:g} s; expected more than 0, at most {MAX_TIMEOUT_S:g}")
    return NavigationGoal((x, y, z), yaw, seconds)


def _numbers(name: str, value: Any, length: int, form: str) -> list[float]:
    try:
        numbers = [float(number) for number in value]
    except (TypeError, ValueError):
        raise _invalid(f"{name} is {_short(value)}; expected {form}") from None
    if len(numbers) != length:
        raise _invalid(f"{name} has {len(numbers)} numbers, {_short(value)}; expected {form}")
    if not all(map(math.isfinite, numbers)):
        raise _invalid(f"{name} is {numbers}; expected finite numbers {form}")
    return numbers


def _invalid(message: str) -> NavigationFailure:
    return NavigationFailure(Reason.INVALID_GOAL, message)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
