"""How much room there is at every place, as planners and controllers read it."""

from __future__ import annotations

import math

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.maps.clearance_field import ClearanceField


@compiled
def clearance_at(field: ClearanceField, x: float, y: float) -> tuple[float, float, float]:
    """Return the clearance at a place, interpolated, and its slope along x and y.

    Beyond the map it is that of the border, without a slope across it.
    """
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
def least_clearance(field: ClearanceField, points: Array) -> float:
    """Return the least clearance of (N, 2) points."""
    least = math.inf
    for index in range(points.shape[0]):
        here = clearance_at(field, points[index, 0], points[index, 1])[0]
        least = min(least, here)
    return least
