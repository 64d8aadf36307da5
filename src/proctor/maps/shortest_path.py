"""Shortest paths of a disc over a grid map: a search over cells, then the string is pulled taut."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, label
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from proctor.core.types import Array

if TYPE_CHECKING:
    from proctor.maps.grid_map import GridMap

NEIGHBOURS = [(dy, dx) for dy in range(-2, 3) for dx in range(-2, 3) if math.gcd(dy, dx) == 1]
"""The 16 steps of the search, at most 27° apart: a way over cells is at most 2.8 % too long."""
CACHED_GOALS = 4
LEG_SHARES = np.append(0.8 ** np.arange(16), 0.0)


class PathFinder:
    """The shortest paths for one radius of disc. Remembers the search trees of the last few goals."""

    def __init__(self, grid: GridMap, radius_m: float) -> None:
        self._grid, self._radius_m = grid, radius_m
        self._free = grid.clearance_m > radius_m
        self.centres = self._world(np.argwhere(self._free)[:, ::-1])  # (N, 2), world: nodes of the search
        self._tree = lru_cache(maxsize=CACHED_GOALS)(self._search)
        self._field = lru_cache(maxsize=CACHED_GOALS)(self._continued_field)

    def path(self, start: Array, goal: Array) -> Array | None:
        """Return the corners of the shortest way, ends included, or None if there is none."""
        if not len(self.centres):
            return None
        root = self._nearest(goal)
        node = self._entry(start, root)
        if node is None:
            return None
        _, parents = self._tree(root)
        nodes = [node]
        while (node := int(parents[node])) >= 0:
            nodes.append(node)
        return self._taut(np.concatenate([[start], self.centres[nodes], [goal]]))

    def connects(self, start: Array, goal: Array) -> bool:
        """Tell whether there is a way, much faster than by searching the shortest."""
        return len(self.centres) > 0 and self._entry(start, self._nearest(goal)) is not None

    def field(self, goal: Array) -> Array:
        """Return every cell's distance from the goal; see `GridMap.rough_distances_m`."""
        if not len(self.centres):
            cells = np.moveaxis(np.indices(self._free.shape), 0, -1)[..., ::-1]
            straight: Array = np.linalg.norm(self._world(cells) - goal, axis=-1)
            return straight
        return self._field(self._nearest(goal))

    def _continued_field(self, root: int) -> Array:
        field = np.full(self._free.shape, np.inf)
        field[self._free] = self._tree(root)[0]
        offset, (row, column) = distance_transform_edt(np.isinf(field), return_indices=True)
        continued: Array = field[row, column] + offset * self._grid.resolution_m
        return continued

    def _world(self, cells: NDArray[np.int64]) -> Array:
        centres: Array = (cells + 0.5) * self._grid.resolution_m + np.array(self._grid.origin_world)
        return centres

    def _search(self, root: int) -> tuple[Array, NDArray[np.int32]]:
        cells, parents = dijkstra(self._graph, indices=root, return_predecessors=True)
        return cells * self._grid.resolution_m, parents

    def _nearest(self, point: Array) -> int:
        return int(np.argmin(((self.centres - point) ** 2).sum(axis=1)))

    @cached_property
    def _parts(self) -> NDArray[np.int32]:
        """For each node, the number of the part that it lies in. No path joins two parts.

        Diagonal neighbours are joined, as in the graph; its longer steps join nothing more.
        """
        parts, _ = label(self._free, structure=np.ones((3, 3)))
        return np.asarray(parts[self._free])

    @cached_property
    def _graph(self) -> csr_array:
        return _graph_of(self._free)

    def _entry(self, start: Array, root: int) -> int | None:
        """Return the node where a path from `start` to the node `root` begins: the nearest node.

        If that lies in a pocket with no exit, it is the nearest node that has one, provided that it
        is no further than the disc is wide and in plain sight.
        """
        node = self._nearest(start)
        if self._parts[node] == self._parts[root]:
            return node
        reachable = np.flatnonzero(self._parts == self._parts[root])
        node = int(reachable[np.argmin(((self.centres[reachable] - start) ** 2).sum(axis=1))])
        near = math.dist(start, self.centres[node]) <= 2 * self._radius_m
        return node if near and self._grid.line_is_free(start, self.centres[node], 0.0) else None

    def _taut(self, points: Array) -> Array:
        """Shorten a way as far as a string would when pulled at both ends."""
        points = self._pulled(points)
        for _ in range(2):  # of cutting corners and leaving out
            if len(points) > 2:
                points = self._pulled(self._cut(points))
        return points

    def _pulled(self, points: Array) -> Array:
        """Leave out the corners that straight lines can skip."""
        points = points[np.append(True, (np.diff(points, axis=0) != 0).any(axis=1))]
        kept, last = [0], len(points) - 1
        while kept[-1] < last:
            anchor = kept[-1]
            near, far = anchor + 1, last + 1  # in sight, or at least next; out of sight
            stride = 1
            while near < far - 1:
                probe = min(near + stride, (near + far) // 2 if far <= last else last)
                if self._grid.line_is_free(points[anchor], points[probe], self._radius_m):
                    near, stride = probe, 2 * stride
                else:
                    far = probe
            kept.append(near)
        return points[kept]

    def _cut(self, points: Array) -> Array:
        """Cut every corner by the longest free chord with equal legs."""
        corners = points[1:-1]
        backward, forward = points[:-2] - corners, points[2:] - corners
        lengths = np.linalg.norm([backward, forward], axis=-1)  # (2, corners)
        shares = np.minimum(lengths.min(axis=0), 1.0) / lengths
        legs = np.stack([backward, forward]) * shares[..., None]
        ends = corners + LEG_SHARES[:, None, None, None] * legs  # (shares, 2, corners, 2)
        free = self._grid.lines_are_free(ends[:, 0], ends[:, 1], self._radius_m)
        free[-1] = True  # a share of 0 leaves the corner as it is
        chosen = ends[free.argmax(axis=0), :, np.arange(len(corners))].reshape(-1, 2)
        return np.concatenate([points[:1], chosen, points[-1:]])


def _graph_of(free: NDArray[np.bool_]) -> csr_array:
    """Return the free cells, in row order, joined to those around them; lengths in cells."""
    rows, columns = free.shape
    number = np.full(free.shape, -1, dtype=np.int32)
    number[free] = np.arange(np.count_nonzero(free))
    padded = np.pad(number, 2, constant_values=-1)

    def shifted(dy: int, dx: int) -> NDArray[np.int32]:
        moved: NDArray[np.int32] = padded[2 + dy : 2 + dy + rows, 2 + dx : 2 + dx + columns][free]
        return moved

    targets = np.stack([shifted(dy, dx) for dy, dx in NEIGHBOURS], axis=1)
    for index, step in enumerate(NEIGHBOURS):
        for dy, dx in _crossed(*step):
            targets[shifted(dy, dx) < 0, index] = -1
    joined = targets >= 0
    lengths = np.broadcast_to(np.hypot(*np.transpose(NEIGHBOURS)), targets.shape)
    row_ends = np.concatenate([[0], np.cumsum(joined.sum(axis=1))])
    return csr_array((lengths[joined], targets[joined], row_ends), shape=(len(targets),) * 2)


def _crossed(dy: int, dx: int) -> set[tuple[int, int]]:
    """Return the cells on the way to a neighbour, without the ends."""
    longer = max(abs(dy), abs(dx))
    return {
        (round(dy * part + side), round(dx * part + side))
        for part in np.arange(1, longer) / longer
        for side in (-1e-6, 1e-6)
    }
