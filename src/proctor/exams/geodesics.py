"""How far it is for a robot on wheels around the obstacles of a scene's map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Protocol

from proctor.core.errors import LEAVE_OUT
from proctor.core.geometry import distance
from proctor.core.interfaces import DistanceFn, DrivingEpisode
from proctor.core.types import Vector3
from proctor.exams.findings import some_of
from proctor.exams.path_distance import has_map
from proctor.maps.grid_map import PLANNING_RADIUS_M, ROBOT, GridMap, Point
from proctor.scenes.scene_config import scene_version
from proctor.scenes.scene_map import floor_of_scene, map_of_scene

CAREFUL_RADIUS_M = 0.1  # the robot's radius less what the map may be too careful
JOIN_M = 0.5
"""An end inside of an object is joined to a free place if the object ends no further away than this."""

TRIES = (
    *((PLANNING_RADIUS_M, 0.0), (ROBOT.radius_m, 0.0)),
    *((PLANNING_RADIUS_M, JOIN_M), (ROBOT.radius_m, JOIN_M), (CAREFUL_RADIUS_M, JOIN_M)),
)
"""For which disc to look for a path, in this order, and how far its ends may be joined."""


class PlanarFn(Protocol):
    """How far it is over the floor for a disc."""

    def __call__(self, start: Point, goal: Point, /, *, radius_m: float) -> float:
        """Return metres, infinite if there is no path."""


def geodesic_of(episode: DrivingEpisode) -> DistanceFn | None:
    """Return the length of the shortest path on the map; None where it does not connect start and goal."""
    grid = _map_of(Path(str(episode.scene_config_path)), episode.start_position, episode.goal)
    if grid is None:
        return None
    length_m = cache(partial(geodesic_m, grid))  # several metrics ask for the same
    if not math.isfinite(length_m(episode.start_position, episode.goal)):
        return None

    def geodesic(a: Vector3, b: Vector3) -> float:
        if math.isfinite(length_m(a, b)):
            return length_m(a, b)
        # The robot may get to where the map, which is a few centimetres too careful, sees no path.
        careful_m = _drive_m(grid, a, b, CAREFUL_RADIUS_M, JOIN_M, grid.distance_m)
        return math.inf if careful_m is None else careful_m

    return geodesic


def is_reachable(episode: DrivingEpisode) -> bool:
    """Tell whether a robot on wheels can get from start to goal, as far as a map can tell."""
    if not has_map(episode):
        return True
    scene = Path(str(episode.scene_config_path))
    return _is_connected(scene, scene_version(scene), episode.start_position, episode.goal)


def unreachable_notes(episodes: Sequence[DrivingEpisode]) -> list[str]:
    """Say which goals cannot be reached on wheels, if any."""
    lost = [episode.episode_id for episode in episodes if not is_reachable(episode)]
    if not lost:
        return []
    have = "has a goal" if len(lost) == 1 else "have goals"
    which = some_of(lost)
    return [
        f"{len(lost)} of {len(episodes)} episodes {have} that no robot on wheels can reach ({which}) and "
        f"{'counts as a failure' if len(lost) == 1 else 'count as failures'}; {LEAVE_OUT}"
    ]


@lru_cache(maxsize=2**14)
def _is_connected(scene: Path, version: int, start: Vector3, goal: Vector3) -> bool:
    del version  # only there to tell versions apart
    grid = _map_of(scene, start, goal)
    return grid is not None and has_path(grid, start, goal)


def _map_of(scene: Path, start: Vector3, goal: Vector3) -> GridMap | None:
    """Return the map that shows both start and goal, None if they lie on different floors."""
    if floor_of_scene(scene, start) != floor_of_scene(scene, goal):
        return None
    return map_of_scene(scene, start).covering((start.x, start.y), (goal.x, goal.y))


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
        if length_m is not None and (math.isfinite(length_m) or radius_m <= ROBOT.radius_m):
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
