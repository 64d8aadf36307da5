"""The map of a scene, of the footprints of all that a robot can bump into on a floor; and a map as a scene.

Footprints are convex polygons on the floor, never smaller than the objects.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import binary_dilation, label
from scipy.spatial import ConvexHull

from proctor.core.array_cache import Arrays, cached_arrays
from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Array, Vector3
from proctor.maps.grid_map import LARGEST_CELLS, MARGIN_M, GridMap, Point
from proctor.scenes.frames import Frame, frame_of, placed_parts
from proctor.scenes.mesh_house import MeshHouse
from proctor.scenes.meshes import convex_body
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject
from proctor.scenes.surface_grid import CELL_M, MAP_CELLS, touching_border

if TYPE_CHECKING:
    from proctor.scenes.scene import Scene

MAP_CELL_M = CELL_M * MAP_CELLS
CYLINDER_SIDES = 32
TOUCH_M = 1e-4  # what reaches less than this into the band leaves no shadow
BORDER = 1e-6  # less overlap with a cell than this, in cells or metres, is a shared border


def draw_map(scene: Scene, floor_z: float, height_band_m: tuple[float, float]) -> GridMap:
    """Draw the map of all that a robot can bump into; see `Scene.map`."""
    house = scene.house(height_band_m)
    if house is not None:
        return _map_of_house(house, floor_z, scene, height_band_m)
    footprints = footprints_of_scene(scene, height_band_m)
    corners = np.concatenate([shape.vertices for shape in footprints] or [np.zeros((1, 2))])
    # Whole cells from the world's origin, so that walls on round numbers fill whole cells.
    low = np.floor((corners.min(axis=0) - MARGIN_M) / MAP_CELL_M + BORDER)
    high = np.ceil((corners.max(axis=0) + MARGIN_M) / MAP_CELL_M - BORDER)
    if (high - low).prod() > LARGEST_CELLS:
        width_m, depth_m = np.ptp(corners, axis=0)
        problem = f"its objects reach over {width_m:.0f} m x {depth_m:.0f} m, too much for a map"
        raise InvalidFile(str(scene.file or scene.config.scene_name), problem)
    columns, rows = (high - low).astype(int)
    origin = low * MAP_CELL_M
    occupied = np.zeros((rows, columns), dtype=bool)
    for shape in footprints:
        draw(shape, occupied, MAP_CELL_M, origin)
    return GridMap(occupied, resolution_m=MAP_CELL_M, origin_world=(float(origin[0]), float(origin[1])))


def _map_of_house(
    house: MeshHouse, floor_z: float, scene: Scene, height_band_m: tuple[float, float]
) -> GridMap:
    """Draw the map of one floor: the house itself and the other objects in it."""
    grid = house.grid(floor_z)
    if grid is None:
        return GridMap(np.ones((2, 2), dtype=bool), ends=True)
    rows, columns = (cells // MAP_CELLS for cells in grid.blocked.shape)
    cells = grid.blocked.reshape(rows, MAP_CELLS, columns, MAP_CELLS)
    occupied = np.asarray(cells.any(axis=(1, 3)))
    empty = ~grid.obstacle.reshape(cells.shape).any(axis=(1, 3)) & occupied
    band_world = (floor_z + height_band_m[0], floor_z + height_band_m[1])
    for shape in footprints_of_scene(scene, band_world):
        draw(shape, occupied, MAP_CELL_M, np.array(grid.origin_world))
    origin, outside = grid.origin_world, touching_border(empty)
    return GridMap(occupied, resolution_m=MAP_CELL_M, origin_world=origin, ends=True, outside=outside)


class Footprint(NamedTuple):
    """A convex polygon: all points p with normals @ p <= offsets."""

    vertices: Array  # (N, 2)
    normals: Array  # (M, 2), unit, outwards
    offsets: Array  # (M,)


class ConvexBody(NamedTuple):
    """A convex body by its vertices and edges."""

    vertices: Array  # (N, 3)
    edges: NDArray[np.int64]  # (M, 2)
    sides: Array | None = None  # of an upright box: the normals (4, 2) of its sides

    def placed(self, frame: Frame) -> ConvexBody:
        """Return the body where its frame puts it."""
        return ConvexBody(frame.points(self.vertices), self.edges)


def footprints_of_scene(scene: Scene, height_band_m: tuple[float, float]) -> list[Footprint]:
    """Return the footprint of every colliding solid in the height band; surface meshes are left out."""
    solids = [
        solid
        for item in scene.objects
        if item.rigid_body_type != "none" and item.collision != "surface"
        for solid in _solids_of_object(item, scene)
    ]
    footprints = (_footprint(solid, height_band_m) for solid in solids)
    return [footprint for footprint in footprints if footprint is not None]


def _solids_of_object(item: SceneObject, scene: Scene) -> list[ConvexBody]:
    if item.solid_mesh_path is None:
        return [_solid_of_part(part, frame) for part, frame in placed_parts(item) if part.collision]
    frame, pieces = frame_of(item), scene.solid_mesh(item).asset.pieces
    return [_solid(convex_body(points * frame.size) / frame.size).placed(frame) for points in pieces]


def draw_hull(
    points: Array,
    height_band_m: tuple[float, float],
    occupied: NDArray[np.bool_],
    resolution_m: float,
    origin: Array,
) -> None:
    """Occupy the cells that the convex hull of points (N, 3) in the world overlaps in the height band."""
    shape = _footprint(_solid(convex_body(points)), height_band_m)
    if shape is not None:
        draw(shape, occupied, resolution_m, origin)


def _solid_of_part(part: Part, frame: Frame) -> ConvexBody:
    solid = _unit_solid(part.shape).placed(frame)
    if part.shape == "box" and frame.rotation[2, 2] == 1:
        axes = frame.rotation[:2, :2].T
        return solid._replace(sides=np.concatenate([axes, -axes]))
    return solid


@cache
def _unit_solid(shape: str) -> ConvexBody:
    """Return a shape of size 1 around the origin; the facets of round ones lie outside of them."""
    packages = ("numpy", "scipy", "trimesh")
    made = cached_arrays(f"solid-{shape}", lambda: _make_solid(shape), source=__file__, packages=packages)
    return ConvexBody(**made)


def _make_solid(shape: str) -> Arrays:
    from trimesh import creation  # noqa: PLC0415  (takes 0.2 s, and not needed to read a solid from the cache)

    if shape == "box":
        vertices = creation.box().vertices
    elif shape == "cylinder":
        radius = 0.5 / math.cos(math.pi / CYLINDER_SIDES)
        vertices = creation.cylinder(radius, 1.0, sections=CYLINDER_SIDES).vertices
    else:
        sphere = creation.icosphere(subdivisions=3)
        vertices = sphere.vertices * 0.5 / np.linalg.norm(sphere.triangles_center, axis=1).min()
    solid = _solid(np.array(vertices))
    return {"vertices": solid.vertices, "edges": solid.edges}


def _solid(vertices: ArrayLike) -> ConvexBody:
    points = np.asarray(vertices)
    triangles = ConvexHull(points).simplices
    return ConvexBody(points, np.concatenate([triangles[:, [0, 1]], triangles[:, 1:], triangles[:, ::2]]))


def _footprint(solid: ConvexBody, height_band_m: tuple[float, float]) -> Footprint | None:
    """Cut a solid to the height band and project what is left."""
    low_m, high_m = height_band_m
    height = solid.vertices[:, 2]
    if height.max() < low_m + TOUCH_M or height.min() > high_m - TOUCH_M:
        return None
    if solid.sides is not None:  # nearly all solids of a house: 5 times faster than to cut and hull them
        corners = solid.vertices[:, :2]
        return Footprint(corners, solid.sides, (corners @ solid.sides.T).max(axis=0))
    first, second = solid.vertices[solid.edges[:, 0]], solid.vertices[solid.edges[:, 1]]
    points = [solid.vertices[(height >= low_m) & (height <= high_m)]]
    for plane_m in height_band_m:
        crosses = (first[:, 2] - plane_m) * (second[:, 2] - plane_m) < 0
        a, b = first[crosses], second[crosses]
        points.append(a + (b - a) * ((plane_m - a[:, 2]) / (b[:, 2] - a[:, 2]))[:, None])
    flat = np.concatenate(points)[:, :2]
    hull = ConvexHull(flat)
    return Footprint(flat[hull.vertices], hull.equations[:, :2], -hull.equations[:, 2])


def draw(shape: Footprint, occupied: NDArray[np.bool_], resolution_m: float, origin: Array) -> None:
    """Occupy every cell that a convex polygon overlaps, by the separating axis theorem."""
    low = np.floor((shape.vertices.min(axis=0) - origin) / resolution_m + BORDER).astype(int)
    high = np.ceil((shape.vertices.max(axis=0) - origin) / resolution_m - BORDER).astype(int)
    low, high = low.clip(0, occupied.shape[::-1]), high.clip(0, occupied.shape[::-1])
    centres = np.empty((*(high - low)[::-1].clip(0), 2))
    centres[..., 0], centres[..., 1] = np.arange(low[0], high[0]), np.arange(low[1], high[1])[:, None]
    centres_world = (centres + 0.5) * resolution_m + origin
    nearest_corner = np.abs(shape.normals).sum(axis=1) * resolution_m / 2
    outside_m = centres_world @ shape.normals.T - shape.offsets - nearest_corner
    occupied[low[1] : high[1], low[0] : high[0]] |= (outside_m < -BORDER).all(axis=-1)


WALL_HEIGHT_M = 2.0
MAX_BOXES = 20_000  # a mapped 30 m x 50 m warehouse has 2,700; the world is then built in two seconds


def scene_of_map(grid: GridMap, name: str, start: Point) -> SceneConfig:
    """Return a scene with boxes in place of the occupied cells around the floor that a start lies on.

    Cells that no robot at the start could ever touch or see are left out. Raises UserError if the map is
    so noisy that the scene would be too large.
    """
    boxes = _boxes(grid.occupied, _around_floor(grid, start))
    if len(boxes) > MAX_BOXES:
        raise UserError(
            f"{name}: too noisy to drive on: {len(boxes)} boxes of walls, expected at most {MAX_BOXES}"
        )
    cell_m = grid.resolution_m
    parts = [
        Part(
            shape="box",
            size=Vector3((right - left) * cell_m, (top - bottom) * cell_m, WALL_HEIGHT_M),
            translate=Vector3((left + right) / 2 * cell_m, (bottom + top) / 2 * cell_m, WALL_HEIGHT_M / 2),
        )
        for left, bottom, right, top in boxes.tolist()
    ]
    if not parts:
        return SceneConfig(scene_name=name, objects=[])
    x, y = grid.origin_world
    walls = SceneObject(name="the map's walls", translate=Vector3(x, y, 0.0), parts=parts)
    return SceneConfig(scene_name=name, objects=[walls])


def _around_floor(grid: GridMap, start: Point) -> NDArray[np.bool_]:
    """Return the occupied cells beside the floor that a place lies on, or beside any if it lies on none."""
    parts, _ = label(~grid.occupied, structure=np.ones((3, 3)))
    column, row = ((np.array(start) - grid.origin_world) // grid.resolution_m).astype(int)
    inside = 0 <= row < parts.shape[0] and 0 <= column < parts.shape[1]
    part = parts[row, column] if inside else 0
    floor = parts == part if part else ~grid.occupied
    return np.asarray(grid.occupied & binary_dilation(floor, np.ones((3, 3))))


def _boxes(occupied: NDArray[np.bool_], needed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Cover the needed ones of the occupied cells by boxes: (N, 4) left, bottom, right and top, in cells.

    Runs of occupied cells in successive rows that are equally long and in the same columns make one box.
    """
    edges = np.diff(np.pad(occupied, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, lefts = np.nonzero(edges > 0)
    rights = np.nonzero(edges < 0)[1]
    counts = np.pad(np.cumsum(needed, axis=1), ((0, 0), (1, 0)))
    is_needed = counts[rows, rights] > counts[rows, lefts]
    rows, lefts, rights = rows[is_needed], lefts[is_needed], rights[is_needed]
    order = np.lexsort((rows, rights, lefts))
    rows, lefts, rights = rows[order], lefts[order], rights[order]
    goes_on = (np.diff(rows) == 1) & (np.diff(lefts) == 0) & (np.diff(rights) == 0)
    firsts = np.flatnonzero(np.concatenate([[True], ~goes_on])) if len(rows) else np.empty(0, np.int64)
    lasts = np.append(firsts[1:], len(rows)) - 1 if len(rows) else firsts
    return np.stack([lefts[firsts], rows[firsts], rights[firsts], rows[lasts] + 1], axis=1)
