"""The shortest path there is: A* over the corners that a taut string can bend around."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.planning.line_of_sight import line_is_free
from proctor.navigation.planning.taut import Corners, Mask, bends_around, is_tangent

Index: TypeAlias = NDArray[np.int64]
Box: TypeAlias = tuple[int, int, int, int]
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
    points = _in_ellipse(corners, start, goal, length, (first_row, end_row, first_column, end_column))
    count = points.shape[0]
    costs, totals = np.empty(count), np.empty(count)
    parents, done = np.empty(count, np.int64), np.empty(count, np.bool_)
    for index in range(count):
        costs[index], totals[index], parents[index], done[index] = math.inf, math.inf, 0, False
    at, costs[0] = 0, 0.0
    while at != 1:
        done[at] = True
        x, y = points[at, 0], points[at, 1]
        before = (points[parents[at], 0], points[parents[at], 1])
        work -= count
        for other in range(1, count):
            other_x, other_y = points[other, 0], points[other, 1]
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
                costs[other], totals[other], parents[other] = cost, total, at
        if work < 0:
            return np.empty((0, 2)), False
        at = _most_promising(totals, done)
        if at < 0:
            return np.empty((0, 2)), True
    return _traced(points, parents), True


@compiled
def _most_promising(totals: Array, done: Mask) -> int:
    """Return the point to go on from, or -1: looking at all is no more than going on from it takes anyway."""
    best, least = -1, math.inf
    for index in range(totals.shape[0]):
        if not done[index] and totals[index] < least:
            best, least = index, totals[index]
    return best


@compiled
def _box_of_ellipse(corners: Corners, start: Array, goal: Array, length: float) -> Box:
    """Return the first row, the one after the last, and the same of columns, that paths of a length reach.

    The points that such paths can pass fill an ellipse whose foci are start and goal and whose major axis is
    the length. In a direction across which the foci lie d apart, it reaches sqrt(length^2 - d^2) / 2 from
    its centre.
    """
    rows, columns = corners.shape
    x, y = (start[0] + goal[0]) / 2.0, (start[1] + goal[1]) / 2.0
    half_width = math.sqrt(max(length**2 - (goal[1] - start[1]) ** 2, 0.0)) / 2.0
    half_height = math.sqrt(max(length**2 - (goal[0] - start[0]) ** 2, 0.0)) / 2.0
    return (
        max(math.floor(y - half_height), 0),
        min(math.ceil(y + half_height) + 1, rows),
        max(math.floor(x - half_width), 0),
        min(math.ceil(x + half_width) + 1, columns),
    )


@compiled
def _in_ellipse(corners: Corners, start: Array, goal: Array, length: float, box: Box) -> Array:
    """Return the start, the goal and all corners in a box that a path of a length could pass."""
    first_row, end_row, first_column, end_column = box
    points = np.empty((2 + (end_row - first_row) * (end_column - first_column), 2))
    points[0, 0], points[0, 1], points[1, 0], points[1, 1] = start[0], start[1], goal[0], goal[1]
    count = 2
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if corners[row, column] == 0:
                continue
            there = math.hypot(column - start[0], row - start[1])
            if there + math.hypot(goal[0] - column, goal[1] - row) < length:
                points[count, 0], points[count, 1] = column, row
                count += 1
    return points[:count]


@compiled
def _traced(points: Array, parents: Index) -> Array:
    """Return the path to point 1."""
    count, at = 2, parents[1]
    while at != 0:
        count, at = count + 1, parents[at]
    path = np.empty((count, 2))
    at = 1
    for index in range(count - 1, -1, -1):
        path[index, 0], path[index, 1] = points[at, 0], points[at, 1]
        at = parents[at]
    return path
