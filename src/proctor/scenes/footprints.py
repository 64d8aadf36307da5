"""The footprints of solid objects on the floor: convex polygons, never smaller than the objects."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from proctor.core.array_cache import Arrays, cached_arrays
from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Array
from proctor.scenes.frames import Frame, frame_of, frame_of_part
from proctor.scenes.mesh_files import folder_of_scene
from proctor.scenes.meshes import convex_body, load_mesh_asset
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject, asset_file

CYLINDER_SIDES = 32
TOUCH_M = 1e-4  # what reaches less than this into the band leaves no shadow
BORDER = 1e-6  # less overlap with a cell than this, in cells or metres, is a shared border


class Footprint(NamedTuple):
    """A convex polygon: all points p with normals @ p <= offsets."""

    vertices: Array  # (N, 2)
    normals: Array  # (M, 2), unit, outwards
    offsets: Array  # (M,)


class Solid(NamedTuple):
    """A convex body by its vertices and edges."""

    vertices: Array  # (N, 3)
    edges: NDArray[np.int64]  # (M, 2)
    sides: Array | None = None  # of an upright box: the normals (4, 2) of its sides

    def placed(self, frame: Frame) -> Solid:
        """Return the body where its frame puts it."""
        return Solid(frame.points(self.vertices), self.edges)


def footprints_of_scene(
    scene: SceneConfig, scene_path: Path | None, *, height_band_m: tuple[float, float]
) -> list[Footprint]:
    """Return the footprint of every colliding solid in the height band; surface meshes are left out."""
    solids = [
        solid
        for index, item in enumerate(scene.objects)
        if item.rigid_body_type != "none" and item.collision != "surface"
        for solid in _solids_of_object(item, scene_path, f"objects[{index}].asset_path")
    ]
    footprints = (_footprint(solid, height_band_m) for solid in solids)
    return [footprint for footprint in footprints if footprint is not None]


def _solids_of_object(item: SceneObject, scene_path: Path | None, place: str) -> list[Solid]:
    """Return the solids of an object in the world frame."""
    frame = frame_of(item)
    if item.asset_path is None or item.parts:
        return [_solid_of_part(part, frame_of_part(part, frame)) for part in item.parts if part.collision]
    if scene_path is None:
        raise UserError(f"object '{item.name}' has a mesh: its scene's file must be given, too")
    try:
        asset = load_mesh_asset(asset_file(scene_path, item.asset_path), folder_of_scene(scene_path))
    except ValueError as error:
        raise InvalidFile(scene_path, str(error), place=place) from None
    return [_solid(convex_body(points * frame.size) / frame.size).placed(frame) for points in asset.pieces]


def _solid_of_part(part: Part, frame: Frame) -> Solid:
    solid = _unit_solid(part.shape).placed(frame)
    if part.shape == "box" and frame.rotation[2, 2] == 1:
        axes = frame.rotation[:2, :2].T
        return solid._replace(sides=np.concatenate([axes, -axes]))
    return solid


@cache
def _unit_solid(shape: str) -> Solid:
    """Return a shape of size 1 around the origin; the facets of round ones lie outside of them."""
    packages = ("numpy", "scipy", "trimesh")
    made = cached_arrays(f"solid-{shape}", lambda: _make_solid(shape), source=__file__, packages=packages)
    return Solid(**made)


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


def _solid(vertices: ArrayLike) -> Solid:
    points = np.asarray(vertices)
    triangles = ConvexHull(points).simplices
    return Solid(points, np.concatenate([triangles[:, [0, 1]], triangles[:, 1:], triangles[:, ::2]]))


def _footprint(solid: Solid, height_band_m: tuple[float, float]) -> Footprint | None:
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
