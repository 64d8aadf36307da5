"""A scene as meshes to be seen and parts to be bumped into, which both O3DE and MuJoCo build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec
import numpy as np

from o3de_sim.common.export_paths import mesh_path, scene_folder
from o3de_sim.common.scene_checks import check_scene
from o3de_sim.constants import EXPORT_FOLDER
from proctor.core.errors import InvalidFile
from proctor.core.types import Array, Vector3
from proctor.o3de_export.folder import ExportFolder
from proctor.o3de_export.gltf import write_gltf
from proctor.o3de_export.import_settings import files_that_turn, put_import_settings
from proctor.scenes.frames import Frame, frame_of, frame_of_part
from proctor.scenes.mesh_files import folder_of_scene
from proctor.scenes.meshes import FLAT_M, Surface, load_drawn_surfaces, load_mesh_asset, load_surfaces
from proctor.scenes.part_surfaces import surfaces_of_parts
from proctor.scenes.scene_config import SMALLEST_M, Part, SceneConfig, SceneObject, asset_file, load_scene

SCENE_FILE = "scene.json"
TEXTURES = f"{EXPORT_FOLDER}/textures"


class ExportedScene(NamedTuple):
    """A scene in a project."""

    file: str
    """Its scene file, below the project's folder."""
    notes: list[str]
    """What is other than it was."""


def put_scene(folder: ExportFolder, scene_path: Path, *, file_name: str = SCENE_FILE) -> ExportedScene:
    """Write a scene into a project.

    Args:
        folder: The project's.
        scene_path: A scene file, or a mesh that is a whole house.
        file_name: Of the scene file, where another scene of the same name has the usual one.

    Raises:
        InvalidFile: The scene or one of its meshes is missing or wrong.
    """
    scene = load_scene(scene_path)
    name = scene.scene_name
    turned = bool(files_that_turn(folder.root))
    notes: list[str] = []
    objects = []
    checked = check_scene(msgspec.to_builtins(scene), str(scene_path)).objects
    for index, (item, solid) in enumerate(
        zip(scene.objects, solid_scene(scene, scene_path).objects, strict=True)
    ):
        with _at(scene_path, index):
            look = _look(item, scene_path)
        path = mesh_path(name, checked[index])
        # The walls of a house that is a mesh are often sheets, and seen from both sides.
        write_gltf(folder, path, look, textures=TEXTURES, double_sided=item.collision == "surface")
        put_import_settings(folder, path, solid=item.collision == "surface", turned=turned)
        if solid is not item:
            count = "a box" if len(solid.parts) == 1 else f"{len(solid.parts)} boxes"
            notes.append(f"'{item.name}' of {name} collides as {count} around its mesh, not as its hull")
        objects.append(msgspec.structs.replace(item, asset_path=PurePosixPath(path).name, parts=solid.parts))
    file = f"{scene_folder(name)}/{file_name}"
    folder.put(file, content_of(msgspec.structs.replace(scene, objects=objects)))
    return ExportedScene(file, notes)


def solid_scene(scene: SceneConfig, scene_path: Path) -> SceneConfig:
    """Return a scene whose meshes collide as boxes around their pieces: the engine has no hulls.

    Objects that have parts, and houses that collide as their surface, stay as they are.

    Raises:
        InvalidFile: A mesh is missing or wrong.
    """
    objects = []
    for index, item in enumerate(scene.objects):
        with _at(scene_path, index):
            parts = _parts(item, scene_path)
        objects.append(item if parts is item.parts else msgspec.structs.replace(item, parts=parts))
    return msgspec.structs.replace(scene, objects=objects)


@contextmanager
def _at(scene_path: Path, index: int) -> Iterator[None]:
    """Say where the mesh is named that is wrong."""
    try:
        yield
    except ValueError as error:
        raise InvalidFile(scene_path, str(error), place=f"objects[{index}].asset_path") from None


def content_of(scene: SceneConfig) -> bytes:
    """Return a scene as `save_scene` writes it."""
    return msgspec.json.encode(scene) + b"\n"


def _look(item: SceneObject, scene_path: Path) -> list[tuple[Surface, str | None]]:
    """Return what is seen of an object, in its own frame, with the names of the images that have one."""
    if item.asset_path is None:
        placed = _drawing_frame(item)
        parts = surfaces_of_parts((part, frame_of_part(part, placed)) for part in item.parts)
        return [(_unplaced(surface, placed), texture) for surface, texture in parts]
    file, root = asset_file(scene_path, item.asset_path), folder_of_scene(scene_path)
    if item.collision == "surface":
        return [(surface, None) for surface in load_surfaces(file, root)]
    surfaces = load_drawn_surfaces(file, root) if item.parts else load_mesh_asset(file, root).surfaces
    return [(surface, None) for surface in surfaces]


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


def _drawing_frame(item: SceneObject) -> Frame:
    """Return the frame in which textures are measured: the world's of what stands, its own of what moves."""
    frame = frame_of(item)
    if item.rigid_body_type in ("dynamic", "kinematic"):
        return Frame(frame.size, np.eye(3), np.zeros(3))
    return frame


def _unplaced(surface: Surface, frame: Frame) -> Surface:
    """Return a surface in the frame of the object that was placed by a frame."""
    vertices = (surface.vertices - frame.translation) @ frame.rotation / frame.size
    # What is stretched more along one axis than another has normals along the axes only.
    return surface._replace(vertices=vertices, normals=surface.normals @ frame.rotation)
