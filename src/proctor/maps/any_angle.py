"""The default planner: near-shortest paths, at any angle, in milliseconds."""

from __future__ import annotations

import threading
import time

import numpy as np

from proctor.core.geometry import distances_along, path_length
from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.corner_tree import shorter_path
from proctor.kernels.grid_search import (
    EXHAUSTED,
    RUNNING,
    Workspace,
    advance,
    find_moves,
    is_enclosed,
    trace,
)
from proctor.kernels.lines import line_is_free
from proctor.kernels.taut import find_corners, pulled, tautened
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.free_space import CellQuery, CellWindow, window_around

SLICE = 200_000  # cells to search between two looks at the clock: a few milliseconds
REFINING_WORK = 1_000_000  # a few milliseconds in which to prove that there is no shorter path, or to find it

PARTS_CELLS, PART_WORK, MOST_PARTS = (60.0, 30.0), 100_000, 100
"""How long the parts of a path are that are made shorter one by one where the whole is too much work; the
second where the first is, too."""


_thread_local = threading.local()


class AnyAnglePlanner:
    """Searches the cells, pulls the path taut, and searches a shorter one among the corners.

    The first two give the shortest of all paths that pass the same obstacles on the same sides. The sides
    are chosen by lengths over cells, which are up to 8 % too long. So the third is tried as far as it is
    cheap, which it is in a house, else for parts of the path. The same query always gives the same path.
    """

    def __init__(self, free: Mask, *, reach: int) -> None:
        self.optimum_gap: float | None = None  # 0 if the last path is certainly the shortest, else None
        self._free, self._reach = free, reach
        rows, columns = free.shape
        self._width = columns + 2  # cells are numbered row by row, with a border of one that is not free
        self._moves = np.zeros((rows + 2) * self._width, dtype=np.uint8)
        self._corners = np.zeros((rows + 1, columns + 1), dtype=np.uint8)
        self._changed: list[CellWindow] = []
        self._prepare(free, (slice(0, rows), slice(0, columns)))

    def plan(self, query: CellQuery) -> Array | None:
        """See `PlannerBackend`. There is nothing random in it."""
        free, start, goal = query[:3]
        self.optimum_gap = 0.0
        if line_is_free(free, start[0], start[1], goal[0], goal[1]):
            return np.stack([start, goal])
        self._take_over(free, start, goal)
        cells = self.path_over_cells(query)
        if cells is None:
            return None
        path = np.concatenate([[start], cells, [goal]])
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
        for window in self._changed + windows:
            self._prepare(free, window)
        self._changed = windows

    def _prepare(self, free: Mask, window: CellWindow) -> None:
        rows, columns = window
        part = (rows.start, rows.stop, columns.start, columns.stop)
        find_moves(free, *part, self._moves)
        find_corners(free, *part, self._corners)

    def path_over_cells(self, query: CellQuery) -> Array | None:
        """Return the centres (N, 2) of the cells where the shortest path from cell to cell turns, or None."""
        start, goal = (
            (int(point[1]) + 1) * self._width + int(point[0]) + 1 for point in (query.start, query.goal)
        )
        workspace = _workspace(self._moves.size)
        workspace.begin(start, goal, self._width)
        result = advance(self._moves, self._width, goal, workspace, SLICE)
        if result == RUNNING and is_enclosed(self._moves, self._width, goal, start):
            return None
        while result == RUNNING:
            if query.is_cancelled:
                raise NavigationFailure(Reason.CANCELLED, "planning was cancelled")
            if time.monotonic() > query.deadline_s:
                raise NavigationFailure(
                    Reason.PLANNING_TIMEOUT, "the time to plan was over before a path was found"
                )
            result = advance(self._moves, self._width, goal, workspace, SLICE)
        return None if result == EXHAUSTED else trace(self._moves, self._width, start, goal, workspace)


def _workspace(cells: int) -> Workspace:
    """Return the workspace that all searches of a thread use, one after the other: it is large."""
    found: Workspace | None = getattr(_thread_local, "workspace", None)
    if found is None or found.costs.size != cells:
        found = _thread_local.workspace = Workspace.of(cells)
    return found
