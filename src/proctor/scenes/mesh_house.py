"""A house that is a mesh: its triangles, its floors, and what blocks a robot on each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array, Vector3
from proctor.scenes.frames import frame_of
from proctor.scenes.meshes import Surface
from proctor.scenes.surface_grid import (
    CELL_M,
    FLOOR_TOLERANCE_M,
    SMALLEST_AREA_M2,
    FloorGrid,
    cut,
    draw_floor,
    draw_owners,
)

if TYPE_CHECKING:
    from proctor.scenes.scene import Scene

LEVEL = 0.95
BIN_M = 0.05
SAME_FLOOR_M = 0.3
"""Heights that differ by less belong to one floor."""
SMALLEST_FLOOR_M2 = 1.0
WALL_M, ROOF_M = 1.5, 1.0
"""If a house has walls of this height, what lies this close below its top is its roof."""
LARGEST_M = 10_000.0
"""In any direction: what is larger holds stray triangles, or has the wrong unit."""
TILE_M, OVERLAP_M = 2.0, 1e-5
REMEDY = (
    'give it "collision": "surface" in the scene file, and the mesh of the floor as well, so that they '
    "collide as their triangles"
)


class MeshHouse:
    """The triangles (N, 3, 3) of a scene that is a mesh, by object, and what a robot can do on its floors.

    What reaches into the height band above a floor blocks the robot. Raises a ValueError if there is no
    floor, or if it is too large for a map.
    """

    def __init__(self, meshes: Mapping[str, Array], height_band_m: tuple[float, float]) -> None:
        triangles = np.concatenate(list(meshes.values()))
        if not len(triangles):
            raise ValueError("the mesh holds no triangles with an area")
        size_m = np.ptp(triangles.reshape(-1, 3), axis=0)
        size = " m x ".join(f"{extent_m:.2f}" for extent_m in size_m)
        if size_m.max() > LARGEST_M:
            raise ValueError(f"expected a house of at most {LARGEST_M:.0f} m, found {size} m")
        self._triangles = triangles
        ends = np.cumsum([len(corners) for corners in meshes.values()])
        self._meshes = np.split(triangles, ends[:-1])  # which copies nothing
        self.names = list(meshes)
        """Of the objects that it is made of."""
        self._band_m = height_band_m
        self._grids: dict[float, FloorGrid | None] = {}
        self._owners: dict[float, NDArray[np.int32]] = {}
        self.lowest_z = float(triangles[..., 2].min())
        self.floors_z = self._find_floors()
        """The heights of its floors, the lowest first."""
        if not self.floors_z:
            problem = f"no floor: in {size} m nothing level has room for a robot to stand on"
            raise ValueError(f'{problem}; the mesh of the floor needs "collision": "surface", too')

    def size_bytes(self) -> int:
        """Return how much memory it takes, which is mostly that of its triangles."""
        return self._triangles.nbytes

    def floor_near(self, at: Vector3 | float | None) -> float:
        """Return the height of the floor that a point or a height lies on. None means the lowest floor.

        That is the nearest floor. Where a point is not free on it, as on a landing, in a lower room or on a
        slope, it is what level surface is right below the point, and failing that its own height.
        """
        if at is None:
            return self.floors_z[0]
        z = at.z if isinstance(at, Vector3) else at
        nearest = min(self.floors_z, key=lambda floor_z: abs(floor_z - z))
        is_near = abs(nearest - z) <= SAME_FLOOR_M
        if isinstance(at, Vector3) and (not is_near or self.is_blocked(at.x, at.y, nearest)):
            own = self._level_below(at)
            if own is not None:
                nearest = min(self.floors_z, key=lambda floor_z: abs(floor_z - own))
                return nearest if abs(nearest - own) <= FLOOR_TOLERANCE_M else round(own, 2)
        return nearest if is_near else round(z, 2)

    def _level_below(self, point: Vector3) -> float | None:
        """Return the height of the highest level surface at a point and not far below it."""
        low, high = self._triangles[..., :2].min(axis=1), self._triangles[..., :2].max(axis=1)
        at = np.array([point.x, point.y])
        a, b, c = self._triangles[((low <= at) & (at <= high)).all(axis=1)].transpose(1, 0, 2)
        across = np.cross(b - a, c - a)
        level = np.abs(across[:, 2]) > LEVEL * np.linalg.norm(across, axis=1)
        a, b, c, doubled = a[level], b[level], c[level], across[level, 2]
        (ab_x, ab_y, _), (ac_x, ac_y, _), (x, y) = (b - a).T, (c - a).T, (at - a[:, :2]).T
        share_b, share_c = (x * ac_y - y * ac_x) / doubled, (ab_x * y - ab_y * x) / doubled
        inside = (share_b >= 0) & (share_c >= 0) & (share_b + share_c <= 1)
        heights = (a + share_b[:, None] * (b - a) + share_c[:, None] * (c - a))[inside, 2]
        near = heights[(heights <= point.z + FLOOR_TOLERANCE_M) & (heights >= point.z - SAME_FLOOR_M)]
        return float(near.max()) if len(near) else None

    def grid(self, floor_z: float) -> FloorGrid | None:
        """Return the cells of a floor, None if there is no floor at this height."""
        if floor_z not in self._grids:
            self._grids[floor_z] = draw_floor(self._triangles, floor_z, self._band_m)
        return self._grids[floor_z]

    def owners(self, floor_z: float) -> NDArray[np.int32] | None:
        """Return to which of its objects each obstacle cell of a floor belongs, None if there is only one."""
        grid = self.grid(floor_z)
        if grid is None or len(self._meshes) == 1:
            return None
        if floor_z not in self._owners:
            self._owners[floor_z] = draw_owners(self._meshes, grid, floor_z, self._band_m)
        return self._owners[floor_z]

    def object_at(self, x: float, y: float, floor_z: float) -> str:
        """Return the name of the object that an obstacle cell belongs to."""
        owners, grid = self.owners(floor_z), self.grid(floor_z)
        cell = grid.cell_at(x, y) if grid is not None else None
        return self.names[int(owners[cell]) if owners is not None and cell is not None else 0]

    def has_floor(self, x: float, y: float, floor_z: float) -> bool:
        """Tell whether there is floor at a place."""
        grid = self.grid(floor_z)
        cell = grid.cell_at(x, y) if grid is not None else None
        return grid is not None and cell is not None and not bool(grid.void[cell])

    def is_blocked(self, x: float, y: float, floor_z: float) -> bool:
        """Tell whether a place is inside of something, or without a floor."""
        grid = self.grid(floor_z)
        cell = grid.cell_at(x, y) if grid is not None else None
        return grid is None or cell is None or bool(grid.blocked[cell])

    def slices(self, low_z: float, high_z: float) -> list[Surface]:
        """Return the triangles between two heights, in pieces of at most TILE_M a side."""
        tiles = [cut(self._triangles, 2, low_z, high_z)]
        for axis in (0, 1):
            tiles = [part for tile in tiles if len(tile) for part in _split(tile, axis)]
        return [_bare_surface(tile) for tile in tiles if len(tile)]

    def described_floors(self) -> str:
        """Return the heights of the floors in words."""
        heights = [f"{round(floor_z, 2) + 0.0:.2f} m" for floor_z in self.floors_z]  # never -0.00
        return " and ".join(filter(None, [", ".join(heights[:-1]), heights[-1]]))

    def _find_floors(self) -> list[float]:
        a, b, c = self._triangles.transpose(1, 0, 2)
        across = np.cross(b - a, c - a) / 2
        areas = np.linalg.norm(across, axis=1)
        heights = self._triangles[..., 2].mean(axis=1)
        top_z = float(self._triangles[..., 2].max())
        if top_z - self.lowest_z > WALL_M:
            areas = np.where(heights > top_z - ROOF_M, 0.0, areas)
        for side in (across[:, 2], -across[:, 2]):  # the second in case that the mesh is inside out
            level = (side > LEVEL * areas) & (areas > 0)
            found = self._levels(heights[level], areas[level])
            floors = [floor_z for floor_z in found if self._has_room(floor_z)]
            if floors:
                return sorted(floors)
        return []

    @staticmethod
    def _levels(heights: Array, areas: Array) -> list[float]:
        levels: list[float] = []
        largest = 0.0
        while len(levels) < 20 and areas.sum() >= SMALLEST_FLOOR_M2:
            bins = ((heights - heights.min()) / BIN_M).astype(int)
            fullest = np.convolve(np.bincount(bins, areas), np.ones(3), mode="same").argmax()
            near = np.abs(bins - fullest) <= 1
            area = float(areas[near].sum())
            largest = max(largest, area)
            if area < max(SMALLEST_FLOOR_M2, 0.15 * largest):  # less is a table
                break
            # The median of the area, so that rugs do not lift the floor.
            order = np.argsort(heights[near])
            middle = np.searchsorted(np.cumsum(areas[near][order]), area / 2)
            levels.append(round(float(heights[near][order][middle]), 3))
            rest = np.abs(heights - levels[-1]) > SAME_FLOOR_M
            heights, areas = heights[rest], areas[rest]
        return levels

    def _has_room(self, floor_z: float) -> bool:
        grid = self.grid(floor_z)
        return grid is not None and (~grid.blocked).sum() * CELL_M**2 >= SMALLEST_FLOOR_M2


def _bare_surface(triangles: Array) -> Surface:
    """Return triangles as a surface that nobody looks at."""
    count = 3 * len(triangles)
    up, faces = np.tile([0.0, 0.0, 1.0], (count, 1)), np.arange(count).reshape(-1, 3)
    return Surface(triangles.reshape(-1, 3), up, np.zeros((count, 2)), faces, (1.0, 1.0, 1.0, 1.0), None)


def _split(triangles: Array, axis: int) -> list[Array]:
    places = triangles[..., axis]
    first, last = int(places.min() // TILE_M), int(places.max() // TILE_M)
    borders = np.arange(first, last + 2) * TILE_M
    # What lies on a border belongs to both sides, not to none.
    return [
        cut(triangles, axis, low - OVERLAP_M, high + OVERLAP_M) for low, high in itertools.pairwise(borders)
    ]


def filling_hulls(
    scene: Scene, xy: tuple[float, float], *, radius_m: float, band_m: tuple[float, float]
) -> list[str]:
    """Return the names of the objects that block a free place only by their convex hulls.

    A robot of this radius must not touch the triangles between the heights `band_m`.
    """
    names = []
    for item in scene.objects:
        if item.solid_mesh_path is None or item.collision != "hull":
            continue
        surfaces = scene.solid_mesh(item).asset.surfaces
        corners = np.concatenate([surface.vertices[surface.faces] for surface in surfaces])
        triangles = frame_of(item).points(corners)
        low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
        is_room = (high - low)[:2].prod() >= SMALLEST_AREA_M2 and ((low[:2] < xy) & (xy < high[:2])).all()
        is_in_the_way = low[2] < band_m[1] and high[2] > band_m[0]  # unlike a floor or a ceiling
        if not (is_room and is_in_the_way):
            continue
        if _distance_m(cut(triangles, 2, *band_m)[..., :2], np.array(xy)) > radius_m:
            names.append(item.name)
    return names


def _distance_m(triangles: Array, point: Array) -> float:
    """Return the distance of a point from flat triangles (N, 3, 2), 0 inside of one."""
    if not len(triangles):
        return float("inf")
    ends = np.roll(triangles, -1, axis=1)
    along, to_point = ends - triangles, point - triangles
    across = along[..., 0] * to_point[..., 1] - along[..., 1] * to_point[..., 0]
    area = np.abs(along[:, 0, 0] * along[:, 2, 1] - along[:, 0, 1] * along[:, 2, 0])
    if (((across >= 0).all(axis=1) | (across <= 0).all(axis=1)) & (area > 0)).any():
        return 0.0
    length2 = np.maximum((along**2).sum(axis=-1), 1e-30)
    share = np.clip((along * to_point).sum(axis=-1) / length2, 0.0, 1.0)
    return float(np.linalg.norm(to_point - share[..., None] * along, axis=-1).min())
