"""The two messages of the planning process: a request for a plan, and its answer.

They travel as msgpack, which can hold data only. A map is too large for that: its array is a file in memory.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.planner import MARGIN_M
from proctor.navigation.timing.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics
from proctor.robots.spec import standard_robot

TimingMethod: TypeAlias = Literal["fast", "toppra"]  # compiled here, or by the package toppra
MAX_MESSAGE_BYTES = 1 << 24  # a path of some hundred thousand points


class RobotMotion(msgspec.Struct, frozen=True):
    """Where the robot is in the world, and how it moves there."""

    x: float
    y: float
    yaw: float
    v: float = 0.0  # metres per second; negative if backwards
    omega: float = 0.0  # radians per second to the left
    curvature: float = 0.0  # of its path, 1 / metres to the left; with `v`, how a new path must begin
    sideways: float = 0.0  # radians from its heading to its motion, left; for holonomic bases

    @property
    def direction(self) -> float:
        """Where its path leads, in the world; backwards along it if `v` is negative."""
        return self.yaw + self.sideways


class MapLayout(msgspec.Struct, frozen=True):
    """Which map a request is about."""

    serial: int  # differs for every map that is sent; the array follows the first request that names it
    rows: int
    columns: int
    resolution_m: float
    origin_x: float
    origin_y: float


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask for a path to `goal_xy` and its trajectory; UserError if a number is not finite or out of range.

    Both parts can be left out: with a `path`, only its trajectory is made, and without `timing` only a path.
    """

    start: RobotMotion
    goal_xy: tuple[float, float] | None = None
    path: Path | None = None  # instead of a goal
    goal_yaw: float | None = None
    planner: str = "grid"
    planner_options: dict[str, Any] = {}
    radius_m: float = standard_robot().radius_m
    margin_m: float = MARGIN_M  # what the path keeps beyond the radius, where there is room
    dynamics: Dynamics = Dynamics()
    timing: TimingMethod | None = "fast"
    timeout_s: float = 5.0
    seed: int = 0
    id: int = 0  # the client numbers its requests,
    map: MapLayout | None = None  # and says which map it sends

    def __post_init__(self) -> None:
        if (self.goal_xy is None) == (self.path is None):
            raise UserError("expected either a goal or a path that is to be timed")
        _check_finite("start", *msgspec.structs.astuple(self.start))
        _check_finite("goal", *(self.goal_xy or ()), self.goal_yaw or 0.0)
        _check_finite("radius, margin and timeout", self.radius_m, self.margin_m, self.timeout_s)
        if self.radius_m < 0 or self.margin_m < 0 or self.timeout_s <= 0:
            found = f"{self.radius_m}, {self.margin_m} and {self.timeout_s}"
            raise UserError(f"expected radius and margin of 0 or more and a timeout above 0, found {found}")


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a request. A path without a trajectory comes with the failure to time it."""

    id: int
    path: Path | None = None
    trajectory: Trajectory | None = None
    failure: NavigationFailure | None = None
    timings_s: dict[str, float] = {}  # wall time of each stage

    def found_path(self) -> Path:
        """Return the path, or raise why there is none."""
        if self.path is None:
            raise self.failure or NavigationFailure(Reason.NO_PATH, "there is no path")
        return self.path

    def found_trajectory(self) -> Trajectory:
        """Return the trajectory, or raise why there is none."""
        if self.trajectory is None:
            raise self.failure or NavigationFailure(Reason.INFEASIBLE_TRAJECTORY, "there is no trajectory")
        return self.trajectory


def _check_finite(what: str, *numbers: float) -> None:
    if not all(map(math.isfinite, numbers)):
        raise UserError(f"expected finite numbers for {what}, found {list(numbers)}")


def encode(message: PlanRequest | PlanAnswer | None) -> bytes:
    """Return a message as it is sent; UserError if it is too long.

    None from the client: give up what is being worked on. None from the process: everything is compiled.
    """
    body = msgspec.msgpack.encode(message, enc_hook=_plain)
    if len(body) > MAX_MESSAGE_BYTES:
        raise UserError(f"a path or trajectory of {len(body)} bytes is too long to plan with")
    return body


def _plain(value: Any) -> Any:
    """Return what msgpack has for an array, a trajectory, a failure or a numpy number."""
    if isinstance(value, np.ndarray):
        return value.shape, np.ascontiguousarray(value, dtype=float).tobytes()
    if isinstance(value, Trajectory):
        return value.times_s, value.poses, value.velocities
    if isinstance(value, NavigationFailure):
        return value.reason, str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a message cannot hold a {type(value).__name__}")


def _restored(kind: Any, value: Any) -> Any:
    """Return the array, trajectory or failure that `_plain` took apart."""
    if kind is Trajectory:
        return Trajectory(*(_restored(np.ndarray, part) for part in value))
    if kind is NavigationFailure:
        return NavigationFailure(Reason(value[0]), str(value[1]))
    shape, data = value
    # a copy, since compiled functions take arrays that can be written to.
    return np.frombuffer(data).reshape(shape).copy()


decode_request = msgspec.msgpack.Decoder(PlanRequest | None, dec_hook=_restored).decode
decode_answer = msgspec.msgpack.Decoder(PlanAnswer | None, dec_hook=_restored).decode
