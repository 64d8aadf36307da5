"""What can be found wrong before the first episode begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.core.errors import InvalidFile
from proctor.episodes.datasets import Dataset
from proctor.episodes.vln import Episode
from proctor.navigation.grid_map import map_of_scene


def check_scenes(dataset: Dataset, episodes: Sequence[Episode], *, needs_scene: bool) -> None:
    """Load every scene in use, meshes included, and build its map.

    Args:
        dataset: Where the episodes come from, for the message.
        episodes: Those that will be run.
        needs_scene: Whether an episode without a scene file is an error.

    Raises:
        InvalidFile: A scene is missing or broken.
    """
    first_use: dict[str | None, Episode] = {}
    for episode in episodes:
        first_use.setdefault(episode.scene_config_path, episode)
    for scene, episode in first_use.items():
        if scene is not None and Path(scene).is_file():
            map_of_scene(Path(scene), episode.start_position.z)
        elif needs_scene:
            index = dataset.episodes.index(episode)
            problem = f"there is no scene file {scene}" if scene else _no_file(episode)
            raise InvalidFile(dataset.path, problem, place=f"episodes[{index}].scene_config_path")


def _no_file(episode: Episode) -> str:
    return f"missing, and there is no scenes/{episode.scene_id}.json beside the dataset"
