"""The exact distance from every cell to the nearest occupied square, in a time that grows with the cells.

The point of a square that is nearest to another cell's centre is one of its corners or edge midpoints. All
of these, and the centres, lie on a lattice of half cells, so that squared distances are whole numbers and
nothing is rounded before the root is drawn.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.maps.clearances import EMPTY_M

Window = tuple[int, int, int, int]
"""First row, row after the last, first column, column after the last."""


def compiled_clearances(occupied: NDArray[np.bool_], resolution_m: float) -> Array:
    """Return the metres from cell centres to the nearest occupied square, minus half a cell inside of one.

    Args:
        occupied: Rows along y, columns along x.
        resolution_m: Side of a cell.
    """
    rows, columns = occupied.shape
    # A kind of array that it has not seen yet would be compiled for anew.
    cells = np.require(occupied, np.bool_, ["C", "W"])
    return clearances_inside(cells, float(resolution_m), (0, rows, 0, columns))


@compiled
def clearances_inside(occupied: NDArray[np.bool_], resolution_m: float, window: Window) -> Array:
    """Return the clearances of a window, blind to what is beyond it."""
    gaps = _gaps_along_columns(occupied, window)
    rows, columns = gaps.shape
    heights = np.empty(columns)
    corner_at, corner_height = np.empty(columns + 1), np.empty(columns + 1)
    begins = np.empty(columns + 1)
    for row in range(rows):
        for column in range(columns):
            gap = max(gaps[row, column], 0.0)
            heights[column] = gap * gap
        count = _lower_envelope(heights, corner_at, corner_height, begins)
        corner = 0
        for column in range(columns):
            if gaps[row, column] < 0.0:
                # Half a cell below zero, so that what is interpolated is zero on the border.
                gaps[row, column] = resolution_m * -0.5
                continue
            centre, nearest = 2.0 * column + 1.0, heights[column]
            while corner + 1 < count and begins[corner + 1] < centre:
                corner += 1
            if count:
                aside = centre - corner_at[corner]
                nearest = min(nearest, aside * aside + corner_height[corner])
            gaps[row, column] = EMPTY_M if nearest == math.inf else resolution_m * (math.sqrt(nearest) / 2)
    return gaps


@compiled
def _gaps_along_columns(occupied: NDArray[np.bool_], window: Window) -> Array:
    """Return the half cells from each centre to the nearest square above or below it, -1 inside of one."""
    first_row, end_row, first_column, end_column = window
    rows, columns = end_row - first_row, end_column - first_column
    gaps = np.empty((rows, columns))
    for row in range(rows):
        for column in range(columns):
            below = gaps[row - 1, column] + 2.0 if row else math.inf
            gaps[row, column] = -1.0 if occupied[first_row + row, first_column + column] else below
    for row in range(rows - 2, -1, -1):
        for column in range(columns):
            gaps[row, column] = min(gaps[row, column], gaps[row + 1, column] + 2.0)
    return gaps


@compiled
def _lower_envelope(heights: Array, corner_at: Array, corner_height: Array, begins: Array) -> int:
    """Find which corner of the squares beside a row is nearest where along it; return how many ever are.

    The squared distance to a corner is a parabola along the row. Two of them cross once, so the nearest
    ones follow each other from left to right. Corners stand at even places, centres at odd ones.

    Args:
        heights: Squared gaps of the row's cells; each has a corner on its left and on its right.
        corner_at: Where the nearest corners stand, filled.
        corner_height: Their squared gaps, filled.
        begins: From where on each is the nearest, filled.
    """
    columns = heights.shape[0]
    count = 0
    for index in range(columns + 1):
        height = heights[max(index - 1, 0)]
        if index < columns:
            height = min(height, heights[index])
        if height == math.inf:
            continue
        at, begin = 2.0 * index, -math.inf
        while count:
            apart = at - corner_at[count - 1]
            rise = height - corner_height[count - 1]
            begin = 0.5 * (at + corner_at[count - 1] + rise / apart)
            if begin > begins[count - 1]:
                break
            count -= 1
            begin = -math.inf
        corner_at[count], corner_height[count], begins[count] = at, height, begin
        count += 1
    return count
