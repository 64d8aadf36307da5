"""The default planner: near-shortest paths, at any angle, in milliseconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from proctor.core.geometry import distances_along, path_length
from proctor.core.types import Array
from proctor.maps.compiled import compiled
from proctor.maps.corner_tree import grow, new_tree, path_to_root
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import Mask, Window, line_is_free, window_around
from proctor.maps.grid_search import EXHAUSTED, RUNNING, GridSearch
from proctor.maps.taut import Corners, find_corners, pulled, tautened

Box: TypeAlias = tuple[int, int, int, int]
SLICE = 200_000  # cells to search between two looks at the clock: a few milliseconds
REFINING_WORK = 1_000_000  # a few milliseconds in which to prove that there is no shorter path, or to find it

PARTS_CELLS, PART_WORK, MOST_PARTS = (60.0, 30.0), 100_000, 100
"""How long the parts of a path are that are made shorter one by one where the whole is too much work; the
second where the first is, too."""


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


class AnyAnglePlanner:
    """Searches the cells, pulls the path taut, and searches a shorter one among the corners.

    The first two give the shortest of all paths that pass the same obstacles on the same sides. The sides
    are chosen by lengths over cells, which are up to 8 % too long. So the third is tried as far as it is
    cheap, which it is in a house, else for parts of the path. The same query always gives the same path.
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
        if certain:
            return shorter if len(shorter) else path
        return tautened(self._corners, pulled(free, self._shortened_in_parts(free, path)))

    def _shortened_in_parts(self, free: Mask, path: Array) -> Array:
        """Replace parts of a path by shorter ones, each part from the middle of the one before."""
        first = 0
        for _ in range(MOST_PARTS):
            along = distances_along(path[first:])
            for cells in PARTS_CELLS:
                last = min(first + max(int(np.searchsorted(along, cells)), 2), len(path) - 1)
                length = float(along[last - first]) - 1e-6
                shorter, certain = shorter_path(
                    free, self._corners, path[first], path[last], length, PART_WORK
                )
                if certain:
                    break
            if len(shorter):
                path = np.concatenate([path[:first], shorter, path[last + 1 :]])
                last = first + len(shorter) - 1
            if last == len(path) - 1:
                break
            first = (first + last + 1) // 2
        return path

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
