"""From a request to a path, and from a path to a trajectory."""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.maps.clearance import clearance_at
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.planner import find_path
from proctor.navigation.process.requests import PathRequest, TrajectoryRequest
from proctor.navigation.smoothing.smooth_path import smooth_path
from proctor.navigation.timing.time_path import REST_MPS, time_path
from proctor.navigation.timing.trajectory import Trajectory


def compute_path(
    field: ClearanceField, request: PathRequest, cancelled: Callable[[], bool] | None = None
) -> Path:
    """Plan a path and make it smooth.

    `cancelled` is asked now and then; if it returns True, the planner ends with any failure. Raises
    NavigationFailure if there is no path, or not in time, or the robot does not fit at the goal.
    """
    start = request.start
    began_s = time.perf_counter()
    found = find_path(
        field,
        (start.x, start.y),
        request.goal_xy,
        planner=request.planner,
        radius_m=request.radius_m,
        margin_m=request.margin_m,
        timeout_s=request.timeout_s,
        seed=request.seed,
        cancelled=cancelled,
    )
    room_m = clearance_at(field, *request.goal_xy)[0]
    if room_m <= request.radius_m:  # a free cell has places with less room than its centre
        x, y = request.goal_xy
        what = f"a robot with a radius of {request.radius_m} m does not fit at the goal ({x:.2f}, {y:.2f})"
        raise NavigationFailure(Reason.GOAL_OCCUPIED, f"{what}: an obstacle is {room_m:.3f} m away")
    found_s = time.perf_counter()
    legs, clearance_m = smooth_path(
        field,
        found.points,
        radius_m=request.radius_m,
        margin_m=found.margin_m,
        start=(start.direction, start.curvature) if start.v > REST_MPS else None,
        speed_mps=start.v,
        dynamics=request.dynamics,
    )
    return Path(
        raw=found.points,
        legs=legs,
        planner=found.planner,
        margin_m=found.margin_m,
        clearance_m=clearance_m,
        timings_s={"planning": found_s - began_s, "smoothing": time.perf_counter() - found_s},
    )


def generate_trajectory(request: TrajectoryRequest) -> Trajectory:
    """Give a path its times, under the robot's limits; NavigationFailure if they cannot be kept."""
    return time_path(
        request.path.legs,
        request.dynamics,
        start=request.start,
        goal_yaw=request.goal_yaw,
        method=request.timing,
    )
