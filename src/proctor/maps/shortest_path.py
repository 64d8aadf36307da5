"""The shortest paths of a disc on a map, exactly: what episodes are scored by.

The free space is made of squares, 25 to a cell of the map (1 cm wide if cells have 5 cm). The disc's centre
may be in those squares where the clearance, interpolated between the centres of the map's cells, is more than
the disc's radius, and touch the others. No path through these squares is shorter than the one that is found.
Around obstacles of known shape it is within 0.3 % of what geometry says for the disc.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, label

from proctor.core.types import Array
from proctor.kernels.clearance import Mask, squares_with_room
from proctor.kernels.corner_tree import CornerTree, new_tree, path_length_to, path_lengths, path_to_root
from proctor.kernels.lines import line_is_free, nearest_centre
from proctor.kernels.taut import find_corners
from proctor.maps.free_space import in_free_cell

if TYPE_CHECKING:
    from proctor.maps.grid_map import GridMap

CACHED_GOALS = 4
PARTS = (5, 3, 1)
"""Into how many squares the side of a cell is divided: the first that does not make a huge map too large.
Odd, so that the centre of a cell is the centre of a square: where the disc gets from cell to cell, it gets
from square to square."""
MOST_SQUARES = 16_000_000


class PathFinder:
    """The shortest paths for one radius of disc. Remembers the paths to the last few goals."""

    def __init__(self, grid: GridMap, radius_m: float, *, parts: int | None = None) -> None:
        cells = grid.occupied.size
        parts = parts or next((n for n in PARTS if n * n * cells <= MOST_SQUARES), PARTS[-1])
        self._grid, self._radius_m = grid, radius_m
        self._square_m, self._origin = grid.resolution_m / parts, np.array(grid.origin_world)
        self._free = squares_with_room(grid.field, float(radius_m), parts)
        self._tree = lru_cache(maxsize=CACHED_GOALS)(self._new_tree)
        self._field = lru_cache(maxsize=CACHED_GOALS)(self._continued_field)
        self._lock = threading.Lock()  # of the trees, which grow when they are asked

    def sees(self, a: Array, b: Array) -> bool:
        """Tell whether the disc can go straight from a to b."""
        # A point with just enough room may be in a square whose centre has less.
        start, end = (in_free_cell(self._free, self._in_squares(point), reach=0.5) for point in (a, b))
        return start is not None and end is not None and line_is_free(self._free, *start, *end)

    def path(self, start: Array, goal: Array) -> Array | None:
        """Return the corners (N, 2) of the shortest path, ends included, or None if there is none.

        An end where the disc does not fit is joined straight to the nearest square where it does.
        """
        ends = self._joined(start, goal)
        if ends is None:
            return None
        first, last = ends
        tree = self._tree(*last)
        with self._lock:
            _, corner = path_length_to(self._free, self._corners, tree, *first)
        if corner < 0:
            return None
        inner = np.concatenate([[first], path_to_root(tree, corner)]) * self._square_m + self._origin
        points = np.concatenate([[start], inner, [goal]])
        moved = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6  # a point that was joined to itself
        moved[-1] |= not moved.any()
        kept: Array = points[np.append(True, moved)]
        kept[-1] = goal
        return kept

    def connects(self, start: Array, goal: Array) -> bool:
        """Tell whether there is a path, without searching the shortest."""
        return self._joined(start, goal) is not None

    def field(self, goal: Array) -> Array:
        """Return the distance of all squares from the goal; see `GridMap.rough_distances_m`."""
        last = self._nearest(self._in_squares(goal), self._free)
        if last is None:
            centres = np.moveaxis(np.indices(self._free.shape), 0, -1)[..., ::-1] + 0.5
            straight: Array = np.linalg.norm(centres * self._square_m + self._origin - goal, axis=-1)
            return straight
        return self._field(*last)

    def _continued_field(self, x: float, y: float) -> Array:
        with self._lock:
            field = path_lengths(self._free, self._corners, self._tree(x, y))
        offset, (row, column) = distance_transform_edt(np.isinf(field), return_indices=True)
        continued: Array = (field[row, column] + offset) * self._square_m
        return continued

    def _new_tree(self, x: float, y: float) -> CornerTree:
        root = np.array([[x, y], [np.inf, np.inf]])  # without another end
        return new_tree(np.concatenate([root, self._corner_points]), np.zeros(2 + len(self._corner_points)))

    @cached_property
    def _corners(self) -> NDArray[np.uint8]:
        rows, columns = self._free.shape
        corners = np.zeros((rows + 1, columns + 1), dtype=np.uint8)
        find_corners(self._free, 0, rows, 0, columns, corners)
        return corners

    @cached_property
    def _corner_points(self) -> Array:
        return np.argwhere(self._corners)[:, ::-1].astype(float)

    @cached_property
    def _regions(self) -> NDArray[np.unsignedinteger]:
        """For each square the number of the region that it lies in, or 0. No path joins two regions."""
        regions, count = label(self._free)
        smallest: NDArray[np.unsignedinteger] = regions.astype(np.min_scalar_type(count))
        return smallest

    def _in_squares(self, point: Array) -> Array:
        at: Array = (point - self._origin) / self._square_m
        return at

    def _region(self, point: tuple[float, float]) -> int:
        return int(self._regions[int(point[1]), int(point[0])])

    def _joined(self, start: Array, goal: Array) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return where the disc begins and ends, in squares; None if there is no path.

        That is at the nearest square where it fits. If the start's lies in a pocket with no exit, it is the
        nearest that has one, provided that it is no further than the disc is wide and in plain sight.
        """
        first, last = (self._nearest(self._in_squares(point), self._free) for point in (start, goal))
        if first is None or last is None:
            return None
        if self._region(first) != self._region(last):
            first = self._nearest(self._in_squares(start), self._regions == self._region(last)) or first
            exit_world = np.array(first) * self._square_m + self._origin
            if math.dist(start, exit_world) > 2 * self._radius_m:
                return None
            if not self._grid.line_is_free(start, exit_world, 0.0):
                return None
        return first, last

    def _nearest(self, at: Array, squares: Mask) -> tuple[float, float] | None:
        """Return a point if it is in one of some squares, else the centre of the nearest."""
        inside = in_free_cell(squares, at)
        x, y = nearest_centre(squares, *at) if inside is None else inside
        return None if math.isnan(x) else (float(x), float(y))
