"""From a request to a path, and from the path to a trajectory."""

from __future__ import annotations

import time
from collections.abc import Callable

from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.planner import find_path
from proctor.navigation.process.requests import PlanAnswer, PlanRequest
from proctor.navigation.smooth_path import smooth_path
from proctor.navigation.timing.time_path import REST_MPS, time_path


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
