"""By which a run and its report know whether the scenes are still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from proctor.episodes.vln import Episode
from proctor.scenes.mesh_files import files_of_mesh
from proctor.scenes.scene_config import asset_file, load_scene


def scenes_digest(episodes: Sequence[Episode]) -> str:
    """Return a hash of all scene files in use, of the meshes that they name and of what those consist of."""
    digest = hashlib.sha256()
    for scene in sorted({e.scene_config_path for e in episodes if e.scene_config_path is not None}):
        path = Path(scene)
        if not path.is_file():
            continue
        assets = [item.asset_path for item in load_scene(path).objects if item.asset_path is not None]
        meshes = [asset_file(path, asset) for asset in assets]
        parts = [part for mesh in meshes for part in files_of_mesh(mesh)]
        for file in (path, *meshes, *parts):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
