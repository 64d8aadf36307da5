"""The floor of a scene as a grid: what is occupied, how much room there is, and the shortest paths.

Every cell that an obstacle reaches into is occupied, so the map never shows more room than there is. A disc
of radius r fits where the clearance is more than r.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.errors import UserError
from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearances, clearances_at
from proctor.maps.point_cloud import counts_as_occupied, floor_of_points, slice_above
from proctor.maps.shortest_path import PathFinder

Point = tuple[float, float]
PLANNING_RADIUS_M = 0.25  # ways are planned, and geodesic distances measured, for a disc of this radius
MARGIN_M = 0.5
LARGEST_CELLS = 4_000_000
LARGER_BY_M = 5.0  # in steps of which a map is enlarged for a robot that has left it


class GridMap:
    """Occupancy and clearance of a floor; at least 2 x 2 cells."""

    def __init__(
        self,
        occupied: NDArray[np.bool_],
        *,
        resolution_m: float = 0.05,
        origin_world: Point = (0.0, 0.0),
        ends: bool = False,
        outside: NDArray[np.bool_] | None = None,
        unknown: NDArray[np.bool_] | None = None,
    ) -> None:
        if np.ndim(occupied) != 2 or min(np.shape(occupied)) < 2 or not 0 < resolution_m < math.inf:
            raise UserError(f"expected at least 2 x 2 cells, found {np.shape(occupied)} of {resolution_m} m")
        self.occupied = occupied
        self.ends = ends
        self.outside = np.zeros_like(occupied) if outside is None else outside
        self.unknown = np.zeros_like(occupied) if unknown is None else unknown
        self.resolution_m = resolution_m
        self.origin_world = origin_world
        self.clearance_m = clearances(occupied, resolution_m)  # as `ClearanceField.cells`
        self._finders: dict[tuple[float, int | None], PathFinder] = {}
        self._larger: dict[tuple[float, ...], GridMap] = {}

    @property
    def field(self) -> ClearanceField:
        """The clearances as compiled functions take them."""
        return ClearanceField(self.clearance_m, self.resolution_m, *self.origin_world)

    @classmethod
    def from_point_cloud(
        cls,
        points: ArrayLike,
        *,
        resolution_m: float = 0.05,
        height_band_m: tuple[float, float] | None = None,
        floor_z: float = 0.0,
        unknown: Literal["free", "occupied"] = "free",
        min_points: int = 1,
        bounds_world: tuple[float, float, float, float] | None = None,
    ) -> GridMap:
        """Draw the map of a 3D point cloud (N, 3) in the world. Points that are not finite are left out.

        Only points in `height_band_m` above the floor (by default that of the standard base) are obstacles,
        and `min_points` of them occupy a cell. `unknown` is what cells without any point count as.
        `bounds_world` is the least x and y and the largest x and y of the map, by default of the points.
        """
        closed = counts_as_occupied(unknown)
        heights = slice_above(floor_z, height_band_m)
        floor = floor_of_points(points, resolution_m, heights, min_points=min_points, bounds=bounds_world)
        return cls(
            floor.occupied | floor.unknown if closed else floor.occupied,
            resolution_m=resolution_m,
            origin_world=floor.origin_world,
            ends=closed,
            unknown=floor.unknown,
        )

    def covering(self, *points: Point) -> GridMap:
        """Return this map, enlarged by empty floor if it does not reach some distance beyond these points.

        Points so far away that the map would become huge are left outside; so are all if the floor ends.
        """
        if self.ends:
            return self
        low, high = np.min(points, axis=0) - MARGIN_M, np.max(points, axis=0) + MARGIN_M
        rows, columns = self.occupied.shape
        size = np.array([columns, rows]) * self.resolution_m
        before = np.ceil(np.maximum(self.origin_world - low, 0) / self.resolution_m).astype(int)
        after = np.ceil(np.maximum(high - self.origin_world - size, 0) / self.resolution_m).astype(int)
        cells = float(columns + before[0] + after[0]) * float(rows + before[1] + after[1])
        if not (before.any() or after.any()) or cells > LARGEST_CELLS:
            return self
        origin = self.origin_world - before * self.resolution_m
        widths = [(before[1], after[1]), (before[0], after[0])]
        return GridMap(
            np.pad(self.occupied, widths),
            resolution_m=self.resolution_m,
            origin_world=(float(origin[0]), float(origin[1])),
            unknown=np.pad(self.unknown, widths),
        )

    def size_bytes(self) -> int:
        """Return how much memory it takes, without what it remembers of searches."""
        return sum(a.nbytes for a in (self.clearance_m, self.occupied, self.outside, self.unknown))

    def without_searches(self) -> GridMap:
        """Return this map without what it remembers of searches for paths."""
        bare = copy(self)
        bare._finders, bare._larger = {}, {}  # noqa: SLF001  (of this class)
        return bare

    def clearances(self, points: ArrayLike) -> Array:
        """Return the clearances of (..., 2) points, interpolated between cell centres.

        Beyond 0.1 m they are at most 3 mm more than the distance to the nearest occupied cell. Beyond the
        map they are those of its border.
        """
        return _interpolated(self.field, points)

    def clearance_at(self, x: float, y: float) -> float:
        """Return the distance from a point to the nearest obstacle, 0 or less where it is not free."""
        return float(self.clearances((x, y)))

    def line_is_free(self, a: ArrayLike, b: ArrayLike, radius_m: float) -> bool:
        """Tell whether a disc can go straight from a to b."""
        start, end = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        return self._finder(radius_m, start, end).sees(start, end)

    def place_beside(self, point: Point, radius_m: float, *, reach_m: float) -> Point | None:
        """Return the nearest place where a disc fits, on the same side of all walls; None if there is none.

        From inside of an object it is searched where the object ends next, from outside of a house only where
        no wall is between. That end must be within reach, and from there the place, in plain sight.
        """
        if self.clearance_at(*point) > radius_m:
            return point
        edge = point
        if self.clearance_at(*point) <= 0:
            edges = self._centres_near(point, ~self.occupied, reach_m)
            if not len(edges) or self._leaves_outside(point, edges[0]):
                return None
            edge = (float(edges[0][0]), float(edges[0][1]))
        places = self._centres_near(edge, self.clearance_m > radius_m, reach_m)
        in_sight = ((float(x), float(y)) for x, y in places if self.line_is_free(edge, (x, y), 0.0))
        return next(in_sight, None)

    def shortest_path(self, start_xy: ArrayLike, goal_xy: ArrayLike, *, radius_m: float) -> Array | None:
        """Return the corners (N, 2) of the shortest path for a disc, both ends included, or None.

        An end where the disc does not fit is joined straight to the nearest place where it does.
        """
        start, goal = np.asarray(start_xy, dtype=float), np.asarray(goal_xy, dtype=float)
        return self._finder(radius_m, start, goal).path(start, goal)

    def distance_m(self, start_xy: ArrayLike, goal_xy: ArrayLike, *, radius_m: float) -> float:
        """Return the length of the shortest path, infinite if there is none."""
        path = self.shortest_path(start_xy, goal_xy, radius_m=radius_m)
        if path is None:
            return math.inf
        return path_length(path)

    def connects(self, start_xy: ArrayLike, goal_xy: ArrayLike, *, radius_m: float) -> bool:
        """Tell whether there is a path, without searching the shortest."""
        start, goal = np.asarray(start_xy, dtype=float), np.asarray(goal_xy, dtype=float)
        return self._finder(radius_m, start, goal).connects(start, goal)

    def rough_distances_m(self, starts: ArrayLike, goal_xy: ArrayLike, *, radius_m: float) -> Array:
        """Return about how long the shortest paths from (..., 2) points are, quickly for many.

        They are those through whole cells, up to 1 % longer in a house. Where the disc does not fit or finds
        no path, they continue from the nearest cell where it does; if it fits nowhere at all, they are
        straight.
        """
        finder = self._finder(radius_m, parts=1)
        field = finder.field(np.asarray(goal_xy, dtype=float))
        return _interpolated(ClearanceField(field, self.resolution_m, *self.origin_world), starts)

    def _centres_near(self, point: Point, cells: NDArray[np.bool_], reach_m: float) -> Array:
        """Return the centres (N, 2) of those of some cells that are near a point, the nearest first."""
        at = (np.array(point) - self.origin_world) / self.resolution_m
        reach = reach_m / self.resolution_m
        first = np.clip(np.floor(at - reach), 0, None).astype(int)
        last = np.clip(np.ceil(at + reach), 0, None).astype(int)
        found = np.argwhere(cells[first[1] : last[1], first[0] : last[0]])[:, ::-1] + first + 0.5
        apart = np.linalg.norm(found - at, axis=1)
        order = np.argsort(apart, kind="stable")
        centres: Array = found[order[apart[order] <= reach]] * self.resolution_m + self.origin_world
        return centres

    def _leaves_outside(self, point: Point, end: Array) -> bool:
        """Tell whether a straight line begins outside of the house and leads through something."""
        probes = math.ceil(math.dist(point, end) / self.resolution_m * 4) + 1
        line = np.linspace(point, end, probes)
        columns, rows = ((line - self.origin_world) // self.resolution_m).astype(int).T
        inside_map = (rows >= 0) & (rows < len(self.occupied))
        inside_map &= (columns >= 0) & (columns < self.occupied.shape[1])
        outside, occupied = np.ones(probes, dtype=bool), np.ones(probes, dtype=bool)
        outside[inside_map] = self.outside[rows[inside_map], columns[inside_map]]
        occupied[inside_map] = self.occupied[rows[inside_map], columns[inside_map]]
        return bool(outside[0] and (occupied & ~outside).any())

    def _finder(self, radius_m: float, *points: Array, parts: int | None = None) -> PathFinder:
        """Return what finds paths, on a larger map if a point lies beyond this one."""
        if not all(self.field.covers(*point) for point in points):
            low, high = np.min(points, axis=0) // LARGER_BY_M, np.max(points, axis=0) // LARGER_BY_M + 1
            box = (*(LARGER_BY_M * low), *(LARGER_BY_M * high))
            if box not in self._larger:
                self._larger[box] = self.covering(box[:2], box[2:])
            if self._larger[box] is not self:
                return self._larger[box]._finder(radius_m, parts=parts)  # noqa: SLF001  (of this class)
        if (radius_m, parts) not in self._finders:
            self._finders[radius_m, parts] = PathFinder(self, radius_m, parts=parts)
        return self._finders[radius_m, parts]


def _interpolated(field: ClearanceField, points: ArrayLike) -> Array:
    """Interpolate values of cells between their centres, at (..., 2) points."""
    places = np.asarray(points, dtype=float)
    values: Array = clearances_at(field, np.ascontiguousarray(places.reshape(-1, 2)))
    return values.reshape(places.shape[:-1])
