"""Where a Stretch with its arm drawn in can stand and turn freely, and the ways between such places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode, SceneItem
from proctor.navigation.maps.grid_map import GridMap
from proctor.scenes.thing import Thing

BASE_RADIUS_M, BASE_HEIGHT_M = 0.37, 0.2
"""What the base sweeps when it turns."""
MAST_RADIUS_M = 0.23
"""What the mast and the arm's carriage sweep, above the base."""
CELL_M, AROUND_M = 0.05, 1.5
FLAT_M2 = 1e-6
SLIDES_M = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0)
"""How far a base that cannot move sideways drives on until it can turn."""


class Floor:
    """The floor around the furniture.

    Args:
        episode: What stands where.
        things: Its scene objects, by name.
    """

    def __init__(self, episode: PickAndPlaceEpisode, things: Mapping[str, Thing]) -> None:
        shapes = [shape for item in episode.scene_objects for shape in _outlines(item, things[item.name])]
        places = [points for points, _ in shapes] + [np.array([episode.robot_config.init_pose.base[:2]])]
        corners = np.concatenate(places)
        low, high = corners.min(axis=0) - AROUND_M, corners.max(axis=0) + AROUND_M
        columns, rows = np.ceil((high - low) / CELL_M).astype(int)
        x, y = low[0] + (np.arange(columns) + 0.5) * CELL_M, low[1] + (np.arange(rows) + 0.5) * CELL_M
        cells = np.stack(np.meshgrid(x, y), axis=-1)
        taken = np.zeros((rows, columns), dtype=bool)
        for points, radius_m in shapes:
            sides = ConvexHull(points).equations  # of each, the outward normal and the offset
            taken |= (cells @ sides[:, :2].T + sides[:, 2]).max(axis=-1) < radius_m
        self._map = GridMap(taken, resolution_m=CELL_M, origin_world=(float(low[0]), float(low[1])))

    def path(self, start_xy: Array, end_xy: Array) -> Array | None:
        """Return the corners (N, 2) of the shortest way, both ends included; None if there is none."""
        return self._map.shortest_path(start_xy, end_xy, radius_m=0.0)

    def turning_places(self, pose: Array) -> Iterator[Array]:
        """Yield where a robot can turn, straight ahead of a pose x, y, yaw and behind it."""
        ahead = np.array([math.cos(pose[2]), math.sin(pose[2])])
        found: set[float] = set()
        for slide_m in SLIDES_M:
            for sign in (1.0, -1.0):
                place = pose[:2] + sign * slide_m * ahead
                if sign not in found and self._map.clearance_at(*place) > 0:
                    found.add(sign)
                    yield place


def _outlines(item: SceneItem, thing: Thing) -> Iterator[tuple[Array, float]]:
    """Yield what a thing's solids look like from above, with how far a base must keep from them."""
    turned = Rotation.from_quat(item.rotation)
    for solid in thing.solids:
        points = turned.apply(solid.points) + item.position
        spread = np.ptp(points[:, :2], axis=0)
        if spread.prod() > FLAT_M2:
            is_low = points[:, 2].min() < BASE_HEIGHT_M
            yield points[:, :2], BASE_RADIUS_M if is_low else MAST_RADIUS_M
