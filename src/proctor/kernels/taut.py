"""A path pulled taut, like a string held at both ends: the shortest of all that pass the same obstacles.

Such a path bends only at corners of cells that are not free, and always around them. A path becomes one by
leaving out, again and again, a point that is no such corner: the string then lies along the straight line
between the two points beside it, or around the corners in the triangle of the three.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.compiled import compiled
from proctor.kernels.lines import line_is_free

Corners: TypeAlias = NDArray[np.uint8]
Point: TypeAlias = tuple[float, float]

NEAR = 1e-9


@compiled
def find_corners(
    free: Mask, first_row: int, end_row: int, first_column: int, end_column: int, corners: Corners
) -> None:
    """Note for a part of the points between cells which of them are corners that a string can bend around.

    That is where one of the four cells around is not free. It is noted as 1 + 2 * up + right, where up
    and right tell where that cell is; 0 if there is no corner. Points where two cells meet diagonally do
    not count: a string does not pass there. Point [row, column] is at x = column, y = row; `corners` has
    one row and one column more than `free`.
    """
    rows, columns = free.shape
    for row in range(max(first_row, 1), min(end_row, rows)):
        for column in range(max(first_column, 1), min(end_column, columns)):
            down_left, down_right = free[row - 1, column - 1], free[row - 1, column]
            up_left, up_right = free[row, column - 1], free[row, column]
            if down_left + down_right + up_left + up_right == 3:
                up, right = not (up_left and up_right), not (down_right and up_right)
                corners[row, column] = 1 + 2 * up + right
            else:
                corners[row, column] = 0


@compiled
def pulled(free: Mask, points: Array) -> Array:
    """Leave out the points of a path that straight lines can skip, looking ahead ever further."""
    last = points.shape[0] - 1
    kept = np.empty_like(points)
    kept[0, 0], kept[0, 1] = points[0, 0], points[0, 1]
    count, at = 1, 0
    while at < last:
        seen, stride = at + 1, 1
        while stride > 0 and seen < last:
            probe = min(seen + stride, last)
            if line_is_free(free, points[at, 0], points[at, 1], points[probe, 0], points[probe, 1]):
                seen, stride = probe, 2 * stride
            else:
                stride //= 2
        kept[count, 0], kept[count, 1] = points[seen, 0], points[seen, 1]
        count, at = count + 1, seen
    return kept[:count]


@compiled
def tautened(corners: Corners, points: Array) -> Array:
    """Return a path as a taut string."""
    path = [(points[index, 0], points[index, 1]) for index in range(points.shape[0])]
    for _ in range(200):  # more than any path has needed
        tighter = [path[0]]
        changed = False
        for index in range(1, len(path) - 1):
            before, point, after = tighter[-1], path[index], path[index + 1]
            if bends_around(corners, before, point, after):
                tighter.append(point)
            else:
                _around(corners, before, point, after, tighter)
                changed = True
        tighter.append(path[-1])
        path = tighter
        if not changed:
            break
    result = np.empty((len(path), 2))
    for index in range(len(path)):
        result[index, 0], result[index, 1] = path[index]
    return result


@compiled
def _cross(a: Point, b: Point, c: Point) -> float:
    """Return how far c lies to the left of the line from a to b, times its length."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@compiled
def bends_around(corners: Corners, before: Point, point: Point, after: Point) -> bool:
    """Tell whether a string that bends at a point is held by the corner there."""
    column, row = round(point[0]), round(point[1])
    if abs(point[0] - column) > NEAR or abs(point[1] - row) > NEAR or corners[row, column] == 0:
        return False
    inside = (column + _right(corners[row, column]), row + _up(corners[row, column]))
    side = _cross(before, point, after)
    return (
        abs(side) > NEAR
        and _cross(before, point, inside) * side > -NEAR
        and _cross(point, after, inside) * side > -NEAR
    )


@compiled
def is_tangent(corners: Corners, before: Point, point: Point) -> bool:
    """Tell whether a line that ends at a corner could go on there without entering the corner's cell."""
    corner = corners[round(point[1]), round(point[0])]
    return (point[0] - before[0]) * _right(corner) * (point[1] - before[1]) * _up(corner) <= 0.0


@compiled
def _right(corner: int) -> float:
    """Return where the cell of a corner is along x: 1.0 or -1.0."""
    return 2.0 * ((corner - 1) & 1) - 1.0


@compiled
def _up(corner: int) -> float:
    """Return where the cell of a corner is along y: 1.0 or -1.0."""
    return 2.0 * ((corner - 1) >> 1) - 1.0


@compiled
def _around(corners: Corners, before: Point, point: Point, after: Point, path: list[Point]) -> None:
    """Add the points where a string bends that was at `point` and is let loose there.

    They are found as one wraps a gift: from each, the next is the outermost as seen from there.
    """
    left = _cross(before, point, after) < 0.0  # `point` is to the left of the line from before to after
    held = _held_in_triangle(corners, before, point, after)
    at = before
    while at != after:
        outermost = after
        for other in held:
            side = _cross(at, outermost, other)
            if (side > NEAR) if left else (side < -NEAR):
                outermost = other
        at = outermost
        if at != after:
            path.append(at)


@compiled
def _held_in_triangle(corners: Corners, before: Point, point: Point, after: Point) -> list[Point]:
    """Return those corners in a triangle that can hold a string let loose at `point`: two per row."""
    held = [before for _ in range(0)]
    bottom = math.ceil(min(before[1], point[1], after[1]) - NEAR)
    top = math.floor(max(before[1], point[1], after[1]) + NEAR)
    for row in range(bottom, top + 1):
        low, high = _range_in_row(before, point, after, row)
        first, last = math.ceil(low - NEAR), math.floor(high + NEAR)
        while first <= last and not _holds(corners, before, point, after, first, row):
            first += 1
        if first > last:
            continue
        held.append((float(first), float(row)))
        while last > first and not _holds(corners, before, point, after, last, row):
            last -= 1
        if last > first:
            held.append((float(last), float(row)))
    return held


@compiled
def _range_in_row(a: Point, b: Point, c: Point, y: float) -> tuple[float, float]:
    """Return from where to where a triangle reaches at a height y that is in it."""
    low, high = math.inf, -math.inf
    for start, end in ((a, b), (b, c), (c, a)):
        if min(start[1], end[1]) - NEAR <= y <= max(start[1], end[1]) + NEAR:
            rise = end[1] - start[1]
            if abs(rise) < NEAR:
                low, high = min(low, start[0], end[0]), max(high, start[0], end[0])
            else:
                share = min(max((y - start[1]) / rise, 0.0), 1.0)
                x = start[0] + share * (end[0] - start[0])
                low, high = min(low, x), max(high, x)
    return low, high


@compiled
def _holds(corners: Corners, before: Point, point: Point, after: Point, column: int, row: int) -> bool:
    """Tell whether a corner in a triangle or on its rim holds a string that is let loose at `point`.

    One on the rim holds it only if its cell is inside, and one on the line from before to after never does.
    """
    corner = corners[row, column]
    if corner == 0:
        return False
    here = (float(column), float(row))
    turn = 1.0 if _cross(before, point, after) > 0.0 else -1.0
    if _cross(before, after, here) * turn > -NEAR:
        return False
    inside = (column + _right(corner), row + _up(corner))
    if abs(_cross(before, point, here)) <= NEAR and _cross(before, point, inside) * turn <= NEAR:
        return False
    return not (abs(_cross(point, after, here)) <= NEAR and _cross(point, after, inside) * turn <= NEAR)
