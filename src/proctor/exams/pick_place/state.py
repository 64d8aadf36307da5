"""What is recorded of a pick-and-place episode after each step: the only reader of the env's info."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from proctor.core.errors import SimulationError
from proctor.core.types import Info
from proctor.exams.env_info import read_flag, read_more, read_number, read_point
from proctor.exams.pick_place.actions import ManipulationAction
from proctor.exams.trace import Trace

Phase: TypeAlias = Literal["reach", "grasp", "lift", "place"]
PHASES: tuple[Phase, ...] = get_args(Phase)
Point: TypeAlias = tuple[float, float, float]


class PickPlaceState(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of robot and object after a step; None for what an env does not tell.

    Positions are in the world, in metres.
    """

    position: Point
    """Of the base."""
    yaw: float
    ee_position: Point
    object_position: Point
    gripper_state: float
    """How far one fingertip is from closed, metres."""
    object_grasped: bool
    """Whether both fingers hold the object."""
    collision: bool
    phase: Phase
    target_distance: float | None = None
    """From the object to its target; None without a target."""
    target_position: Point | None = None
    success: bool = False
    time_s: float | None = None
    """Simulated time since the episode began."""
    qpos: tuple[float, ...] | None = None
    ee_pose: tuple[float, ...] | None = None
    """Of the hand in `base_link`: x, y, z, qw, qx, qy, qz."""
    object_center: Point | None = None
    object_in_target: bool | None = None
    object_released: bool | None = None
    """Whether no part of the robot touches the object."""
    object_supported: bool = False
    initial_object_position: Point | None = None
    """Where the object stood once it had settled."""
    initial_object_z: float | None = None
    gripper_closed_below: float | None = None
    """With the object between its fingers, a gripper is closed below this."""
    target_lift_height: float | None = None
    place_tolerance: float | None = None
    touched: dict[str, bool] = {}
    """Whether the robot touched `furniture`, other `objects` or it`self` in this step."""
    clamped: tuple[str, ...] = ()
    """Controls that were asked for what they cannot do."""
    more: dict[str, float | int | bool | str] = {}
    """All other numbers and words that the env reports, for metrics of one's own."""


PickPlaceTrace = Trace[ManipulationAction, PickPlaceState]


def read_state(info: Info) -> PickPlaceState:
    """Return what is recorded of an env's ground truth; all that the exam measures must be there."""
    phase: Any = info.get("phase")
    if phase not in PHASES:
        raise SimulationError(f"info['phase']: expected one of {PHASES}, found {phase!r:.40}")
    has_target = info.get("target_distance", "missing") is not None
    has_place = info.get("target_position", "missing") is not None
    return PickPlaceState(
        position=_triple(info, "position"),
        yaw=read_number(info, "yaw"),
        ee_position=_triple(info, "ee_position"),
        object_position=_triple(info, "object_position"),
        gripper_state=read_number(info, "gripper_state"),
        object_grasped=read_flag(info, "object_grasped"),
        collision=read_flag(info, "collision"),
        phase=phase,
        target_distance=read_number(info, "target_distance") if has_target else None,
        target_position=_triple(info, "target_position") if has_place else None,
        more=read_more(info, KNOWN_KEYS),
        **read_optional(info),
    )


def read_optional(info: Info) -> dict[str, Any]:
    """Return the fields of a state that an env may leave out, as far as it tells them."""
    return {key: read(info, key) for key, read in OPTIONAL.items() if info.get(key) is not None}


def _triple(info: Info, key: str) -> Point:
    point = read_point(info, key)
    return point.x, point.y, point.z


def _numbers(info: Info, key: str) -> tuple[float, ...]:
    try:
        row = tuple(float(value) for value in np.asarray(info[key], dtype=float).reshape(-1))
    except (TypeError, ValueError):
        row = (math.nan,)
    if not all(map(math.isfinite, row)):
        raise SimulationError(f"info['{key}']: expected finite numbers, found {info[key]!r:.120}")
    return row


def _flags(info: Info, key: str) -> dict[str, bool]:
    flags = info[key]
    if not isinstance(flags, Mapping):
        raise SimulationError(f"info['{key}']: expected a dict of flags, found {flags!r:.120}")
    return {str(name): read_flag(dict(flags), name) for name in flags}


def _names(info: Info, key: str) -> tuple[str, ...]:
    names = info[key]
    if not isinstance(names, list | tuple | set | frozenset):
        raise SimulationError(f"info['{key}']: expected a list of names, found {names!r:.120}")
    return tuple(map(str, names))


OPTIONAL: dict[str, Any] = {
    **dict.fromkeys(("success", "object_in_target", "object_released", "object_supported"), read_flag),
    **dict.fromkeys(
        ("time_s", "initial_object_z", "gripper_closed_below", "target_lift_height", "place_tolerance"),
        read_number,
    ),
    **dict.fromkeys(("qpos", "ee_pose"), _numbers),
    **dict.fromkeys(("object_center", "initial_object_position"), _triple),
    "touched": _flags,
    "clamped": _names,
}
"""How to read what an env may leave out."""

KNOWN_KEYS = frozenset((*PickPlaceState.__struct_fields__, "step", "collision_count", "distance_to_goal"))
"""Entries of an env's info that have a field of their own, or follow from the other states."""
