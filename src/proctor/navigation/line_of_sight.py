"""Whether a straight line keeps to free cells, exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from proctor.navigation.compiled import compiled

TOUCH = 1e-9
"""Cells. Less than this inside of a cell is a touch, and touching is allowed."""


@compiled
def line_is_free(free: NDArray[np.bool_], x0: float, y0: float, x1: float, y1: float) -> bool:
    """Tell whether a line stays out of the interior of all cells that are not free.

    Coordinates are in cells: cell (row, column) covers [column, column + 1) x [row, row + 1). What is beyond
    the map is not free. A line may run along a border, but neither between two cells that are not free nor
    through the point where two such cells meet diagonally: there would be no room at all.

    The line is walked column by column, or row by row where it is steep.
    """
    steep = abs(y1 - y0) > abs(x1 - x0)
    if steep:
        x0, y0, x1, y1 = y0, x0, y1, x1
    if x0 > x1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    first, last = math.floor(x0 + TOUCH), math.ceil(x1 - TOUCH) - 1
    if last < first:  # a point, or all but one
        below, above = math.floor(y0 - TOUCH), math.floor(y0 + TOUCH)
        return (
            _is_free(free, last, below, steep)
            or _is_free(free, last, above, steep)
            or _is_free(free, first, below, steep)
            or _is_free(free, first, above, steep)
        )
    slope = (y1 - y0) / max(x1 - x0, TOUCH)
    entry = y0
    for column in range(first, last + 1):
        leave = y1 if column == last else y0 + slope * (column + 1 - x0)
        if not _span_is_free(free, column, min(entry, leave), max(entry, leave), steep):
            return False
        if column < last and _is_pinched(free, column, leave, steep):
            return False
        entry = leave
    return True


@compiled
def path_is_free(free: NDArray[np.bool_], points: NDArray[np.float64]) -> bool:
    """Tell whether all lines between successive (N, 2) points are free."""
    for index in range(points.shape[0] - 1):
        x0, y0 = points[index, 0], points[index, 1]
        if not line_is_free(free, x0, y0, points[index + 1, 0], points[index + 1, 1]):
            return False
    return True


@compiled
def _is_free(free: NDArray[np.bool_], column: int, row: int, steep: bool) -> bool:  # noqa: FBT001
    if steep:
        column, row = row, column
    return 0 <= row < free.shape[0] and 0 <= column < free.shape[1] and bool(free[row, column])


@compiled
def _span_is_free(free: NDArray[np.bool_], column: int, low: float, high: float, steep: bool) -> bool:  # noqa: FBT001
    """Tell whether the part of a line inside of a column is free."""
    first, last = math.floor(low + TOUCH), math.ceil(high - TOUCH) - 1
    if last < first:  # along a border: one side is enough
        return _is_free(free, column, first, steep) or _is_free(free, column, last, steep)
    for row in range(first, last + 1):  # noqa: SIM110 - generators do not compile
        if not _is_free(free, column, row, steep):
            return False
    return True


@compiled
def _is_pinched(free: NDArray[np.bool_], column: int, y: float, steep: bool) -> bool:  # noqa: FBT001
    """Tell whether a line that leaves a column at y does so between two cells that meet diagonally."""
    row = round(y)
    if abs(y - row) > TOUCH:
        return False
    here_below, here_above = _is_free(free, column, row - 1, steep), _is_free(free, column, row, steep)
    next_below, next_above = (
        _is_free(free, column + 1, row - 1, steep),
        _is_free(free, column + 1, row, steep),
    )
    return here_below == next_above and here_above == next_below and here_below != here_above
