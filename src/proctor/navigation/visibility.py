"""The shortest path there is: A* over the corners that a taut string can bend around."""

from __future__ import annotations

import heapq
import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.line_of_sight import line_is_free
from proctor.navigation.taut import Corners, Mask, bends_around, is_tangent

Index: TypeAlias = NDArray[np.int64]
SCANNED_PER_WORK = 4
"""Looking for corners is so much faster than all other work, per point."""


@compiled
def shorter_path(
    free: Mask, corners: Corners, start: Array, goal: Array, length: float, work: int
) -> tuple[Array, bool]:
    """Look for a path that is shorter than a length, all in cells.

    Returns:
        The shortest path, without points if none is shorter; and whether that is certain. It is not if more
        work would have been needed: work is counted in points and cells that are looked at.
    """
    first_row, end_row, first_column, end_column = _box_of_ellipse(corners, start, goal, length)
    work -= (end_row - first_row) * (end_column - first_column) // SCANNED_PER_WORK
    if work < 0:
        return np.empty((0, 2)), False
    points = _in_ellipse(corners, start, goal, length)
    count = points.shape[0]
    costs, parents, done = np.full(count, np.inf), np.zeros(count, np.int64), np.zeros(count, np.bool_)
    costs[0] = 0.0
    queue = [(0.0, 0)]
    while len(queue) > 0:
        _, at = heapq.heappop(queue)
        if at == 1:
            return _traced(points, parents), True
        if done[at]:
            continue
        done[at] = True
        x, y = points[at]
        before = (points[parents[at], 0], points[parents[at], 1])
        work -= count
        for other in range(1, count):
            other_x, other_y = points[other]
            cost = costs[at] + math.hypot(other_x - x, other_y - y)
            total = cost + math.hypot(goal[0] - other_x, goal[1] - other_y)
            if done[other] or cost >= costs[other] or total >= length:
                continue
            here, there = (x, y), (other_x, other_y)
            if (other > 1 and not is_tangent(corners, here, there)) or (
                at > 0 and not bends_around(corners, before, here, there)
            ):
                continue
            work -= math.ceil(abs(other_x - x) + abs(other_y - y))
            if line_is_free(free, x, y, other_x, other_y):
                costs[other], parents[other] = cost, at
                heapq.heappush(queue, (total, other))
        if work < 0:
            return np.empty((0, 2)), False
    return np.empty((0, 2)), True


@compiled
def _box_of_ellipse(corners: Corners, start: Array, goal: Array, length: float) -> tuple[int, int, int, int]:
    """Return the first row, the one after the last, and the same of columns, that paths of a length reach."""
    rows, columns = corners.shape
    spare = (length - math.hypot(goal[0] - start[0], goal[1] - start[1])) / 2.0
    left, right = min(start[0], goal[0]) - spare, max(start[0], goal[0]) + spare
    bottom, top = min(start[1], goal[1]) - spare, max(start[1], goal[1]) + spare
    return (
        max(math.floor(bottom), 0),
        min(math.ceil(top) + 1, rows),
        max(math.floor(left), 0),
        min(math.ceil(right) + 1, columns),
    )


@compiled
def _in_ellipse(corners: Corners, start: Array, goal: Array, length: float) -> Array:
    """Return the start, the goal and all corners that a path of a length could pass."""
    points = [(start[0], start[1]), (goal[0], goal[1])]
    first_row, end_row, first_column, end_column = _box_of_ellipse(corners, start, goal, length)
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if corners[row, column] == 0:
                continue
            there = math.hypot(column - start[0], row - start[1])
            if there + math.hypot(goal[0] - column, goal[1] - row) < length:
                points.append((float(column), float(row)))
    found = np.empty((len(points), 2))
    for index in range(len(points)):
        found[index, 0], found[index, 1] = points[index]
    return found


@compiled
def _traced(points: Array, parents: Index) -> Array:
    """Return the path to point 1."""
    count, at = 2, parents[1]
    while at != 0:
        count, at = count + 1, parents[at]
    path = np.empty((count, 2))
    at = 1
    for index in range(count - 1, -1, -1):
        path[index] = points[at]
        at = parents[at]
    return path
