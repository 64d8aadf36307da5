"""The default planner: near-shortest paths, at any angle, in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.navigation.planning.free_space import Mask, Window, window_around
from proctor.navigation.planning.grid_search import EXHAUSTED, RUNNING, GridSearch
from proctor.navigation.planning.line_of_sight import line_is_free
from proctor.navigation.planning.taut import find_corners, pulled, tautened
from proctor.navigation.planning.visibility import shorter_path

SLICE = 200_000
"""Cells to search between two looks at the clock: a few milliseconds."""
ROUNDS = 4
"""Of leaving points out and pulling taut. The second hardly ever finds anything."""
REFINING_WORK = 1_000_000
"""A few milliseconds in which to prove that there is no shorter path, or to find it."""


class AnyAnglePlanner:
    """Searches the cells, pulls the way taut, and looks for a shorter one among the corners.

    The first two give the shortest of all paths that pass the same obstacles on the same sides. The sides
    are chosen by lengths over cells, which are up to 8 % too long. So the third is tried as far as it is
    cheap, as it is in a house. The same query always gives the same path.

    Args:
        free: The mask.
        reach: How far from its ends a query's own mask may differ, in cells.
    """

    def __init__(self, free: Mask, *, reach: int) -> None:
        self.optimum_gap: float | None = None
        """0 if the last path is certainly the shortest, else None."""
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
        for _ in range(ROUNDS):
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
