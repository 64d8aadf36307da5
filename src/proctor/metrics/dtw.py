"""Dynamic time warping, exact: of whole sequences, and incremental, where a new point costs one row."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from proctor.core.types import Array

ROWS_AT_ONCE = 64
"""How many rows of costs are computed together: they stay in the cache, and memory in bounds."""


def dtw_distance(a: Array, b: Array) -> float:
    """Return the DTW distance of two sequences of points, (N, D) and (M, D): the least sum of distances.

    All numbers must be finite, and both must have at least one point.
    """
    dtw = IncrementalDtw(len(b))
    for start in range(0, len(a), ROWS_AT_ONCE):
        for costs in cdist(a[start : start + ROWS_AT_ONCE], b):
            dtw.add(costs)
    return dtw.distance


class IncrementalDtw:
    """The DTW distance between a reference and a path that is still growing.

    A cell of the DTW table is `cost[j] + min(above[j], above[j - 1], left)`. The dependence on the
    left neighbour unrolls: with S the running sum of the row's costs, a cell is `S[j]` plus the
    minimum over k <= j of `min(above[k], above[k - 1]) - S[k - 1]`: a cumulative minimum.

    Args:
        reference_points: How many points the reference has, at least 1.
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
