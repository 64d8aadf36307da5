"""Where the centre of a disc may be on a map, and whether a straight line keeps to free cells, exactly."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from proctor.core.types import Array
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled

TOUCH = 1e-9  # Cells. Less than this inside of a cell is a touch, and touching is allowed.
Mask: TypeAlias = NDArray[np.bool_]
Window: TypeAlias = tuple[slice, slice]
HAIR = 1e-7  # cells
DIRECTIONS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)])
ENDS_REACH_M = 0.5  # so close to both ends the bare radius is enough: goals are often beside walls


class _Lattice(NamedTuple):
    """A mask, or the same mask with x and y exchanged."""

    cells: NDArray[np.bool_]  # one after the other
    columns: int
    rows: int
    column_stride: int
    row_stride: int


@compiled
def line_is_free(free: NDArray[np.bool_], x0: float, y0: float, x1: float, y1: float) -> bool:
    """Tell whether a line stays out of the interior of all cells that are not free.

    Coordinates are in cells: cell (row, column) covers [column, column + 1) x [row, row + 1). What is beyond
    the map is not free. A line may run along a border, but neither between two cells that are not free nor
    through the point where two such cells meet diagonally: there would be no room at all.

    The line is walked column by column, with x and y exchanged where it is steep.
    """
    rows, columns = free.shape
    grid = _Lattice(free.reshape(free.size), columns, rows, 1, columns)
    if abs(y1 - y0) > abs(x1 - x0):
        grid = _Lattice(grid.cells, rows, columns, columns, 1)
        x0, y0, x1, y1 = y0, x0, y1, x1
    if x0 > x1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    first, last = math.floor(x0 + TOUCH), math.floor(x1 - TOUCH)
    if last < first:  # a point, or all but one
        return _touches_free(grid, first, y0) or _touches_free(grid, last, y0)
    if first < 0 or last >= grid.columns or min(y0, y1) < -TOUCH or max(y0, y1) > grid.rows + TOUCH:
        return False
    return _columns_are_free(grid, first, last, (x0, y0, x1, y1))


@compiled
def _columns_are_free(grid: _Lattice, first: int, last: int, line: tuple[float, float, float, float]) -> bool:
    """Walk along a line that goes to the right and is not steep."""
    x0, y0, x1, y1 = line
    low, high = min(y0, y1), max(y0, y1)
    slope = (y1 - y0) / max(x1 - x0, TOUCH)
    cells, column_stride, row_stride = grid.cells, grid.column_stride, grid.row_stride
    below, above = math.floor(y0 - TOUCH), math.floor(y0 + TOUCH)  # the same, unless y is at a border
    for column in range(first, last + 1):
        y = min(max(y0 + slope * (column + 1 - x0), low), high)
        next_below, next_above = math.floor(y - TOUCH), math.floor(y + TOUCH)
        bottom, top = min(above, next_above), max(below, next_below)
        if top < bottom and not _touches_free(grid, column, y):  # along a border: one side is enough
            return False
        for row in range(bottom, top + 1):
            if not cells[column * column_stride + row * row_stride]:
                return False
        if next_below < next_above and column < last and _is_pinched(grid, column, next_above):
            return False
        below, above = next_below, next_above
    return True


@compiled
def path_is_free(free: NDArray[np.bool_], points: NDArray[np.float64]) -> bool:
    """Tell whether all lines between successive (N, 2) points are free."""
    for index in range(points.shape[0] - 1):
        x0, y0 = points[index, 0], points[index, 1]
        if not line_is_free(free, x0, y0, points[index + 1, 0], points[index + 1, 1]):
            return False
    return True


@compiled
def _is_free(grid: _Lattice, column: int, row: int) -> bool:
    inside = 0 <= column < grid.columns and 0 <= row < grid.rows
    return inside and bool(grid.cells[column * grid.column_stride + row * grid.row_stride])


@compiled
def _touches_free(grid: _Lattice, column: int, y: float) -> bool:
    """Tell whether a free cell of a column reaches to y."""
    below, above = math.floor(y - TOUCH), math.floor(y + TOUCH)
    return _is_free(grid, column, below) or _is_free(grid, column, above)


@compiled
def _is_pinched(grid: _Lattice, column: int, row: int) -> bool:
    """Tell whether at the lower right corner of a cell two cells that are not free meet diagonally."""
    below, above = _is_free(grid, column, row - 1), _is_free(grid, column, row)
    next_below, next_above = _is_free(grid, column + 1, row - 1), _is_free(grid, column + 1, row)
    return below == next_above and above == next_below and below != above


class PlannerBackend(Protocol):
    """A planner for one map and radius, kept as long as both stay the same. `free` must not change.

    All coordinates are in cells, x first: cell (row, column) covers [column, column + 1) x [row, row +
    1). Queries bring a mask of their own, in which more cells may be free up to `reach` cells from their
    start and goal. These are not free for other queries.
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

        The path never enters the interior of a cell that is not free; see `line_is_free`. Raises
        NavigationFailure with PLANNING_TIMEOUT or CANCELLED.
        """


Backend = TypeVar("Backend", bound=PlannerBackend)


class FreeSpace:
    """The free cells of a map for a radius and a margin, and what planners prepared for them."""

    def __init__(self, field: ClearanceField, radius_m: float, margin_m: float) -> None:
        self.lock = threading.Lock()  # hold it while planning: there is one mask for all queries
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


def window_around(point: Array, reach: int, shape: tuple[int, ...]) -> Window:
    """Return the rows and the columns of a mask that are within so many cells of the cell of a point."""
    column, row = (int(part) for part in point)
    return (
        slice(max(row - reach, 0), min(row + reach + 1, shape[0])),
        slice(max(column - reach, 0), min(column + reach + 1, shape[1])),
    )
