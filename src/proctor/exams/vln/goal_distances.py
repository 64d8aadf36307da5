"""How far the goal was all along a driven path, quickly for thousands of episodes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from proctor.core.errors import UserError
from proctor.core.geometry import distance
from proctor.core.types import Array
from proctor.exams.path_distance import scene_of
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.maps.grid_map import GridMap
from proctor.scenes.geodesics import ROBOT_RADIUS_M
from proctor.scenes.scene import Scene

LARGEST_ERROR = 0.1
"""An estimate that is further off than this share has another reason than the size of the cells."""


def goal_distances(result: EpisodeResult, episode: Episode) -> Array | None:
    """Return how far the goal was at each point of a trajectory, by the distance it was judged by.

    The geodesic ones are estimates to within a few per cent, scaled so that the last is the one that was
    measured. None where goal or map are not there.
    """
    if episode.goal_position is None:
        return None
    start, goal = episode.start_position, episode.goal_position
    if result.distance == "euclidean":
        return np.array([distance(point, goal) for point in result.trajectory])
    try:
        scene = scene_of(episode)
        grid = None if scene is None else _coarse_map(scene, scene.floor_near(start))
    except UserError:
        grid = None
    if grid is None:
        return None
    grid = grid.covering((start.x, start.y), (goal.x, goal.y))
    points = np.array([(point.x, point.y) for point in result.trajectory])
    planar_m = grid.rough_distances_m(points, (goal.x, goal.y), radius_m=0.0)
    climbs_m = np.array([goal.z - point.z for point in result.trajectory])
    distances_m: Array = np.hypot(planar_m, climbs_m)
    measured_m, last_m = result.metrics.get("navigation_error", 0.0), float(distances_m[-1])
    is_close = abs(measured_m - last_m) < LARGEST_ERROR * last_m
    return distances_m * (measured_m / last_m) if is_close else distances_m


@lru_cache(maxsize=8)
def _coarse_map(scene: Scene, floor_z: float) -> GridMap:
    """Return where the middle of the robot can be, in cells of twice the size: a search takes a quarter."""
    fine = scene.map(floor_z)
    free = fine.clearance_m > ROBOT_RADIUS_M
    free = np.pad(free, [(0, size % 2) for size in free.shape], constant_values=True)
    rows, columns = (size // 2 for size in free.shape)
    roomy = free.reshape(rows, 2, columns, 2).any(axis=(1, 3))
    return GridMap(
        np.logical_not(roomy),
        resolution_m=2 * fine.resolution_m,
        origin_world=fine.origin_world,
        ends=fine.ends,
    )
