"""Straight lines over the cells of a mask: whether they keep to free cells, exactly.

Coordinates are in cells, x first: cell (row, column) covers [column, column + 1) x [row, row + 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.compiled import compiled

TOUCH = 1e-9  # Cells. Less than this inside of a cell is a touch, and touching is allowed.


class _Lattice(NamedTuple):
    """A mask, or the same mask with x and y exchanged."""

    cells: NDArray[np.bool_]  # one after the other
    columns: int
    rows: int
    column_stride: int
    row_stride: int


@compiled
def line_is_free(free: Mask, x0: float, y0: float, x1: float, y1: float) -> bool:
    """Tell whether a line stays out of the interior of all cells that are not free.

    Coordinates are in cells: cell (row, column) covers [column, column + 1) x [row, row + 1). What is beyond
    the map is not free. A line may run along a border, but neither between two cells that are not free nor
    through the point where two such cells meet diagonally: there would be no room at all.

    The line is walked column by column, with x and y exchanged where it is steep.
    """
    rows, columns = free.shape
    grid = _Lattice(free.reshape(free.size), columns, rows, 1, columns)
    if abs(y1 - y0) > abs(x1 - x0):
        grid = _Lattice(grid.cells, rows, columns, columns, 1)
        x0, y0, x1, y1 = y0, x0, y1, x1
    if x0 > x1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    first, last = math.floor(x0 + TOUCH), math.floor(x1 - TOUCH)
    if last < first:  # a point, or all but one
        return _touches_free(grid, first, y0) or _touches_free(grid, last, y0)
    if first < 0 or last >= grid.columns or min(y0, y1) < -TOUCH or max(y0, y1) > grid.rows + TOUCH:
        return False
    return _columns_are_free(grid, first, last, (x0, y0, x1, y1))


@compiled
def _columns_are_free(grid: _Lattice, first: int, last: int, line: tuple[float, float, float, float]) -> bool:
    """Walk along a line that goes to the right and is not steep."""
    x0, y0, x1, y1 = line
    low, high = min(y0, y1), max(y0, y1)
    slope = (y1 - y0) / max(x1 - x0, TOUCH)
    cells, column_stride, row_stride = grid.cells, grid.column_stride, grid.row_stride
    below, above = math.floor(y0 - TOUCH), math.floor(y0 + TOUCH)  # the same, unless y is at a border
    for column in range(first, last + 1):
        y = min(max(y0 + slope * (column + 1 - x0), low), high)
        next_below, next_above = math.floor(y - TOUCH), math.floor(y + TOUCH)
        bottom, top = min(above, next_above), max(below, next_below)
        if top < bottom and not _touches_free(grid, column, y):  # along a border: one side is enough
            return False
        for row in range(bottom, top + 1):
            if not cells[column * column_stride + row * row_stride]:
                return False
        if next_below < next_above and column < last and _is_pinched(grid, column, next_above):
            return False
        below, above = next_below, next_above
    return True


@compiled
def _is_free(grid: _Lattice, column: int, row: int) -> bool:
    inside = 0 <= column < grid.columns and 0 <= row < grid.rows
    return inside and bool(grid.cells[column * grid.column_stride + row * grid.row_stride])


@compiled
def _touches_free(grid: _Lattice, column: int, y: float) -> bool:
    """Tell whether a free cell of a column reaches to y."""
    below, above = math.floor(y - TOUCH), math.floor(y + TOUCH)
    return _is_free(grid, column, below) or _is_free(grid, column, above)


@compiled
def _is_pinched(grid: _Lattice, column: int, row: int) -> bool:
    """Tell whether at the lower right corner of a cell two cells that are not free meet diagonally."""
    below, above = _is_free(grid, column, row - 1), _is_free(grid, column, row)
    next_below, next_above = _is_free(grid, column + 1, row - 1), _is_free(grid, column + 1, row)
    return below == next_above and above == next_below and below != above


@compiled
def lines_are_free(free: Mask, starts: Array, ends: Array) -> Mask:
    """Tell which of N lines between (N, 2) points are free."""
    answers = np.empty(starts.shape[0], dtype=np.bool_)
    for index in range(starts.shape[0]):
        x, y = starts[index, 0], starts[index, 1]
        answers[index] = line_is_free(free, x, y, ends[index, 0], ends[index, 1])
    return answers


def path_is_free(free: Mask, points: Array) -> bool:
    """Tell whether all lines between successive (N, 2) points are free."""
    return bool(lines_are_free(free, points[:-1], points[1:]).all())


@compiled
def nearest_centre(squares: Mask, x: float, y: float) -> tuple[float, float]:
    """Return the centre of the square that is nearest to a point, not a number if there is none."""
    nearest, least = (math.nan, math.nan), math.inf
    for row in range(squares.shape[0]):
        above = row + 0.5 - y
        if above * above >= least:
            continue
        for column in range(squares.shape[1]):
            beside = column + 0.5 - x
            if squares[row, column] and above * above + beside * beside < least:
                nearest, least = (column + 0.5, row + 0.5), above * above + beside * beside
    return nearest
