"""How far it is for a robot on wheels around the obstacles of a scene's map."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

from proctor.core.geometry import distance
from proctor.core.interfaces import DistanceFn
from proctor.core.types import Vector3
from proctor.maps.grid_map import PLANNING_RADIUS_M, GridMap, Point
from proctor.robots.spec import standard_robot

ROBOT_RADIUS_M = standard_robot().radius_m
"""Distances are the exam's, whichever robot takes it: else the scores of two robots could not be compared."""
CAREFUL_RADIUS_M = 0.1  # the robot's radius less what the map may be too careful
JOIN_M = 0.5
"""An end inside of an object is joined to a free place if the object ends no further away than this."""

TRIES = (
    *((PLANNING_RADIUS_M, 0.0), (ROBOT_RADIUS_M, 0.0)),
    *((PLANNING_RADIUS_M, JOIN_M), (ROBOT_RADIUS_M, JOIN_M), (CAREFUL_RADIUS_M, JOIN_M)),
)
"""For which disc to look for a path, in this order, and how far its ends may be joined."""


PlanarFn = Callable[..., float]
"""How far it is over the floor from start to goal for a disc of `radius_m`; infinite if there is no path."""


def geodesic_on(grid: GridMap, start: Vector3, goal: Vector3) -> DistanceFn | None:
    """Return the length of the shortest path on a map; None where it does not connect start and goal."""
    length_m = cache(partial(geodesic_m, grid))  # several metrics ask for the same
    if not math.isfinite(length_m(start, goal)):
        return None

    def geodesic(a: Vector3, b: Vector3) -> float:
        if math.isfinite(length_m(a, b)):
            return length_m(a, b)
        # The robot may get to where the map, which is a few centimetres too careful, sees no path.
        careful_m = _drive_m(grid, a, b, CAREFUL_RADIUS_M, JOIN_M, grid.distance_m)
        return math.inf if careful_m is None else careful_m

    return geodesic


def geodesic_m(grid: GridMap, a: Vector3, b: Vector3) -> float:
    """Return the length of the shortest drive from a to b, and the climb on top of it; infinite if none.

    It is measured for the disc that paths are planned for or, where that finds no path, for the robot's own.
    An end where neither fits is joined to a place close by where one does, never through a wall. Where there
    is no such place, the map being a little too careful, it is measured for a smaller disc.
    """
    return _first_drive_m(grid, a, b, grid.distance_m)


def has_path(grid: GridMap, a: Vector3, b: Vector3) -> bool:
    """Tell whether `geodesic_m` is finite, much faster."""

    def nothing_m(start: Point, goal: Point, *, radius_m: float) -> float:
        return 0.0 if grid.connects(start, goal, radius_m=radius_m) else math.inf

    return math.isfinite(_first_drive_m(grid, a, b, nothing_m))


def _first_drive_m(grid: GridMap, a: Vector3, b: Vector3, planar: PlanarFn) -> float:
    for radius_m, reach_m in TRIES:
        length_m = _drive_m(grid, a, b, radius_m, reach_m, planar)
        if length_m is not None and (math.isfinite(length_m) or radius_m <= ROBOT_RADIUS_M):
            return length_m
    return math.inf


def _drive_m(
    grid: GridMap, a: Vector3, b: Vector3, radius_m: float, reach_m: float, planar: PlanarFn
) -> float | None:
    """Return how far a disc has to go, its ends joined to where it fits; None if it fits nowhere near."""
    start, goal = (a.x, a.y), (b.x, b.y)
    # Joins are a detour, which would count where a robot beside a wall is close to its goal.
    if math.dist(start, goal) <= 2 * reach_m and grid.line_is_free(start, goal, CAREFUL_RADIUS_M):
        return distance(a, b)
    first = grid.place_beside(start, radius_m, reach_m=reach_m)
    last = grid.place_beside(goal, radius_m, reach_m=reach_m)
    if first is None or last is None:
        return None
    planar_m = planar(first, last, radius_m=radius_m)
    return math.hypot(math.dist(start, first) + planar_m + math.dist(last, goal), b.z - a.z)
