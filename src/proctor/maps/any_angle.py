"""The default planner: near-shortest paths, at any angle, in milliseconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from proctor.core.geometry import distances_along, path_length
from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.corner_tree import shorter_path
from proctor.kernels.grid_search import (
    ENTRIES,
    EXHAUSTED,
    KEY,
    NEW,
    RING,
    ROUND,
    RUNNING,
    SPARE,
    Workspace,
    advance,
    estimate,
    find_moves,
    is_enclosed,
    trace,
)
from proctor.kernels.lines import line_is_free
from proctor.kernels.taut import find_corners, pulled, tautened
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import CellWindow, window_around

SLICE = 200_000  # cells to search between two looks at the clock: a few milliseconds
REFINING_WORK = 1_000_000  # a few milliseconds in which to prove that there is no shorter path, or to find it

PARTS_CELLS, PART_WORK, MOST_PARTS = (60.0, 30.0), 100_000, 100
"""How long the parts of a path are that are made shorter one by one where the whole is too much work; the
second where the first is, too."""


class _OfThread(threading.local):
    """The workspace that all searches of a thread use, one after the other: it is large."""

    _workspace: Workspace | None = None

    def workspace(self, cells: int) -> Workspace:
        if self._workspace is None or self._workspace.costs.size != cells:
            self._workspace = Workspace.of(cells)
        return self._workspace


_of_thread = _OfThread()


class GridSearch:
    """Paths over the cells of a mask, numbered row by row with a border of one cell that is not free."""

    def __init__(self, free: Mask) -> None:
        rows, columns = free.shape
        self._width: int = columns + 2
        self._moves = np.zeros((rows + 2) * self._width, dtype=np.uint8)
        self.update(free, 0, rows, 0, columns)

    def update(self, free: Mask, first_row: int, end_row: int, first_column: int, end_column: int) -> None:
        """Take over what has changed in a part of the mask."""
        find_moves(free, first_row, end_row, first_column, end_column, self._moves)

    def begin(self, start: Array, goal: Array) -> None:
        """Begin to look for a way between the cells that two points, in cells, lie in."""
        self._start, self._goal = self._number(start), self._number(goal)
        self._workspace = _of_thread.workspace(self._moves.size)
        _begin(self._start, self._goal, self._width, self._workspace)

    def advance(self, expansions: int) -> int:
        """Go on for at most so many cells: RUNNING, FOUND or EXHAUSTED."""
        return int(advance(self._moves, self._width, self._goal, self._workspace, expansions))

    def corners(self) -> Array:
        """Return the centres (N, 2) of the cells where the way that was found turns, both ends included."""
        return trace(self._moves, self._width, self._start, self._goal, self._workspace)

    def is_enclosed(self, point: Array) -> bool:
        """Tell whether a point is certainly in a small space that the start of the search is not in."""
        return bool(is_enclosed(self._moves, self._width, self._number(point), self._start))

    def _number(self, point: Array) -> int:
        return (int(point[1]) + 1) * self._width + int(point[0]) + 1


def _begin(start: int, goal: int, width: int, workspace: Workspace) -> None:
    """Let the start wait, alone."""
    costs, marks, entries, links, buckets, state = workspace
    buckets[:] = -1
    state[ROUND] += 1
    state[KEY] = estimate(start // width - goal // width, start % width - goal % width)
    state[ENTRIES], state[SPARE], state[NEW] = 1, -1, 1
    buckets[state[KEY] & RING] = 0
    entries[0], links[0] = start, -1
    costs[start], marks[start] = 0, 2 * state[ROUND]


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
        self._changed: list[CellWindow] = []
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
