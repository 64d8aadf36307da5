"""Dynamic time warping, exact: of whole sequences, and incremental, where a new point costs one row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np
from numpy.lib.stride_tricks import as_strided

from proctor.core.types import Array

LARGEST_TABLE = 2**22
"""Cells. Above it the costs are not kept all at once."""
STRIP = 48
"""How many diagonals are laid out together. A multiple of 3, so that all strips begin with the same front."""


def dtw_distance(a: Array, b: Array) -> float:
    """Return the DTW distance of two sequences of points, (N, D) and (M, D): the least sum of distances.

    The cells of one diagonal of the table do not depend on each other, so a diagonal is one vectorised
    step. Two fronts, one from either end, halve the number of steps. They share a vector, in which their
    lanes alternate, so that the lanes in use are always its beginning.

    All numbers must be finite, and both sequences must have a point.
    """
    if len(a) > len(b):
        a, b = b, a
    if len(b) == 1:
        return float(np.linalg.norm(a - b))
    if len(a) * len(b) > LARGEST_TABLE:
        dtw = IncrementalDtw(len(b))
        for point in a:
            dtw.add(np.linalg.norm(b - point, axis=1))
        return dtw.distance
    from scipy.spatial.distance import cdist  # noqa: PLC0415  (metrics are there where no worlds are)

    table = cdist(a, b)
    diagonals = sum(table.shape) - 1
    steps = (diagonals + 1) // 2
    # Diagonal t is in fronts[t % 3]. Two cells in front of the lanes stand for what is outside of the table.
    fronts = np.full((3, 2 * len(a) + 2), np.inf)
    fronts[0, 2:4] = table[0, 0], table[-1, -1]
    minimum, add = np.fmin, np.add  # there is no NaN here, and fmin is quicker for not passing it on
    for costs in _strips(table, steps):
        ends, starts = fronts[:, 2 : 2 + costs.shape[1]], fronts[:, : costs.shape[1]]
        turns = [(ends[t % 3], ends[t - 1], starts[t - 1], starts[t - 2]) for t in (1, 2, 3)]
        for cost, (now, left, above, diagonal) in zip(costs, cycle(turns), strict=False):
            minimum(left, above, out=now)
            minimum(now, diagonal, out=now)
            add(now, cost, out=now)
    return _least_sum(fronts, steps - 1, diagonals)


def _strips(table: Array, steps: int) -> Iterator[Array]:
    """Yield the costs of diagonals, from the second on and some at a time: rows with both fronts' lanes.

    Beside the lanes that a diagonal has there may be others, with costs of other cells. They do no harm: no
    path leads there, so they are at infinity and remain there.
    """
    lanes, columns = table.shape
    cells = table.ravel()
    # Lane i of diagonal t is cell (i, t - i), counted from the other end for the second front.
    first, second = (
        as_strided(side, (steps, lanes), (side.strides[0], side.strides[0] * (columns - 1)))
        for side in (cells, cells[::-1])
    )
    costs = np.empty((STRIP, lanes, 2))
    for start in range(1, steps, STRIP):
        end = min(steps, start + STRIP)
        used = min(lanes, end)
        strip = costs[: end - start]
        strip[:, :used, 0] = first[start:end, :used]
        strip[:, :used, 1] = second[start:end, :used]
        yield strip.reshape(len(strip), -1)[:, : 2 * used]


def _least_sum(fronts: Array, last: int, diagonals: int) -> float:
    """Return the cost of the best path through: up to the middle by the first front, then by the second."""
    here, previous = fronts[last % 3, 2::2], fronts[(last - 1) % 3, 2::2]
    # With an odd number of diagonals both fronts stand on the same one: the second is taken a step back.
    step = last - diagonals % 2
    beyond, after_beyond = fronts[step % 3, 1::2][::-1], fronts[(step - 1) % 3, 1::2][::-1]
    onward = np.minimum(np.minimum(beyond[:-1], beyond[1:]), after_beyond[1:])
    return float(min((here + onward).min(), (previous + beyond[1:]).min()))


class IncrementalDtw:
    """The DTW distance between a reference of 1 point or more and a path that is still growing.

    A cell of the DTW table is `cost[j] + min(above[j], above[j - 1], left)`. The dependence on the
    left neighbour unrolls: with S the running sum of the row's costs, a cell is `S[j]` plus the
    minimum over k <= j of `min(above[k], above[k - 1]) - S[k - 1]`: a cumulative minimum.
    """

    def __init__(self, reference_points: int) -> None:
        # Both have a border cell in front: column 0 of the DTW table, and the empty sum.
        self._row = np.full(reference_points + 1, np.inf)
        self._row[0] = 0.0
        self._sums = np.zeros(reference_points + 1)

    def add(self, costs: Array) -> None:
        """Append a point to the path, given its distance to every point of the reference."""
        np.cumsum(costs, out=self._sums[1:])
        above = np.minimum(self._row[1:], self._row[:-1])
        self._row[1:] = self._sums[1:] + np.minimum.accumulate(above - self._sums[:-1])
        self._row[0] = np.inf

    @property
    def distance(self) -> float:
        """The DTW distance as of the last point; infinite while the path is empty."""
        return float(self._row[-1])
