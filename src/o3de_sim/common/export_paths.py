"""Where the exported meshes of a scene lie in a project: the exporter and the scene builder must agree."""

from __future__ import annotations

import hashlib
import re

from o3de_sim.common.scene_checks import SceneObject
from o3de_sim.constants import EXPORT_FOLDER

EXPORTED = re.compile(rf"{EXPORT_FOLDER}/[^/]+/[a-z0-9_-]+-[0-9a-f]{{8}}\.gltf")
PLAIN = re.compile(r"[a-z0-9_]+( [a-z0-9_]+)*")
MAX_NAME = 48


def scene_folder(scene_name: str) -> str:
    """Return the folder of a scene, relative to the project's."""
    return f"{EXPORT_FOLDER}/{file_name(scene_name)}"


def mesh_path(scene_name: str, item: SceneObject) -> str:
    """Return the glTF file of an object, relative to the project's folder.

    Its name tells how the object looks, so that one that was changed is not shown as it was before. How
    textures lie on parts depends on where the object is.
    """
    look = item.asset_path or (item.parts, item.translate, item.rotate, item.scale, item.rigid_body_type)
    return f"{scene_folder(scene_name)}/{file_name(item.name)}-{_mark(repr(look))}.gltf"


def is_exported(path: str) -> bool:
    """Return whether a file of the project is one that `mesh_path` names."""
    return EXPORTED.fullmatch(path) is not None


def file_name(name: str) -> str:
    """Return a name as a file's name, without suffix: different for different names, on any file system.

    The engine's products are all lower case, so names that differ only in it must differ otherwise, too.
    `hall floor` is `hall-floor`; what holds other than small letters, digits, spaces and underscores gets a
    mark that tells it from its likes.
    """
    if PLAIN.fullmatch(name) and len(name) <= MAX_NAME:
        return name.replace(" ", "-")
    words = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:MAX_NAME]
    return f"{words or 'object'}-{_mark(name)}"


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
