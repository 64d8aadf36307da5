"""Which of a scene's objects the project has meshes for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from o3de_sim.common.export_paths import is_exported, mesh_path, scene_folder
from o3de_sim.common.scene_checks import Scene, SceneObject
from o3de_sim.editor.arguments import MAX_LIST, PATH, Unfit
from o3de_sim.o3de_api.o3de_agent import O3DEAgent

Y_UP_SUFFIXES = (".gltf", ".glb")
"""Of files that are Y up by definition."""


@dataclass(frozen=True)
class Mesh:
    """A mesh in the project."""

    path: str
    """Relative to the project's folder."""
    is_exported: bool
    """It is written so that the engine shows it upright."""

    @property
    def is_y_up(self) -> bool:
        """Whether its own axes have y upwards."""
        return self.path.lower().endswith(Y_UP_SUFFIXES)

    @property
    def lies_down(self) -> bool:
        """Whether the engine, which takes the numbers of a file as they are, shows it lying on its back."""
        return self.is_y_up and not self.is_exported


def find_meshes(agent: O3DEAgent, scene: Scene) -> dict[str, Mesh]:
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


def _candidates(scene: Scene, item: SceneObject) -> list[str]:
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
