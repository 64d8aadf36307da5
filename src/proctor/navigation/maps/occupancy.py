"""Maps as nav_msgs/OccupancyGrid carries them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.errors import UserError
from proctor.navigation.maps.grid_map import GridMap
from proctor.navigation.maps.point_cloud import MOST_CELLS, Unknown, counts_as_occupied

UNKNOWN, FREE, OCCUPIED = -1, 0, 100
OCCUPIED_FROM, FREE_TO = 65, 25
"""Percentages from which on and up to which a cell is certain; in between it is unknown."""
MOST_YAW = 1e-6
CELLS_M = (1e-4, 1e2)
"""The least and the largest side of a cell."""


class Occupancy(NamedTuple):
    """The data of an OccupancyGrid message and the parts of its `info` that matter."""

    data: ArrayLike
    """Row by row from the lower left: -1 if unknown, else 0 to 100 percent."""
    width: int
    height: int
    resolution_m: float
    origin_world: tuple[float, float] = (0.0, 0.0)
    """The lower left corner of the first cell."""
    yaw: float = 0.0
    """Of the map in the world. Only maps that are not turned can be used."""

    @classmethod
    def of(cls, grid: GridMap) -> Occupancy:
        """Return a map's message; `data` is int8."""
        cells = np.where(grid.unknown, UNKNOWN, np.where(grid.occupied, OCCUPIED, FREE)).astype(np.int8)
        rows, columns = cells.shape
        return cls(cells.ravel(), columns, rows, grid.resolution_m, grid.origin_world)

    def grid(self, *, unknown: Unknown = "free") -> GridMap:
        """Return the message's map.

        Args:
            unknown: Whether unknown cells count as free or as occupied.

        Raises:
            UserError: A field is wrong.
        """
        closed = counts_as_occupied(unknown)
        self.check()
        cells = self._cells()
        occupied = cells >= OCCUPIED_FROM
        unseen = (cells < FREE) | ((cells > FREE_TO) & ~occupied)
        return GridMap(
            occupied | unseen if closed else occupied,
            resolution_m=float(self.resolution_m),
            origin_world=(float(self.origin_world[0]), float(self.origin_world[1])),
            ends=closed,
            unknown=unseen,
        )

    def check(self) -> None:
        """Refuse sizes and frames that are none.

        Raises:
            UserError: A field is wrong.
        """
        if min(self.width, self.height) < 2 or self.width * self.height > MOST_CELLS:
            size = f"{self.width} x {self.height}"
            raise UserError(f"expected a map of 2 x 2 to {MOST_CELLS} cells, found {size}")
        if not CELLS_M[0] <= self.resolution_m <= CELLS_M[1]:
            raise UserError(f"expected cells of {CELLS_M[0]} to {CELLS_M[1]} m, found {self.resolution_m}")
        if not all(map(math.isfinite, self.origin_world)):
            raise UserError(f"expected a finite origin, found {self.origin_world}")
        if not abs(self.yaw) <= MOST_YAW:
            raise UserError(f"expected a map that is not turned, found a yaw of {self.yaw}: turn its image")

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
