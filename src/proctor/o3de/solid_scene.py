"""A scene whose meshes collide as boxes, which both O3DE and MuJoCo build."""

from __future__ import annotations

import msgspec
import numpy as np

from proctor.core.types import Array, Vector3
from proctor.scenes.meshes import FLAT_M
from proctor.scenes.scene import Scene, collides_as_hulls
from proctor.scenes.scene_config import SMALLEST_M, Part, SceneObject


def shown_scene(scene: Scene) -> Scene:
    """Return a scene whose objects have one mesh each, the one that is seen: the engine knows no other."""
    return scene.with_objects([_shown(item) for item in scene.objects])


def _shown(item: SceneObject) -> SceneObject:
    if item.collision_asset_path is None:
        return item
    seen = item.asset_path or item.collision_asset_path
    return msgspec.structs.replace(item, collision_asset_path=None, asset_path=seen)


def solid_scene(scene: Scene) -> Scene:
    """Return a scene whose meshes collide as boxes around their pieces: the engine has no hulls.

    Objects that have parts, and houses that collide as their surface, keep what they collide as.
    """
    return scene.with_objects(
        [
            msgspec.structs.replace(_shown(item), parts=_parts(item, scene))
            if collides_as_hulls(item)
            else _shown(item)
            for item in scene.objects
        ]
    )


def _parts(item: SceneObject, scene: Scene) -> list[Part]:
    """Return boxes around the pieces of a mesh."""
    thinnest = np.maximum(FLAT_M / item.scale.array(), SMALLEST_M)
    return [_box(points, thinnest) for points in scene.solid_mesh(item).asset.pieces]


def _box(points: Array, thinnest: Array) -> Part:
    low, high = points.min(axis=0), points.max(axis=0)
    return Part(
        shape="box",
        size=Vector3(*np.maximum(high - low, thinnest).tolist()),
        translate=Vector3(*((low + high) / 2).tolist()),
    )
