"""Maps as nav_msgs/OccupancyGrid carries them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.errors import UserError
from proctor.core.types import Array
from proctor.maps.grid_map import GridMap
from proctor.maps.point_cloud import MOST_CELLS, Unknown, counts_as_occupied

UNKNOWN, FREE, OCCUPIED = -1, 0, 100
OCCUPIED_FROM, FREE_TO = 65, 25  # percentages; a cell in between is unknown
TOUCH = 1e-6  # cells: what overlaps by less only touches
ROWS_AT_ONCE = 256
CELLS_M = (1e-4, 1e2)  # the least and the largest side of a cell
FARTHEST_M = 1e7  # of the origin: as far as UTM coordinates reach


class Occupancy(NamedTuple):
    """The data of an OccupancyGrid message and the parts of its `info` that matter."""

    data: ArrayLike  # row by row from the lower left: -1 if unknown, else 0 to 100 percent
    width: int
    height: int
    resolution_m: float
    origin_world: tuple[float, float] = (0.0, 0.0)  # the lower left corner of the first cell
    yaw: float = 0.0  # how far the map is turned in the world, around that corner

    @classmethod
    def of(cls, grid: GridMap) -> Occupancy:
        """Return a map's message; `data` is int8."""
        cells = np.where(grid.unknown, UNKNOWN, np.where(grid.occupied, OCCUPIED, FREE)).astype(np.int8)
        rows, columns = cells.shape
        return cls(cells.ravel(), columns, rows, grid.resolution_m, grid.origin_world)

    def grid(self, *, unknown: Unknown = "free") -> GridMap:
        """Return the message's map; UserError if a field is wrong.

        Cells of a map lie along the axes of the world. If the message is turned, each of them gets
        the worst of the cells that it overlaps: occupied, unknown, free. So no obstacle is lost.
        Beyond the message it is unknown. `unknown` is what unknown cells count as.
        """
        closed = counts_as_occupied(unknown)
        self.check()
        cells = self._cells()
        occupied = cells >= OCCUPIED_FROM
        unseen = (cells < FREE) | ((cells > FREE_TO) & ~occupied)
        x, y = map(float, self.origin_world)
        if abs(math.remainder(self.yaw, math.tau)) > 1e-6:  # a map that is turned by less is not turned
            occupied, unseen, (left, bottom) = _along_axes(occupied, unseen, self.yaw)
            x, y = x + left * self.resolution_m, y + bottom * self.resolution_m
        return GridMap(
            occupied | unseen if closed else occupied,
            resolution_m=float(self.resolution_m),
            origin_world=(x, y),
            ends=closed,
            unknown=unseen,
        )

    def check(self) -> None:
        """Raise UserError if the size or the frame is not valid."""
        if min(self.width, self.height) < 2 or self.width * self.height > MOST_CELLS:
            size = f"{self.width} x {self.height}"
            raise UserError(f"expected a map of 2 x 2 to {MOST_CELLS} cells, found {size}")
        if not CELLS_M[0] <= self.resolution_m <= CELLS_M[1]:
            raise UserError(f"expected cells of {CELLS_M[0]} to {CELLS_M[1]} m, found {self.resolution_m}")
        if not all(abs(value) <= FARTHEST_M for value in self.origin_world):
            expected = f"expected a finite origin, at most {FARTHEST_M:g} m in x and y"
            raise UserError(f"{expected}, found {self.origin_world}")
        if not math.isfinite(self.yaw):
            raise UserError(f"expected a finite yaw, found {self.yaw}")

    def _cells(self) -> NDArray[np.int64]:
        cells = np.asarray(self.data)
        if cells.dtype.kind not in "iu" or cells.size != self.width * self.height:
            due = f"{self.width * self.height} whole numbers, row by row"
            raise UserError(f"expected {due}, found {cells.dtype} {cells.shape}")
        wrong = np.flatnonzero((cells.ravel() < UNKNOWN) | (cells.ravel() > OCCUPIED))
        if len(wrong):
            found = f"data[{wrong[0]}] is {cells.ravel()[wrong[0]]}"
            raise UserError(f"expected -1 or 0 to 100 in every cell, but {found}")
        return np.asarray(cells.reshape(self.height, self.width), dtype=np.int64)


def _along_axes(
    occupied: NDArray[np.bool_], unseen: NDArray[np.bool_], yaw: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], tuple[float, float]]:
    """Draw cells that are turned around the lower left corner into cells along the axes.

    Returns what is occupied, what is unknown, and the new lower left corner, in cells from the old one.
    """
    rows, columns = occupied.shape
    cos, sin = math.cos(yaw), math.sin(yaw)
    xs = np.array([0.0, cos * columns, -sin * rows, cos * columns - sin * rows])
    ys = np.array([0.0, sin * columns, cos * rows, sin * columns + cos * rows])
    left, bottom = float(xs.min()), float(ys.min())
    width, height = (math.ceil(float(np.ptp(side)) - TOUCH) for side in (xs, ys))
    if width * height > MOST_CELLS:
        size = f"{width} x {height}"
        raise UserError(
            f"expected a map of at most {MOST_CELLS} cells, found {size} when it is turned by {yaw}"
        )
    layers = np.stack([np.pad(occupied, 3), np.pad(unseen, 3, constant_values=True)])
    turned = np.zeros((2, height, width), dtype=bool)
    across = left + np.arange(width) + 0.5
    for first in range(0, height, ROWS_AT_ONCE):
        part = turned[:, first : first + ROWS_AT_ONCE]
        up = bottom + first + np.arange(part.shape[1])[:, None] + 0.5
        _add_overlapped(part, layers, cos * across + sin * up, cos * up - sin * across, yaw)
    return turned[0], turned[1] & ~turned[0], (left, bottom)


def _add_overlapped(
    turned: NDArray[np.bool_], layers: NDArray[np.bool_], u: Array, v: Array, yaw: float
) -> None:
    """Add to cells (layers, rows, columns), in place, what the cells of a map have that they overlap.

    Two squares overlap if they do so along the sides of one and along the sides of the other. `layers`
    have a border of three cells; `u` and `v` are the cells' centres along the map's rows and columns.
    """
    cos, sin = math.cos(yaw), math.sin(yaw)
    reach = 0.5 + (abs(cos) + abs(sin)) / 2 - TOUCH
    columns, rows = np.floor(u), np.floor(v)
    for up in (-1, 0, 1):
        for right in (-1, 0, 1):
            du, dv = columns + right + 0.5 - u, rows + up + 0.5 - v
            overlaps = (np.abs(du) < reach) & (np.abs(dv) < reach)
            overlaps &= (np.abs(cos * du - sin * dv) < reach) & (np.abs(sin * du + cos * dv) < reach)
            row = np.clip(rows + up + 3, 0, layers.shape[1] - 1).astype(np.intp)
            column = np.clip(columns + right + 3, 0, layers.shape[2] - 1).astype(np.intp)
            turned |= overlaps & layers[:, row, column]
