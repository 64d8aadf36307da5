"""A scene whose meshes collide as boxes, which both O3DE and MuJoCo build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np

from proctor.core.errors import InvalidFile
from proctor.core.types import Array, Vector3
from proctor.scenes.mesh_files import folder_of_scene
from proctor.scenes.meshes import FLAT_M, load_mesh_asset
from proctor.scenes.scene_config import SMALLEST_M, Part, SceneConfig, SceneObject, asset_file


def solid_scene(scene: SceneConfig, scene_path: Path) -> SceneConfig:
    """Return a scene whose meshes collide as boxes around their pieces: the engine has no hulls.

    Objects that have parts, and houses that collide as their surface, are unchanged.
    """
    objects = []
    for index, item in enumerate(scene.objects):
        with locate_mesh_errors(scene_path, index):
            parts = _parts(item, scene_path)
        objects.append(item if parts is item.parts else msgspec.structs.replace(item, parts=parts))
    return msgspec.structs.replace(scene, objects=objects)


@contextmanager
def locate_mesh_errors(scene_path: Path, index: int) -> Iterator[None]:
    """Say where the mesh is named that is wrong."""
    try:
        yield
    except ValueError as error:
        raise InvalidFile(scene_path, str(error), place=f"objects[{index}].asset_path") from None


def _parts(item: SceneObject, scene_path: Path) -> list[Part]:
    """Return what an object collides as: its parts or, of a mesh, boxes around its pieces."""
    if item.parts or item.asset_path is None or item.collision == "surface" or item.rigid_body_type == "none":
        return item.parts
    thinnest = np.maximum(FLAT_M / item.scale.array(), SMALLEST_M)
    asset = load_mesh_asset(asset_file(scene_path, item.asset_path), folder_of_scene(scene_path))
    return [_box(points, thinnest) for points in asset.pieces]


def _box(points: Array, thinnest: Array) -> Part:
    low, high = points.min(axis=0), points.max(axis=0)
    return Part(
        shape="box",
        size=Vector3(*np.maximum(high - low, thinnest).tolist()),
        translate=Vector3(*((low + high) / 2).tolist()),
    )
