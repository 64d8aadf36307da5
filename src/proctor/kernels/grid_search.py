"""The shortest path over the cells of a grid, by A* with a queue of buckets.

Steps go to the eight cells around, never across the corner of a cell that is not free. Costs are whole
numbers, so that cells of equal estimate can wait in one bucket, and no heap is needed. Estimates never fall
and differ by less than 200 among the cells that wait, so that a ring of 256 buckets holds them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import Mask
from proctor.kernels.compiled import compiled

STRAIGHT, DIAGONAL = 70, 99  # 99 / 70 is the root of 2, but for 0.005 %
STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)])
"""(rows, columns); the opposite of step k is step k ^ 1, and the first four are straight."""
BUCKETS = 256
RING = BUCKETS - 1
KEY, ENTRIES, SPARE, NEW, ROUND = range(5)
"""The state of a search: the estimate at work, how many entries the queue has, the first entry that is free
again, the first that was never used, and the number of the search."""
RUNNING, FOUND, EXHAUSTED = range(3)
ENCLOSED_CELLS = 50_000  # a closed room is smaller. So much is flooded when the search takes long.


class Workspace(NamedTuple):
    """The memory of a search, used again by the next: only what a search touches costs time."""

    costs: NDArray[np.int32]  # the least cost to each cell that is known so far
    marks: NDArray[np.int32]  # 2 * number of the search for cells that wait, one more for those done
    entries: NDArray[np.int32]  # the cell of each queue entry; a cell that becomes cheaper gets another
    links: NDArray[np.int32]  # the next entry in the same bucket, or -1
    buckets: NDArray[np.int32]  # the first entry of each bucket, or -1
    state: NDArray[np.int64]

    @classmethod
    def of(cls, cells: int) -> Workspace:
        """Make one for so many cells, the border included."""
        costs, marks = np.zeros((2, cells), dtype=np.int32)
        # One for each neighbour is the most there can ever be. Memory is only taken when it is used.
        entries, links = np.empty((2, 8 * cells), dtype=np.int32)
        return cls(costs, marks, entries, links, np.zeros(BUCKETS, np.int32), np.zeros(5, np.int64))

    def begin(self, start: int, goal: int, width: int) -> None:
        """Let the start wait, alone."""
        costs, marks, entries, links, buckets, state = self
        buckets[:] = -1
        state[ROUND] += 1
        state[KEY] = estimate(start // width - goal // width, start % width - goal % width)
        state[ENTRIES], state[SPARE], state[NEW] = 1, -1, 1
        buckets[state[KEY] & RING] = 0
        entries[0], links[0] = start, -1
        costs[start], marks[start] = 0, 2 * state[ROUND]


@compiled
def find_moves(
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
def estimate(rows: int, columns: int) -> int:
    """Return the least cost of going so far."""
    rows, columns = abs(rows), abs(columns)
    return STRAIGHT * max(rows, columns) + (DIAGONAL - STRAIGHT) * min(rows, columns)


@compiled
def advance(moves: NDArray[np.uint8], width: int, goal: int, workspace: Workspace, expansions: int) -> int:
    """Take cells from the queue until the goal comes out of it, none is left or the number is reached.

    It is all one loop because calls in it would cost a third of the speed.
    """
    costs, marks, entries, links, buckets, state = workspace
    key, count, spare, new = state[KEY], state[ENTRIES], state[SPARE], state[NEW]
    waits, done = 2 * state[ROUND], 2 * state[ROUND] + 1
    goal_row, goal_column = goal // width, goal % width
    offsets = STEPS[:, 0] * width + STEPS[:, 1]
    while expansions > 0:
        if count == 0:
            return EXHAUSTED
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
        if cell == goal:
            return FOUND
        expansions -= 1
        row = cell // width
        rows, columns = row - goal_row, cell - row * width - goal_column
        allowed, cost_here = moves[cell], costs[cell]
        for step in range(8):
            if not allowed >> step & 1:
                continue
            after = cell + offsets[step]
            cost = cost_here + (STRAIGHT if step < 4 else DIAGONAL)
            if marks[after] == done or (marks[after] == waits and cost >= costs[after]):
                continue
            marks[after], costs[after] = waits, cost
            if spare >= 0:
                entry, spare = spare, links[spare]
            else:
                entry, new = new, new + 1
            bucket = (cost + estimate(rows + STEPS[step, 0], columns + STEPS[step, 1])) & RING
            entries[entry], links[entry] = after, buckets[bucket]
            buckets[bucket] = entry
            count += 1
    state[KEY], state[ENTRIES], state[SPARE], state[NEW] = key, count, spare, new
    return RUNNING


@compiled
def trace(moves: NDArray[np.uint8], width: int, start: int, goal: int, workspace: Workspace) -> Array:
    """Go back from the goal, always to a cell that costs as much less as the step does."""
    costs, marks = workspace.costs, workspace.marks
    done = 2 * workspace.state[ROUND] + 1
    turns = np.empty(moves.size, np.int64)  # as long as the longest way; memory is only taken when it is used
    turns[0], count = goal, 1
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
            turns[count], count = cell, count + 1
        cell, heading = before, step
    points = np.empty((count + 1, 2))
    for index in range(count + 1):
        turn = start if index == 0 else turns[count - index]
        points[index, 0], points[index, 1] = turn % width - 0.5, turn // width - 0.5
    return points


@compiled
def is_enclosed(moves: NDArray[np.uint8], width: int, cell: int, other: int) -> bool:
    """Flood the space around a cell, up to a limit, and tell whether it ends without the other cell."""
    seen = np.zeros(moves.size, np.bool_)
    flooded = np.empty(ENCLOSED_CELLS, np.int64)
    flooded[0], seen[cell] = cell, True
    at, count = 0, 1
    while at < count:
        for step in range(4):
            after = flooded[at] + STEPS[step, 0] * width + STEPS[step, 1]
            if moves[flooded[at]] >> step & 1 and not seen[after]:
                if count == ENCLOSED_CELLS or after == other:
                    return False
                flooded[count], seen[after] = after, True
                count += 1
        at += 1
    return True
