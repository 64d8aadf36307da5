"""The length of the shortest path over a grid, exactly: what planners are judged by.

It shares no code with them. Lines are tested in whole numbers, so that nothing is rounded, and the search
sees every corner of the map. A shortest path bends only at corners of blocked cells, and around them.
"""

from __future__ import annotations

import heapq
import itertools
import math

import numba
import numpy as np

UNITS = 1 << 16
"""So many make a cell. Coordinates are whole; up to 4096 cells, the product of two of them fits 64 bits."""


class ExactPlanner:
    """Shortest paths in a mask of free cells, for a point that may touch blocked cells but not enter them.

    All coordinates are in cells, x first: cell (row, column) covers [column, column + 1) x [row, row + 1).
    What is beyond the map is blocked. There is no passage between two blocked cells that touch, not even
    diagonally.
    """

    def __init__(self, free):
        self._blocked = np.pad(~free, 1, constant_values=True)
        quarters = [
            self._blocked[row : row - 1 or None, column : column - 1 or None] for row, column in QUARTERS
        ]
        rows, columns = np.nonzero(np.sum(quarters, axis=0) == 1)
        self._corners = np.stack([columns, rows], axis=1)
        held = np.stack([quarter[rows, columns] for quarter in quarters])
        self._quadrants = np.array([(2 * column - 1, 2 * row - 1) for row, column in QUARTERS])[
            held.argmax(axis=0)
        ]
        """Where the blocked cell of each corner lies: (+-1, +-1)."""

    def shortest_length(self, start, goal, at_most=math.inf):
        """The length of the shortest path, infinite if there is none of at most this length."""
        start, goal = to_units(start), to_units(goal)
        if sees(self._blocked, *start, *goal):
            return math.dist(start, goal) / UNITS
        corners = self._corners * UNITS
        from_start, to_goal = (np.hypot(*(corners - end).T) / UNITS for end in (start, goal))
        near = from_start + to_goal < at_most + 1e-3
        return self._search(corners[near], self._quadrants[near], start, goal, at_most)

    def is_free(self, path):
        """Whether all lines of a path (N, 2) are free."""
        points = [to_units(point) for point in path]
        return all(sees(self._blocked, *a, *b) for a, b in itertools.pairwise(points))

    def _search(self, corners, quadrants, start, goal, at_most):
        """A* over the corners, the lines between them tested when they are needed."""
        to_goal = np.hypot(*(corners - goal).T) / UNITS
        sees_goal = self._reached(corners, quadrants, goal)
        costs = np.full(len(corners), math.inf)
        best, done, queue = at_most + 1e-3, np.zeros(len(corners), dtype=bool), []
        found = False

        def go_on_from(point, cost, rows):
            lengths = cost + np.hypot(*(corners[rows] - point).T) / UNITS
            better = (lengths < costs[rows]) & (lengths + to_goal[rows] < best)
            costs[rows[better]] = lengths[better]
            for row in rows[better]:
                heapq.heappush(queue, (costs[row] + to_goal[row], row))

        go_on_from(start, 0.0, np.flatnonzero(self._reached(corners, quadrants, start)))
        while queue:
            total, at = heapq.heappop(queue)
            if total >= best:
                break
            if done[at]:
                continue
            done[at] = True
            if sees_goal[at]:
                best, found = total, True
                continue
            waiting = ~done & is_tangent(corners - corners[at], quadrants[at])
            waiting &= costs[at] + np.hypot(*(corners - corners[at]).T) / UNITS < costs
            go_on_from(
                corners[at], costs[at], self._reached(corners, quadrants, corners[at], waiting).nonzero()[0]
            )
        return float(best) if found else math.inf

    def _reached(self, corners, quadrants, point, among=None):
        """Which corners a path could come to straight from a point, and go on."""
        reached = is_tangent(corners - point, quadrants)
        if among is not None:
            reached &= among
        rows = np.flatnonzero(reached)
        reached[rows] = see(self._blocked, point[0], point[1], corners[rows])
        return reached


QUARTERS = [(0, 0), (0, 1), (1, 0), (1, 1)]
"""(up, right): the four cells around a point."""


def to_units(point):
    """A point in whole units, in the same cell as before."""
    cell = np.floor(point).astype(np.int64)
    inside = np.round((np.asarray(point) - cell) * UNITS).astype(np.int64)
    return cell * UNITS + np.minimum(inside, UNITS - 1)


def is_tangent(moves, quadrants):
    """Whether moves to corners (or from one) do not point into or out of the blocked cells there."""
    return np.prod(np.sign(moves) * quadrants, axis=-1) <= 0


@numba.njit(cache=True)
def see(blocked, x, y, others):
    """Which of (N, 2) points a point sees."""
    seen = np.empty(len(others), dtype=np.bool_)
    for index in range(len(others)):
        seen[index] = sees(blocked, x, y, others[index, 0], others[index, 1])
    return seen


@numba.njit(cache=True)
def sees(blocked, x0, y0, x1, y1):
    """Whether a line between two points in units enters no blocked cell and squeezes between none.

    Args:
        blocked: The mask, with a border of one cell around the map.
    """
    if x0 > x1:
        x0, y0, x1, y1 = x1, y1, x0, y0
    if x0 == x1:
        return vertical_is_free(blocked, x0, min(y0, y1), max(y0, y1))
    dx, dy = x1 - x0, y1 - y0
    one = UNITS * dx  # a cell, where y is y * dx: so the line's height is whole everywhere
    for column in range(x0 // UNITS, -(-x1 // UNITS)):
        left, right = max(x0, column * UNITS), min(x1, (column + 1) * UNITS)
        at_left, at_right = y0 * dx + dy * (left - x0), y0 * dx + dy * (right - x0)
        low, high = min(at_left, at_right), max(at_left, at_right)
        for row in range(low // one, -(-high // one)):
            if blocked[row + 1, column + 1]:
                return False
        row = low // one
        if low == high and low % one == 0 and blocked[row, column + 1] and blocked[row + 1, column + 1]:
            return False
        if right < x1 and at_right % one == 0 and is_pinched(blocked, column + 1, at_right // one):
            return False
    return True


@numba.njit(cache=True)
def vertical_is_free(blocked, x, y0, y1):
    column = x // UNITS
    between = x % UNITS == 0
    for row in range(y0 // UNITS, -(-y1 // UNITS)):
        if blocked[row + 1, column + 1] and (not between or blocked[row + 1, column]):
            return False
        if between and row > y0 // UNITS and is_pinched(blocked, column, row):
            return False
    return True


@numba.njit(cache=True)
def is_pinched(blocked, column, row):
    """Whether two blocked cells touch only at a point where cells meet."""
    down_left, down_right = blocked[row, column], blocked[row, column + 1]
    up_left, up_right = blocked[row + 1, column], blocked[row + 1, column + 1]
    return down_left == up_right and down_right == up_left and down_left != down_right
