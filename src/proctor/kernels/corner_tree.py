"""Shortest paths at any angle between the corners of a mask: the one search of scoring and of planning.

A shortest path bends only at corners of cells that are not free, and around them. So the shortest paths from
a point, its root, to all corners are a tree that Dijkstra's algorithm grows, nearest corner first; lines are
tested exactly, and only when they would be an improvement. Nothing is approximate: within the mask no path is
shorter. All is in cells, x first.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.compiled import compiled
from proctor.kernels.lines import line_is_free
from proctor.kernels.taut import Corners, bends_around, is_tangent

Box: TypeAlias = tuple[int, int, int, int]
Indices: TypeAlias = NDArray[np.int64]
SLACK = 0.5  # cells: floods pass where a path is so much longer. With less, cells behind edges are missed.


class CornerTree(NamedTuple):
    """The shortest paths to a root, as far as they are known."""

    points: Array  # (N, 2): the root, one more end, and corners
    to_go: Array  # the least that is left from each point to the other end; 0 without one
    costs: Array  # the shortest path to each point that is known so far
    parents: Indices  # the point before, on that path
    done: Mask  # whether there is no shorter one
    order: Indices  # the points that are done, nearest first
    finished: Indices  # how many that are, in one element


@compiled
def new_tree(points: Array, to_go: Array) -> CornerTree:
    """Begin a tree whose root is the first point; the second is another end, which is not a corner."""
    count = points.shape[0]
    costs = np.full(count, math.inf)
    costs[0] = 0.0
    parents, order = np.zeros(count, np.int64), np.zeros(count, np.int64)
    done = np.zeros(count, np.bool_)
    return CornerTree(points, to_go, costs, parents, done, order, np.zeros(1, np.int64))


@compiled
def grow(free: Mask, corners: Corners, tree: CornerTree, limit: float) -> tuple[int, int]:
    """Finish the most promising point and continue the paths from there to all points that it improves.

    Returns the point, or -1 if there is none through which a path is shorter than the limit; and the work
    that this took, counted in points and cells that were looked at.
    """
    points, to_go, costs, parents, done, order, finished = tree
    at = _most_promising(tree)
    if at < 0:
        return at, 0
    done[at], order[finished[0]] = True, at
    finished[0] += 1
    if at == 1:
        return at, 0
    here = (points[at, 0], points[at, 1])
    before = (points[parents[at], 0], points[parents[at], 1])
    work = points.shape[0]
    for other in range(1, points.shape[0]):
        there = (points[other, 0], points[other, 1])
        cost = costs[at] + math.hypot(there[0] - here[0], there[1] - here[1])
        if done[other] or cost >= costs[other] or cost + to_go[other] >= limit:
            continue
        if (other > 1 and not is_tangent(corners, here, there)) or (
            at > 0 and not bends_around(corners, before, here, there)
        ):
            continue
        work += math.ceil(abs(there[0] - here[0]) + abs(there[1] - here[1]))
        if line_is_free(free, here[0], here[1], there[0], there[1]):
            costs[other], parents[other] = cost, at
    return at, work


@compiled
def _most_promising(tree: CornerTree) -> int:
    """Return the point to go on from, or -1: looking at all is no more than going on from it takes anyway."""
    best, least = -1, math.inf
    for index in range(tree.costs.shape[0]):
        total = tree.costs[index] + tree.to_go[index]
        if not tree.done[index] and total < least:
            best, least = index, total
    return best


@compiled
def path_length_to(free: Mask, corners: Corners, tree: CornerTree, x: float, y: float) -> tuple[float, int]:
    """Return the length of the shortest path from a point to the root, and the first corner on it.

    The length is infinite and the corner -1 if there is no path. The tree grows as far as it takes.
    """
    points, costs, parents = tree.points, tree.costs, tree.parents
    best, first, number = math.inf, -1, -1
    while True:
        number += 1
        if number == tree.finished[0] and grow(free, corners, tree, math.inf)[0] < 0:
            return best, first
        at = tree.order[number]
        if costs[at] >= best:
            return best, first
        here = (points[at, 0], points[at, 1])
        length = costs[at] + math.hypot(here[0] - x, here[1] - y)
        if length >= best:
            continue
        before = (points[parents[at], 0], points[parents[at], 1])
        if at > 0 and not bends_around(corners, before, here, (x, y)):
            continue
        if line_is_free(free, x, y, here[0], here[1]):
            best, first = length, at


@compiled
def path_lengths(free: Mask, corners: Corners, tree: CornerTree) -> Array:
    """Return about how long the shortest path from the centre of each cell is, infinite where there is none.

    The cells for which the path over a corner is the shortest, or hardly longer, are found by flooding from
    there. In houses that misses none by more than 0.002 cells.
    """
    lengths = np.full(free.shape, math.inf)
    seen = np.full(free.shape, -1)
    waiting = np.empty((free.size + 1, 2), np.int64)
    while grow(free, corners, tree, math.inf)[0] >= 0:
        pass
    for number in range(tree.finished[0]):
        at = tree.order[number]
        x, y, cost = tree.points[at, 0], tree.points[at, 1], tree.costs[at]
        waiting[0, 0], waiting[0, 1], count = round(y), round(x), 1
        while count:
            count -= 1
            first_row, first_column = waiting[count, 0] - 1, waiting[count, 1] - 1
            for row in range(max(first_row, 0), min(first_row + 3, free.shape[0])):
                for column in range(max(first_column, 0), min(first_column + 3, free.shape[1])):
                    if seen[row, column] == number or not free[row, column]:
                        continue
                    seen[row, column] = number
                    length = cost + math.hypot(column + 0.5 - x, row + 0.5 - y)
                    if length < lengths[row, column] + SLACK and line_is_free(
                        free, x, y, column + 0.5, row + 0.5
                    ):
                        lengths[row, column] = min(length, lengths[row, column])
                        waiting[count, 0], waiting[count, 1] = row, column
                        count += 1
    return lengths


@compiled
def path_to_root(tree: CornerTree, at: int) -> Array:
    """Return the points (N, 2) of the path from a point of a tree to its root."""
    count, end = 1, at
    while end != 0:
        count, end = count + 1, tree.parents[end]
    path = np.empty((count, 2))
    for index in range(count):
        path[index, 0], path[index, 1] = tree.points[at, 0], tree.points[at, 1]
        at = tree.parents[at]
    return path


@compiled
def shorter_path(
    free: Mask, corners: Corners, start: Array, goal: Array, length: float, work: int
) -> tuple[Array, bool]:
    """Search the shortest path that is shorter than a length, by A* over the corners of cells; all in cells.

    Returns the path, without points if none is shorter; and whether that is certain. It is not if more
    than `work`, counted in points and cells that are looked at, would have been needed.
    """
    first_row, end_row, first_column, end_column = _box_of_ellipse(corners, start, goal, length)
    work -= (end_row - first_row) * (end_column - first_column) // 4  # finding corners is 4 times faster
    if work < 0:
        return np.empty((0, 2)), False
    # From the goal, so that the path comes out in the right order.
    points = _in_ellipse(corners, goal, start, length, (first_row, end_row, first_column, end_column))
    to_go = np.hypot(points[:, 0] - start[0], points[:, 1] - start[1])
    tree = new_tree(points, to_go)
    at = 0
    while at != 1:
        at, taken = grow(free, corners, tree, length)
        work -= taken
        if at < 0:
            return np.empty((0, 2)), True
        if work < 0:
            return np.empty((0, 2)), False
    return path_to_root(tree, 1), True


@compiled
def _box_of_ellipse(corners: Corners, start: Array, goal: Array, length: float) -> Box:
    """Return the first row, the one after the last, and the same of columns, that paths of a length reach.

    The points that such paths can pass fill an ellipse whose foci are start and goal and whose major axis
    is the length. In a direction across which the foci lie d apart, it reaches sqrt(length^2 - d^2) / 2
    from its centre.
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
    """Return both ends and all corners in a box that a path of a length could pass."""
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
