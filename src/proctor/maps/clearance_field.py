"""The clearance of a map: for each cell, the distance to the nearest obstacle. Nothing here is compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from proctor.core.types import Array

EMPTY_M = 1e3  # the clearance where there is no obstacle at all
SMALL_CELLS = 250_000  # a house: loading compiled functions would take 10 times what they save


class ClearanceField(NamedTuple):
    """A map's distances to the nearest obstacle. Compiled functions take it as it is."""

    cells: Array  # metres from cell centres to the nearest occupied cell, negative inside; [y, x]
    resolution_m: float
    origin_x: float  # the map's lower left corner, which is a corner of cell [0, 0]
    origin_y: float

    def covers(self, x: float, y: float) -> bool:
        """Tell whether a place lies on the map."""
        rows, columns = self.cells.shape
        column, row = (x - self.origin_x) / self.resolution_m, (y - self.origin_y) / self.resolution_m
        return bool(0 <= column < columns and 0 <= row < rows)


def clearances(occupied: NDArray[np.bool_], resolution_m: float) -> Array:
    """Return the exact distance from cell centres to the nearest occupied square, negative inside."""
    if occupied.size > SMALL_CELLS:
        from proctor.maps.clearance import compiled_clearances  # noqa: PLC0415  (see above)

        return compiled_clearances(occupied, resolution_m)
    if not occupied.any():
        return np.full(occupied.shape, EMPTY_M)
    # The point of a square that is nearest to another cell's centre is one of its corners or edge midpoints.
    # All of these, and the centres, lie on a lattice of half cells.
    rows, columns = occupied.shape
    half_cells_free = np.ones((2 * rows + 1, 2 * columns + 1), dtype=bool)
    row, column = np.nonzero(occupied)
    for row_shift in range(3):
        for column_shift in range(3):
            half_cells_free[2 * row + row_shift, 2 * column + column_shift] = False
    distances: Array = distance_transform_edt(half_cells_free)
    # Half a cell below zero inside, so that what is interpolated is zero on the border.
    return resolution_m * np.where(occupied, -0.5, distances[1::2, 1::2] / 2)
