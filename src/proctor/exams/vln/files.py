"""Native files of navigation episodes, and where the scenes of any are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.errors import InvalidFile
from proctor.exams.vln.episode import Episode
from proctor.scenes.mesh_files import MESH_SUFFIXES, find_scene

REQUIRED_KEYS = ("episode_id", "scene_id", "start_position", "start_rotation", "goal_position", "instruction")


def scene_locator(file: Path, scenes: Path | None) -> Callable[[Episode], Episode]:
    """Return a function that sets the path of an episode's scene file, and looks for each scene only once.

    The function raises InvalidFile if the path cannot be one. Without a scene file the path stays empty.
    `scenes` is a folder with the scenes, if they are not beside the episodes.
    """

    @cache
    def find(path: str | None, scene_id: str) -> str | None:
        try:
            scene = _find_beside(file.parent, scene_id) if path is None else _locate_scene(path, file.parent)
        except (OSError, ValueError) as error:
            problem = f"no name of a file: {error}"[:120]
            raise InvalidFile(file, problem, place="scene_config_path") from None
        if scenes is not None and (scene is None or not Path(scene).is_file()):
            found = find_scene(scenes, path or scene_id)
            scene = str(found) if found else scene
        return scene

    def locate(episode: Episode) -> Episode:
        scene = find(episode.scene_config_path, (episode.origin or episode).scene_id)
        if scene == episode.scene_config_path:
            return episode
        return msgspec.structs.replace(episode, scene_config_path=scene)

    return locate


def document_of_walks(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return what a native file of navigation episodes holds."""
    return {
        "episodes": [
            {key: getattr(episode, key) for key in REQUIRED_KEYS} | msgspec.to_builtins(episode)
            for episode in episodes
        ]
    }


def with_relative_scenes(episodes: Sequence[Episode], folder: Path) -> list[Episode]:
    """Return the episodes with scene paths that hold from this folder."""
    return [
        msgspec.structs.replace(episode, scene_config_path=os.path.relpath(path, folder.resolve()))
        if (path := episode.scene_config_path) and Path(path).is_absolute()
        else episode
        for episode in episodes
    ]


def _locate_scene(path: str, folder: Path) -> str:
    beside, here = folder / path, Path(path)
    return str((here if here.is_file() and not beside.is_file() else beside).resolve())


def _find_beside(folder: Path, scene_id: str) -> str | None:
    """Return the scene of an episode that names none: in `scenes` beside the dataset, or a mesh right there.

    Files beside the dataset that end with .json are episodes rather than scenes.
    """
    own = folder / "scenes" / f"{scene_id}.json"
    if scene_id and own.is_file():
        return str(own.resolve())
    found = find_scene(folder / "scenes", scene_id) or find_scene(folder, scene_id, suffixes=MESH_SUFFIXES)
    return str(found.resolve()) if found is not None else None
