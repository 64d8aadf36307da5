"""By which a run and its report know whether the scenes are still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from proctor.exams.datasets import AnyEpisode
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.vln.episode import Episode
from proctor.scenes.mesh_files import files_of_mesh, folder_of_scene
from proctor.scenes.scene_config import asset_file, load_scene


def scenes_digest(episodes: Sequence[AnyEpisode]) -> str:
    """Return a hash of all scene files in use, of the meshes that they name and of what those consist of."""
    digest = hashlib.sha256()
    walks = [episode for episode in episodes if isinstance(episode, Episode)]
    picks = [episode for episode in episodes if isinstance(episode, PickAndPlaceEpisode)]
    for file in (*_scene_files(walks), *_asset_files(picks)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _scene_files(episodes: Sequence[Episode]) -> Iterator[Path]:
    for scene in sorted({e.scene_config_path for e in episodes if e.scene_config_path is not None}):
        path = Path(scene)
        if not path.is_file():
            continue
        assets = [item.asset_path for item in load_scene(path).objects if item.asset_path is not None]
        meshes, root = [asset_file(path, asset) for asset in assets], folder_of_scene(path)
        yield from (path, *meshes, *(part for mesh in meshes for part in files_of_mesh(mesh, root)))


def _asset_files(episodes: Sequence[PickAndPlaceEpisode]) -> Iterator[Path]:
    """Find the things' files, as far as they exist: the others are made, or refused by the world."""
    named = {(e.assets_path or "", item.usd_path) for e in episodes for item in e.scene_objects}
    for folder, name in sorted((folder, name) for folder, name in named if name and "\0" not in name):
        root = Path(folder).resolve()
        file = (root / name.replace("\\", "/")).resolve()
        if file.is_relative_to(root) and file.is_file():
            yield from (file, *files_of_mesh(file, root))
