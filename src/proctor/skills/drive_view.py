"""The part of the world that a picture of a drive shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.skills.drive import Drive

Point = tuple[float, float]

AROUND_M = 1.2
"""So much is shown around what was planned and driven."""
IN_VIEW_M = 0.4
"""So much at least, where the rest is better used to show the map."""


class View(NamedTuple):
    """A rectangle of the world."""

    low: Point
    high: Point

    @property
    def width_m(self) -> float:
        """Its extent along x."""
        return self.high[0] - self.low[0]

    @property
    def height_m(self) -> float:
        """Its extent along y."""
        return self.high[1] - self.low[1]


def view_of(drive: Drive, *, flattest: float, tallest: float) -> View:
    """Return a rectangle with everything of a drive in it.

    Args:
        drive: The drive.
        flattest: The least height of the rectangle, by its width. One that is flatter grows upwards.
        tallest: The largest height; one that is taller grows sideways.
    """
    parts = [np.array([[drive.start.x, drive.start.y], drive.goal]), drive.log.poses[:, :2]]
    for path in [drive.path, *drive.replanned]:
        parts += [path.raw, path.points] if path is not None else []
    points = np.concatenate(parts)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0) - AROUND_M, points.max(axis=0) + AROUND_M
    middle, size = (low + high) / 2, high - low
    size = np.array([max(size[0], size[1] / tallest), max(size[1], size[0] * flattest)])
    low, high = middle - size / 2, middle + size / 2
    least, most = points.max(axis=0) + IN_VIEW_M - high, points.min(axis=0) - IN_VIEW_M - low
    shift = np.clip(_shift_over_map(low, high, drive), least, most)
    low, high = low + shift, high + shift
    return View((float(low[0]), float(low[1])), (float(high[0]), float(high[1])))


def _shift_over_map(low: Array, high: Array, drive: Drive) -> Array:
    """Return how to move a rectangle so that it shows as little beyond the map as it must."""
    grid = drive.grid
    begin = np.array(grid.origin_world)
    end = begin + np.array(grid.occupied.shape[::-1]) * grid.resolution_m
    back = np.maximum(high - end, 0)
    back = np.minimum(back, np.maximum(low - begin, 0))
    on = np.maximum(begin - low, 0)
    on = np.minimum(on, np.maximum(end - high, 0))
    return np.asarray(on - back)
