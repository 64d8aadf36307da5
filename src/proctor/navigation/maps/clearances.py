"""The distances from the cells of a map to its obstacles, found in one of two ways with one result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from proctor.core.types import Array

EMPTY_M = 1e3
"""The clearance where there is no obstacle at all."""
SMALL_CELLS = 250_000
"""For a map of one house, loading compiled functions would take ten times as long as they save."""


def clearances(occupied: NDArray[np.bool_], resolution_m: float) -> Array:
    """Return the exact distance from cell centres to the nearest occupied square, negative inside."""
    if occupied.size > SMALL_CELLS:
        from proctor.navigation.maps.distance_transform import compiled_clearances  # noqa: PLC0415  (see above)

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
