"""A roadmap: places in free space and the straight ways between them, for many queries on one map."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.planning.free_space import Mask
from proctor.navigation.planning.line_of_sight import line_is_free

Indices: TypeAlias = NDArray[np.int64]

NEIGHBOURS = 12
"""So many of the nearest places are tried, to join a new one to the roadmap."""


class Roadmap:
    """Places that are joined, in cells.

    Args:
        places: (N, 2).
        ways: (M, 2) indices of places; each way once or in both directions.
    """

    def __init__(self, places: Array, ways: Indices) -> None:
        self.places, self._ways = places, ways

    def path(self, free: Mask, start: Array, goal: Array, extra: Array) -> Array | None:
        """Return the shortest way (N, 2) from start to goal along the roadmap, None if they are not joined.

        The roadmap itself stays as it is.

        Args:
            free: Where lines may go that are no ways of the roadmap.
            start: Joined to the roadmap for this query.
            goal: Joined as well.
            extra: (K, 2) more places for this query.
        """
        added = np.concatenate([start[None], goal[None], extra])
        places = np.concatenate([added, self.places])
        ways = np.concatenate([self._ways + len(added), _ways_of(free, places, len(added))])
        lengths = np.linalg.norm(places[ways[:, 0]] - places[ways[:, 1]], axis=1)
        graph = coo_array((lengths, (ways[:, 0], ways[:, 1])), shape=(len(places),) * 2)
        distances, before = dijkstra(graph.tocsr(), directed=False, indices=0, return_predecessors=True)
        if not np.isfinite(distances[1]):
            return None
        chain = [1]
        while chain[-1] != 0:
            chain.append(int(before[chain[-1]]))
        return np.asarray(places[chain[::-1]])


def _ways_of(free: Mask, places: Array, count: int) -> Indices:
    """Return the free ways between each of the first places and those that are nearest to it."""
    _, near = cKDTree(places).query(places[:count], k=min(NEIGHBOURS + 1, len(places)))
    pairs = np.stack([np.repeat(np.arange(count), near.shape[1]), near.ravel()], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.asarray(pairs[lines_are_free(free, places[pairs[:, 0]], places[pairs[:, 1]])])


@compiled
def lines_are_free(free: Mask, starts: Array, ends: Array) -> Mask:
    """Tell which of N lines between (N, 2) points are free."""
    answers = np.empty(starts.shape[0], dtype=np.bool_)
    for index in range(starts.shape[0]):
        x, y = starts[index, 0], starts[index, 1]
        answers[index] = line_is_free(free, x, y, ends[index, 0], ends[index, 1])
    return answers
