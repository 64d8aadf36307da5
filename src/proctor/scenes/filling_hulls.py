"""Meshes whose convex hull fills a room: walls as one mesh, which collide as if they were solid."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from proctor.core.types import Array
from proctor.scenes.frames import frame_of
from proctor.scenes.mesh_files import folder_of_scene
from proctor.scenes.meshes import load_mesh_asset
from proctor.scenes.scene_config import SceneConfig, SceneObject, asset_file
from proctor.scenes.surface_grid import SMALLEST_AREA_M2, cut

REMEDY = (
    'give it "collision": "surface" in the scene file, and the mesh of the floor as well, so that they '
    "collide as their triangles"
)


def filling_hulls(
    scene: SceneConfig,
    scene_path: Path | None,
    xy: tuple[float, float],
    *,
    radius_m: float,
    band_m: tuple[float, float],
) -> list[str]:
    """Return the names of the objects that block a free place only by their convex hulls.

    Args:
        scene: The scene.
        scene_path: Its file.
        xy: The place.
        radius_m: Of the robot, which must not touch the triangles there.
        band_m: The heights between which it would.

    Raises:
        ValueError: A mesh is broken.
        InvalidFile: A mesh lies outside of the scene's folder.
    """
    names = []
    for item in scene.objects if scene_path is not None else ():
        collides_as_hulls = item.collision == "hull" and item.rigid_body_type != "none"
        if item.asset_path is None or item.parts or not collides_as_hulls:
            continue
        triangles = _triangles(item, Path(str(scene_path)))
        low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
        is_room = (high - low)[:2].prod() >= SMALLEST_AREA_M2 and ((low[:2] < xy) & (xy < high[:2])).all()
        is_in_the_way = low[2] < band_m[1] and high[2] > band_m[0]  # unlike a floor or a ceiling
        if not (is_room and is_in_the_way):
            continue
        if _distance_m(cut(triangles, 2, *band_m)[..., :2], np.array(xy)) > radius_m:
            names.append(item.name)
    return names


def _triangles(item: SceneObject, scene_path: Path) -> Array:
    """Return the corners (N, 3, 3) of an object's triangles in the world."""
    asset = load_mesh_asset(asset_file(scene_path, str(item.asset_path)), folder_of_scene(scene_path))
    corners = np.concatenate([surface.vertices[surface.faces] for surface in asset.surfaces])
    return frame_of(item).points(corners)


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
