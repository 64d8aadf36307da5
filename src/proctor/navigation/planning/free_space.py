"""Where the centre of a disc may be on a map."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.navigation.maps.clearance_field import ClearanceField

Mask: TypeAlias = NDArray[np.bool_]
Window: TypeAlias = tuple[slice, slice]
ENDS_REACH_M = 0.5
"""So close to the start and to the goal the bare radius is enough: goals are often beside walls."""


class PlannerBackend(Protocol):
    """A way of planning, made for a map and a radius and kept as long as both stay the same.

    All coordinates are in cells, x first: cell (row, column) covers [column, column + 1) x [row, row + 1).

    Args:
        free: Where the centre of the robot may be. Does not change.
        reach: Queries come with a mask of their own, in which there may be more free cells up to this many
            cells from their start and goal. They are not free for other queries.
    """

    def __init__(self, free: Mask, *, reach: int) -> None: ...

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
        """Return the corners (N, 2) of a path, start and goal included; None if there is no path.

        The path never enters the interior of a cell that is not free; see `line_is_free`.

        Raises:
            NavigationFailure: PLANNING_TIMEOUT or CANCELLED.
        """


Backend = TypeVar("Backend", bound=PlannerBackend)


class FreeSpace:
    """The free cells of a map for a radius and a margin, and what planners prepared for them.

    Args:
        field: The map.
        radius_m: The robot's radius.
        margin_m: What is kept beyond it, except near the ends of a query.
    """

    def __init__(self, field: ClearanceField, radius_m: float, margin_m: float) -> None:
        self.lock = threading.Lock()
        """To be held while planning: there is one mask for the query that is at work."""
        self._field, self._radius_m = field, radius_m
        self._free = field.cells > radius_m + margin_m
        self._query_free = self._free if margin_m == 0 else self._free.copy()
        self._reach = math.ceil(ENDS_REACH_M / field.resolution_m)
        self._planners: dict[type[PlannerBackend], PlannerBackend] = {}

    def planner(self, kind: type[Backend]) -> Backend:
        """Return the planner of a class that is kept with these cells."""
        if kind not in self._planners:
            self._planners[kind] = kind(self._free, reach=self._reach)
        return cast(Backend, self._planners[kind])

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


def window_around(point: Array, reach: int, shape: tuple[int, ...]) -> Window:
    """Return the rows and the columns of a mask that are within so many cells of the cell of a point."""
    column, row = (int(part) for part in point)
    return (
        slice(max(row - reach, 0), min(row + reach + 1, shape[0])),
        slice(max(column - reach, 0), min(column + reach + 1, shape[1])),
    )
