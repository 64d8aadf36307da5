"""Where exported meshes are in a project, and which mesh each object of a scene has there."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from o3de_sim.common.scene_file import CheckedObject, CheckedScene
from o3de_sim.constants import EXPORT_FOLDER
from o3de_sim.editor.arguments import MAX_LIST, PATH, Unfit
from o3de_sim.o3de_api.o3de_agent import O3DEAgent

EXPORTED = re.compile(rf"{EXPORT_FOLDER}/[^/]+/[a-z0-9_-]+-[0-9a-f]{{8}}\.gltf")
PLAIN = re.compile(r"[a-z0-9_]+( [a-z0-9_]+)*")
MAX_NAME = 48


def scene_folder(scene_name: str) -> str:
    """Return the folder of a scene, relative to the project's."""
    return f"{EXPORT_FOLDER}/{file_name(scene_name)}"


def mesh_path(scene_name: str, item: CheckedObject) -> str:
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


@dataclass(frozen=True)
class Mesh:
    """A mesh in the project."""

    path: str  # relative to the project's folder
    is_exported: bool  # it is written so that the engine shows it upright

    @property
    def is_y_up(self) -> bool:
        """Whether its own axes have y upwards."""
        return self.path.lower().endswith((".gltf", ".glb"))  # Y up by definition

    @property
    def lies_down(self) -> bool:
        """Whether the engine, which takes the numbers of a file as they are, shows it lying on its back."""
        return self.is_y_up and not self.is_exported


def find_meshes(agent: O3DEAgent, scene: CheckedScene) -> dict[str, Mesh]:
    """Return the mesh of each object that has one in the project, by the object's name.

    An exported mesh goes before the object's own, which is looked for beside it, then in the project.
    """
    candidates = {item.name: _candidates(scene, item) for item in scene.objects}
    paths = sorted({path for some in candidates.values() for path in some})
    there: set[str] = set()
    for start in range(0, len(paths), MAX_LIST):
        asked = paths[start : start + MAX_LIST]
        there |= {
            path for path, is_there in zip(asked, agent.asset_tool.exists(asked), strict=True) if is_there
        }
    found = {name: [path for path in some if path in there] for name, some in candidates.items()}
    return {name: Mesh(paths[0], is_exported=is_exported(paths[0])) for name, paths in found.items() if paths}


def _candidates(scene: CheckedScene, item: CheckedObject) -> list[str]:
    paths = [mesh_path(scene.scene_name, item)]
    if item.asset_path is not None:
        own = str(PurePosixPath(item.asset_path.replace("\\", "/")))
        paths += [f"{scene_folder(scene.scene_name)}/{own}", own]
    return [path for path in paths if _is_path(path)]


def _is_path(path: str) -> bool:
    try:
        PATH.check(path)
    except Unfit:  # of a name that no file in a project has
        return False
    return True
