"""Where the exported meshes of a scene lie in a project: the exporter and the scene builder must agree."""

from __future__ import annotations

import hashlib
import re

from o3de_sim.constants import EXPORT_FOLDER

PLAIN = re.compile(r"[a-z0-9_]+( [a-z0-9_]+)*")
MAX_NAME = 48


def scene_folder(scene_name: str) -> str:
    """Return the folder of a scene, relative to the project's."""
    return f"{EXPORT_FOLDER}/{file_name(scene_name)}"


def mesh_path(scene_name: str, object_name: str) -> str:
    """Return the glTF file of an object, relative to the project's folder."""
    return f"{scene_folder(scene_name)}/{file_name(object_name)}.gltf"


def file_name(name: str) -> str:
    """Return a name as a file's name, without suffix: different for different names, on any file system.

    The engine's products are all lower case, so names that differ only in it must differ otherwise, too.
    `hall floor` is `hall-floor`; what holds other than small letters, digits, spaces and underscores gets a
    mark that tells it from its likes.
    """
    if PLAIN.fullmatch(name) and len(name) <= MAX_NAME:
        return name.replace(" ", "-")
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")[:MAX_NAME]
    return f"{words or 'object'}-{mark}"
