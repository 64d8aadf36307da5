"""The shortest way over the cells of a grid, by A* with a queue of buckets.

Steps go to the eight cells around, never across the corner of a cell that is not free. Costs are whole
numbers, so that cells of equal estimate can wait in one bucket, and no heap is needed. Estimates never fall
and differ by less than 200 among the cells that wait, so that a ring of 256 buckets holds them all.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.navigation.compiled import compiled

Mask: TypeAlias = NDArray[np.bool_]

STRAIGHT, DIAGONAL = 70, 99  # 99 / 70 is the root of 2, but for 0.005 %
STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)])
"""(rows, columns); the opposite of step k is step k ^ 1, and the first four are straight."""
BUCKETS = 256
RING = BUCKETS - 1
KEY, ENTRIES, SPARE, NEW, ROUND = range(5)
"""The state of a search: the estimate at work, how many entries the queue has, the first entry that is free
again, the first that was never used, and the number of the search."""
RUNNING, FOUND, EXHAUSTED = range(3)


class Workspace(NamedTuple):
    """The memory of a search, used again by the next: only what a search touches costs time."""

    costs: NDArray[np.int32]
    """The least cost to each cell that is known so far."""
    marks: NDArray[np.int32]
    """Twice the number of the search for cells that wait in the queue, and one more for those that are done."""
    entries: NDArray[np.int32]
    """The cell of each entry of the queue. A cell that becomes cheaper gets another entry."""
    links: NDArray[np.int32]
    """The next entry in the same bucket, or -1."""
    buckets: NDArray[np.int32]
    """The first entry of each bucket, or -1."""
    state: NDArray[np.int64]

    @classmethod
    def of(cls, cells: int) -> Workspace:
        """Make one for so many cells, the border included."""
        costs, marks = np.zeros((2, cells), dtype=np.int32)
        # One for each neighbour is the most there can ever be. Memory is only taken when it is used.
        entries, links = np.empty((2, 8 * cells), dtype=np.int32)
        return cls(costs, marks, entries, links, np.zeros(BUCKETS, np.int32), np.zeros(5, np.int64))


class GridSearch:
    """Ways over the cells of a mask.

    Cells are numbered row by row in a grid that has a border of one cell around it, which is not free.

    Args:
        free: The mask.
    """

    def __init__(self, free: Mask) -> None:
        rows, columns = free.shape
        self._width = columns + 2
        self._moves = np.zeros((rows + 2) * self._width, dtype=np.uint8)
        self._workspace = Workspace.of(self._moves.size)
        self.update(free, slice(0, rows), slice(0, columns))

    def update(self, free: Mask, rows: slice, columns: slice) -> None:
        """Take over what has changed in a part of the mask."""
        _find_moves(free, rows.start, rows.stop, columns.start, columns.stop, self._moves)

    def begin(self, start: Array, goal: Array) -> None:
        """Begin to look for a way between the cells that two points, in cells, lie in."""
        self._start, self._goal = self._number(start), self._number(goal)
        _begin(self._start, self._goal, self._width, self._workspace)

    def advance(self, expansions: int) -> int:
        """Go on for at most so many cells: RUNNING, FOUND or EXHAUSTED."""
        result: int = _advance(self._moves, self._width, self._goal, self._workspace, expansions)
        return result

    def corners(self) -> Array:
        """Return the centres (N, 2) of the cells where the way that was found turns, both ends included."""
        return _trace(self._moves, self._width, self._start, self._goal, self._workspace)

    def _number(self, point: Array) -> int:
        return (int(point[1]) + 1) * self._width + int(point[0]) + 1


@compiled
def _find_moves(
    free: Mask, first_row: int, end_row: int, first_column: int, end_column: int, moves: NDArray[np.uint8]
) -> None:
    """Note for each cell of a part of the mask, as bits, which of the eight steps it allows."""
    rows, columns = free.shape
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            allowed = 0
            if free[row, column]:
                up = row > 0 and free[row - 1, column]
                down = row < rows - 1 and free[row + 1, column]
                left = column > 0 and free[row, column - 1]
                right = column < columns - 1 and free[row, column + 1]
                allowed = up | down << 1 | left << 2 | right << 3
                allowed |= (up and left and free[row - 1, column - 1]) << 4
                allowed |= (down and right and free[row + 1, column + 1]) << 5
                allowed |= (up and right and free[row - 1, column + 1]) << 6
                allowed |= (down and left and free[row + 1, column - 1]) << 7
            moves[(row + 1) * (columns + 2) + column + 1] = allowed


@compiled
def _estimate(rows: int, columns: int) -> int:
    """Return the least cost of going so far."""
    rows, columns = abs(rows), abs(columns)
    return STRAIGHT * max(rows, columns) + (DIAGONAL - STRAIGHT) * min(rows, columns)


@compiled
def _begin(start: int, goal: int, width: int, workspace: Workspace) -> None:
    """Let the start wait, alone."""
    costs, marks, entries, links, buckets, state = workspace
    buckets[:] = -1
    state[ROUND] += 1
    state[KEY] = _estimate(start // width - goal // width, start % width - goal % width)
    state[ENTRIES], state[SPARE], state[NEW] = 1, -1, 1
    buckets[state[KEY] & RING] = 0
    entries[0], links[0] = start, -1
    costs[start], marks[start] = 0, 2 * state[ROUND]


@compiled
def _advance(moves: NDArray[np.uint8], width: int, goal: int, workspace: Workspace, expansions: int) -> int:
    """Take cells from the queue until the goal comes out of it, none is left or the number is reached."""
    costs, marks, entries, links, buckets, state = workspace
    offsets = STEPS[:, 0] * width + STEPS[:, 1]
    goal_row, goal_column = goal // width, goal % width
    waits = 2 * state[ROUND]
    done = waits + 1
    key, count, spare, new = state[KEY], state[ENTRIES], state[SPARE], state[NEW]
    result = RUNNING
    while expansions > 0:
        if count == 0:
            result = EXHAUSTED
            break
        while buckets[key & RING] < 0:
            key += 1
        entry = buckets[key & RING]
        buckets[key & RING] = links[entry]
        links[entry] = spare
        spare = entry
        count -= 1
        cell = entries[entry]
        if marks[cell] == done:  # by another entry, when it had become cheaper
            continue
        marks[cell] = done
        expansions -= 1
        if cell == goal:
            result = FOUND
            break
        row = cell // width
        rows, columns = row - goal_row, cell - row * width - goal_column
        allowed, cost_here = moves[cell], costs[cell]
        for step in range(8):
            if not allowed >> step & 1:
                continue
            after = cell + offsets[step]
            if marks[after] == done:
                continue
            cost = cost_here + (STRAIGHT if step < 4 else DIAGONAL)
            if marks[after] == waits and cost >= costs[after]:
                continue
            marks[after], costs[after] = waits, cost
            bucket = (cost + _estimate(rows + STEPS[step, 0], columns + STEPS[step, 1])) & RING
            if spare >= 0:
                entry, spare = spare, links[spare]
            else:
                entry, new = new, new + 1
            entries[entry], links[entry] = after, buckets[bucket]
            buckets[bucket] = entry
            count += 1
    state[KEY], state[ENTRIES], state[SPARE], state[NEW] = key, count, spare, new
    return result


@compiled
def _trace(moves: NDArray[np.uint8], width: int, start: int, goal: int, workspace: Workspace) -> Array:
    """Go back from the goal, always to a cell that costs as much less as the step does."""
    costs, marks = workspace.costs, workspace.marks
    done = 2 * workspace.state[ROUND] + 1
    turns = [goal]
    cell, heading = goal, -1
    while cell != start:
        for turn in range(9):  # straight on if possible
            step = heading if turn == 0 else turn - 1
            if step < 0 or not moves[cell] >> step & 1:
                continue
            before = cell + STEPS[step, 0] * width + STEPS[step, 1]
            cost = costs[cell] - (STRAIGHT if step < 4 else DIAGONAL)
            if marks[before] == done and costs[before] == cost:
                break
        if step != heading and cell != goal:
            turns.append(cell)
        cell, heading = before, step
    turns.append(start)
    points = np.empty((len(turns), 2))
    for index in range(len(turns)):
        points[index, 0] = turns[-1 - index] % width - 0.5
        points[index, 1] = turns[-1 - index] // width - 0.5
    return points
