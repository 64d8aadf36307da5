"""The map of a scene: what a robot can bump into, on one of its floors."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from proctor.core.errors import UserError
from proctor.core.sized_cache import sized_cache
from proctor.core.types import Vector3
from proctor.maps.grid_map import BAND_M, LARGEST_CELLS, MARGIN_M, GridMap
from proctor.scenes.footprints import BORDER, draw, footprints_of_scene
from proctor.scenes.mesh_house import MeshHouse, house_of
from proctor.scenes.scene_config import SceneConfig, load_scene, scene_version
from proctor.scenes.surface_grid import CELL_M, MAP_CELLS, touching_border


def map_of_scene(path: Path, at: Vector3 | float | None = None) -> GridMap:
    """Return the cached map of a scene or mesh file, for the floor at a point or height, or the lowest."""
    return map_of_floor(path, floor_of_scene(path, at))


def map_of_floor(path: Path, floor_z: float) -> GridMap:
    """Return the map of a scene file for a height that `floor_of_scene` returned."""
    return _map_of_version(path, scene_version(path), floor_z)


def floor_of_scene(path: Path, at: Vector3 | float | None = None) -> float:
    """Return the height of the floor that a point or a height lies on: 0, unless the scene is a mesh."""
    house = house_of_scene(path)
    return 0.0 if house is None else house.floor_near(at)


def house_of_scene(path: Path) -> MeshHouse | None:
    """Return the house of a scene that is a mesh, made once for each version of the file."""
    return house_of(load_scene(path), path, BAND_M)


def draw_map(
    scene: SceneConfig,
    scene_path: Path | None = None,
    *,
    resolution_m: float = 0.05,
    height_band_m: tuple[float, float] = BAND_M,
    floor_z: float | None = None,
) -> GridMap:
    """Draw the map of all that a robot can bump into.

    `scene_path` is needed if the scene has mesh assets. Only what reaches into `height_band_m` above the
    floor is an obstacle. A house that is a mesh always has cells of 0.05 m; `floor_z` chooses one of its
    floors, the lowest if missing. Raises UserError if the scene is too large for a map.
    """
    house = house_of(scene, scene_path, height_band_m)
    if house is not None:
        floor_z = house.floors_z[0] if floor_z is None else floor_z
        return _map_of_house(house, floor_z, scene, scene_path, height_band_m)
    footprints = footprints_of_scene(scene, scene_path, height_band_m=height_band_m)
    corners = np.concatenate([shape.vertices for shape in footprints] or [np.zeros((1, 2))])
    # Whole cells from the world's origin, so that walls on round numbers fill whole cells.
    low = np.floor((corners.min(axis=0) - MARGIN_M) / resolution_m + BORDER)
    high = np.ceil((corners.max(axis=0) + MARGIN_M) / resolution_m - BORDER)
    if (high - low).prod() > LARGEST_CELLS:
        width_m, depth_m = np.ptp(corners, axis=0)
        size = f"{width_m:.0f} m x {depth_m:.0f} m"
        raise UserError(f"the objects of '{scene.scene_name}' reach over {size}, too much for a map")
    columns, rows = (high - low).astype(int)
    origin = low * resolution_m
    occupied = np.zeros((rows, columns), dtype=bool)
    for shape in footprints:
        draw(shape, occupied, resolution_m, origin)
    return GridMap(occupied, resolution_m=resolution_m, origin_world=(float(origin[0]), float(origin[1])))


def _map_of_house(
    house: MeshHouse,
    floor_z: float,
    scene: SceneConfig,
    scene_path: Path | None,
    height_band_m: tuple[float, float],
) -> GridMap:
    """Draw the map of one floor: the house itself and the other objects in it."""
    grid = house.grid(floor_z)
    if grid is None:
        return GridMap(np.ones((2, 2), dtype=bool), ends=True)
    resolution_m = CELL_M * MAP_CELLS
    rows, columns = (cells // MAP_CELLS for cells in grid.blocked.shape)
    cells = grid.blocked.reshape(rows, MAP_CELLS, columns, MAP_CELLS)
    occupied = np.asarray(cells.any(axis=(1, 3)))
    empty = ~grid.obstacle.reshape(cells.shape).any(axis=(1, 3)) & occupied
    band_world = (floor_z + height_band_m[0], floor_z + height_band_m[1])
    for shape in footprints_of_scene(scene, scene_path, height_band_m=band_world):
        draw(shape, occupied, resolution_m, np.array(grid.origin_world))
    origin, outside = grid.origin_world, touching_border(empty)
    return GridMap(occupied, resolution_m=resolution_m, origin_world=origin, ends=True, outside=outside)


@lru_cache(maxsize=8)  # with its search graphs, the map of a house takes ten times the memory
def _map_of_version(path: Path, version: int, floor_z: float) -> GridMap:
    return _drawn_map_of_version(path, version, floor_z).without_searches()


@sized_cache(2**26, GridMap.size_bytes)  # some 90 houses: a run draws all, and later needs one at a time
def _drawn_map_of_version(path: Path, version: int, floor_z: float) -> GridMap:
    del version  # only there to tell versions apart
    return draw_map(load_scene(path), path, floor_z=floor_z)
