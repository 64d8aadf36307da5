"""The clearance of a map, the distance to the nearest obstacle: computed for all cells, and read at a place.

The point of an occupied square that is nearest to another cell's centre is one of its corners or edge
midpoints. All of these, and the centres, lie on a lattice of half cells, so squared distances are whole
numbers and nothing is rounded before the square root.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.compiled import compiled

Mask: TypeAlias = NDArray[np.bool_]
Window: TypeAlias = tuple[
    int, int, int, int
]  # first row, row after the last, first column, column after the last

EMPTY_M = 1e3  # the clearance where there is no obstacle at all


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


@compiled
def clearance_at(field: ClearanceField, x: float, y: float) -> tuple[float, float, float]:
    """Return the interpolated clearance and its slopes along x and y; beyond the map, those of its border."""
    rows, columns = field.cells.shape
    u = (x - field.origin_x) / field.resolution_m - 0.5
    v = (y - field.origin_y) / field.resolution_m - 0.5
    column = min(max(math.floor(u), 0), columns - 2)
    row = min(max(math.floor(v), 0), rows - 2)
    a, b = min(max(u - column, 0.0), 1.0), min(max(v - row, 0.0), 1.0)
    low_left, low_right = field.cells[row, column], field.cells[row, column + 1]
    up_left, up_right = field.cells[row + 1, column], field.cells[row + 1, column + 1]
    low, up = low_left + a * (low_right - low_left), up_left + a * (up_right - up_left)
    slope_x = ((low_right - low_left) * (1.0 - b) + (up_right - up_left) * b) / field.resolution_m
    slope_y = (up - low) / field.resolution_m
    if u < 0.0 or u > columns - 1.0:
        slope_x = 0.0
    if v < 0.0 or v > rows - 1.0:
        slope_y = 0.0
    return low + b * (up - low), slope_x, slope_y


@compiled
def clearances_at(field: ClearanceField, points: Array) -> Array:
    """Return the interpolated clearances of (N, 2) points."""
    values = np.empty(points.shape[0])
    for index in range(points.shape[0]):
        values[index] = clearance_at(field, points[index, 0], points[index, 1])[0]
    return values


@compiled
def least_clearance(field: ClearanceField, points: Array) -> float:
    """Return the least clearance of (N, 2) points."""
    least = math.inf
    for index in range(points.shape[0]):
        here = clearance_at(field, points[index, 0], points[index, 1])[0]
        least = min(least, here)
    return least


def clearances(occupied: Mask, resolution_m: float) -> Array:
    """Return the metres from cell centres to the nearest occupied square, minus half a cell inside of one."""
    rows, columns = occupied.shape
    # a kind of array that it has not seen yet would be compiled for anew.
    cells = np.require(occupied, np.bool_, ["C", "W"])
    return clearances_inside(cells, float(resolution_m), (0, rows, 0, columns))


@compiled
def clearances_inside(occupied: Mask, resolution_m: float, window: Window) -> Array:
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
def _gaps_along_columns(occupied: Mask, window: Window) -> Array:
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
    `heights` are the squared gaps of the cells, each with a corner on both sides. Filled for the nearest
    corners: place, squared gap, and where each begins to be the nearest.
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


@compiled
def squares_with_room(field: ClearanceField, radius_m: float, parts: int) -> Mask:
    """Tell for all squares, `parts` along each side of a cell, whether their centres have more room."""
    rows, columns = field.cells.shape
    side_m = field.resolution_m / parts
    free = np.empty((rows * parts, columns * parts), np.bool_)
    for row in range(rows * parts):
        y = field.origin_y + (row + 0.5) * side_m
        for column in range(columns * parts):
            x = field.origin_x + (column + 0.5) * side_m
            free[row, column] = clearance_at(field, x, y)[0] > radius_m
    return free
