"""A plan: the request for it, how it is made, and the answer.

Request and answer travel as msgpack, which can hold data only. A map is too large for that: its array is a
file in memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.maps.failure import NavigationFailure, Reason, infeasible
from proctor.navigation.path import Path, RobotMotion, Trajectory
from proctor.navigation.planner import MARGIN_M, find_path
from proctor.navigation.smooth_path import smooth_path
from proctor.navigation.timing.time_path import REST_MPS, time_path
from proctor.robots.dynamics import Dynamics
from proctor.robots.spec import standard_robot

TimingMethod: TypeAlias = Literal["fast", "toppra"]  # compiled here, or by the package toppra
MAX_MESSAGE_BYTES = 1 << 24  # a path of some hundred thousand points


class MapLayout(msgspec.Struct, frozen=True):
    """Which map a request is about."""

    serial: int  # differs for every map that is sent; the array follows the first request that names it
    shape: tuple[int, int]  # rows and columns
    frame: tuple[float, float, float]  # side of a cell, x and y of the lower left corner; metres


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
            raise self.failure or infeasible("there is no trajectory")
        return self.trajectory


def _check_finite(what: str, *numbers: float) -> None:
    if not all(map(math.isfinite, numbers)):
        raise UserError(f"expected finite numbers for {what}, found {list(numbers)}")


def plan(
    request: PlanRequest, field: ClearanceField | None, cancelled: Callable[[], bool] | None = None
) -> PlanAnswer:
    """Do what is asked for: find a path on a map, make it smooth, and give it its times.

    `cancelled` is asked now and then; if it returns True, the planner ends with any failure.
    """
    found, trajectory, timings_s = None, None, dict[str, float]()
    try:
        path = request.path
        if path is None:
            if field is None:
                raise ValueError("expected a map to plan on")
            path = found = _compute_path(field, request, cancelled, timings_s)
        if request.timing is not None:
            began_s = time.perf_counter()
            trajectory = time_path(
                path.legs,
                request.dynamics,
                start=request.start,
                goal_yaw=request.goal_yaw,
                method=request.timing,
            )
            timings_s["trajectory_generation"] = time.perf_counter() - began_s
    except NavigationFailure as failure:
        return PlanAnswer(id=request.id, path=found, failure=failure, timings_s=timings_s)
    return PlanAnswer(id=request.id, path=found, trajectory=trajectory, timings_s=timings_s)


def _compute_path(
    field: ClearanceField,
    request: PlanRequest,
    cancelled: Callable[[], bool] | None,
    timings_s: dict[str, float],
) -> Path:
    """Plan a path and make it smooth; NavigationFailure if there is none or the robot does not fit there."""
    start, (x, y) = request.start, request.goal_xy or (0.0, 0.0)
    began_s = time.perf_counter()
    found = find_path(
        field,
        (start.x, start.y),
        (x, y),
        planner=request.planner,
        planner_options=request.planner_options,
        radius_m=request.radius_m,
        margin_m=request.margin_m,
        timeout_s=request.timeout_s,
        seed=request.seed,
        cancelled=cancelled,
    )
    room_m = clearance_at(field, x, y)[0]
    if room_m <= request.radius_m:  # a free cell has places with less room than its centre
        what = f"a robot with a radius of {request.radius_m} m does not fit at the goal ({x:.2f}, {y:.2f})"
        raise NavigationFailure(Reason.GOAL_OCCUPIED, f"{what}: an obstacle is {room_m:.3f} m away")
    found_s = time.perf_counter()
    timings_s["planning"] = found_s - began_s
    legs, clearance_m = smooth_path(
        field,
        found.points,
        radius_m=request.radius_m,
        margin_m=found.margin_m,
        start=(start.direction, start.curvature) if start.v > REST_MPS else None,
        speed_mps=start.v,
        dynamics=request.dynamics,
    )
    timings_s["smoothing"] = time.perf_counter() - found_s
    return Path(
        raw=found.points, legs=legs, planner=found.planner, margin_m=found.margin_m, clearance_m=clearance_m
    )


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
