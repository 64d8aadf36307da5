"""Where the centre of a disc may be on a map, and the contract of what plans there."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.ndimage import label

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, Mask

CellWindow: TypeAlias = tuple[slice, slice]
HAIR = 1e-7  # cells
DIRECTIONS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)])
ENDS_REACH_M = 0.5  # so close to both ends the bare radius is enough: goals are often beside walls


class CellQuery(NamedTuple):
    """A path is wanted, in cells, x first: (row, column) covers [column, column + 1) x [row, row + 1)."""

    free: Mask
    start: Array
    goal: Array
    deadline_s: float  # of time.monotonic()
    seed: int
    cancelled: Callable[[], bool] | None

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for the path any more."""
        return self.cancelled is not None and self.cancelled()

    @property
    def is_over(self) -> bool:
        """Whether there is no time left, or no need."""
        return time.monotonic() > self.deadline_s or self.is_cancelled


class PlannerBackend(Protocol):
    """A planner for one map and radius, kept as long as both stay the same. `free` must not change.

    Queries bring a mask of their own, in which more cells may be free up to `reach` cells from their start
    and goal. These are not free for other queries.
    """

    optimum_gap: float | None  # 0 if the last path is certainly the shortest, else None

    def __init__(self, free: Mask, *, reach: int) -> None: ...

    def plan(self, query: CellQuery) -> Array | None:
        """Return the corners (N, 2) of a path, start and goal included; None if there is no path.

        The path never enters the interior of a cell that is not free; see `line_is_free`. Raises
        NavigationFailure with PLANNING_TIMEOUT or CANCELLED.
        """


class FreeSpace:
    """The free cells of a map for a radius and a margin, and what planners prepared for them."""

    def __init__(self, field: ClearanceField, radius_m: float, margin_m: float) -> None:
        self.lock = threading.Lock()  # hold it while planning: there is one mask for all queries
        self._field, self._radius_m = field, radius_m
        self._free = field.cells > radius_m + margin_m
        self._query_free = self._free if margin_m == 0 else self._free.copy()
        self._reach = math.ceil(ENDS_REACH_M / field.resolution_m)
        self._planners: dict[type[PlannerBackend], PlannerBackend] = {}

    def planner(self, kind: type[PlannerBackend]) -> PlannerBackend:
        """Return the planner of a class that is kept with these cells."""
        if kind not in self._planners:
            self._planners[kind] = kind(self._free, reach=self._reach)
        return self._planners[kind]

    @contextmanager
    def open_at(self, *ends: Array) -> Iterator[Mask]:
        """Lend the mask for a query, in which the bare radius is enough near its ends (in cells)."""
        if self._query_free is self._free:
            yield self._free
            return
        windows = [window_around(end, self._reach, self._free.shape) for end in ends]
        for end, (rows, columns) in zip(ends, windows, strict=True):
            apart = np.hypot(
                np.arange(rows.start, rows.stop)[:, None] + 0.5 - end[1],
                np.arange(columns.start, columns.stop) + 0.5 - end[0],
            )
            fits = self._field.cells[rows, columns] > self._radius_m
            self._query_free[rows, columns] |= fits & (apart <= self._reach)
        try:
            yield self._query_free
        finally:
            for window in windows:
                self._query_free[window] = self._free[window]


def in_free_cell(
    cells: Array | Mask, at: Array, more_than: float = 0.0, *, reach: float = HAIR
) -> Array | None:
    """Return a point (in cells) if its cell has more than a value, else one a hair beside it that does.

    A point on a border is in two cells. None if there is none; points beyond the cells are not in any.
    """
    rows, columns = cells.shape
    for shift in reach * DIRECTIONS:
        end: Array = at + shift
        if not (-HAIR <= end[0] <= columns + HAIR and -HAIR <= end[1] <= rows + HAIR):
            continue
        end = np.clip(end, 0.0, (columns - HAIR, rows - HAIR))
        if cells[int(end[1]), int(end[0])] > more_than:
            return end
    return None


def is_connected(free: Mask, start: Array, goal: Array) -> bool:
    """Tell whether there is a path between two points (in cells)."""
    regions, _ = label(free)
    first, last = (regions[int(end[1]), int(end[0])] for end in (start, goal))
    return bool(first == last != 0)


def window_around(point: Array, reach: int, shape: tuple[int, ...]) -> CellWindow:
    """Return the rows and the columns of a mask that are within so many cells of the cell of a point."""
    column, row = (int(part) for part in point)
    return (
        slice(max(row - reach, 0), min(row + reach + 1, shape[0])),
        slice(max(column - reach, 0), min(column + reach + 1, shape[1])),
    )
