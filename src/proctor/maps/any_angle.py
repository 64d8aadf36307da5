"""The default planner: near-shortest paths, at any angle, in milliseconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.maps.compiled import compiled
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import Mask, Window, line_is_free, window_around
from proctor.maps.grid_search import EXHAUSTED, RUNNING, GridSearch
from proctor.maps.taut import (
    Corners,
    bends_around,
    find_corners,
    is_tangent,
    pulled,
    tautened,
)

Box: TypeAlias = tuple[int, int, int, int]
SLICE = 200_000  # cells to search between two looks at the clock: a few milliseconds
REFINING_WORK = 1_000_000  # a few milliseconds in which to prove that there is no shorter path, or to find it


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
def _traced(points: Array, parents: NDArray[np.int64]) -> Array:
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


class AnyAnglePlanner:
    """Searches the cells, pulls the path taut, and searches a shorter one among the corners.

    The first two give the shortest of all paths that pass the same obstacles on the same sides. The sides
    are chosen by lengths over cells, which are up to 8 % too long. So the third is tried as far as it is
    cheap, which it is in a house. The same query always gives the same path.
    """

    def __init__(self, free: Mask, *, reach: int) -> None:
        self.optimum_gap: float | None = None  # 0 if the last path is certainly the shortest, else None
        self._free, self._reach = free, reach
        self._search = GridSearch(free)
        self._corners = np.zeros((free.shape[0] + 1, free.shape[1] + 1), dtype=np.uint8)
        self._changed: list[Window] = []
        find_corners(free, 0, free.shape[0], 0, free.shape[1], self._corners)

    def plan(
        self,
        free: Mask,
        start: Array,
        goal: Array,
        *,
        timeout_s: float,
        seed: int,
        cancelled: Callable[[], bool] | None,
    ) -> Array | None:
        """See `PlannerBackend`. There is nothing random in it."""
        del seed
        self.optimum_gap = 0.0
        if line_is_free(free, start[0], start[1], goal[0], goal[1]):
            return np.stack([start, goal])
        self._take_over(free, start, goal)
        if not self._reaches(start, goal, time.monotonic() + timeout_s, cancelled):
            return None
        path = np.concatenate([[start], self._search.corners(), [goal]])
        for _ in range(4):  # the second hardly ever finds anything
            count = len(path)
            path = tautened(self._corners, pulled(free, path))
            if len(path) >= count:
                break
        shorter, certain = shorter_path(
            free, self._corners, start, goal, path_length(path) - 1e-6, REFINING_WORK
        )
        self.optimum_gap = 0.0 if certain else None
        return shorter if len(shorter) else path

    def _take_over(self, free: Mask, *ends: Array) -> None:
        """Bring what was prepared up to date where the mask of this query or of the last one is special."""
        if free is self._free:
            return
        # Moves and corners depend on the cells around them, too.
        windows = [window_around(end, self._reach + 2, free.shape) for end in ends]
        for rows, columns in self._changed + windows:
            part = (rows.start, rows.stop, columns.start, columns.stop)
            self._search.update(free, *part)
            find_corners(free, *part, self._corners)
        self._changed = windows

    def _reaches(
        self, start: Array, goal: Array, deadline_s: float, cancelled: Callable[[], bool] | None
    ) -> bool:
        """Tell whether there is a way over the cells; the search then has it."""
        self._search.begin(start, goal)
        result = self._search.advance(SLICE)
        if result == RUNNING and self._search.is_enclosed(goal):
            return False
        while result == RUNNING:
            if cancelled is not None and cancelled():
                raise NavigationFailure(Reason.CANCELLED, "planning was cancelled")
            if time.monotonic() > deadline_s:
                raise NavigationFailure(
                    Reason.PLANNING_TIMEOUT, "the time to plan was over before a path was found"
                )
            result = self._search.advance(SLICE)
        return result != EXHAUSTED
