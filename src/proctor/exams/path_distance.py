"""The distance by which an episode of driving is judged: on the map of its scene, else in a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from proctor.core.errors import LEAVE_OUT
from proctor.core.geometry import distance
from proctor.core.interfaces import DistanceFn, DrivingEpisode
from proctor.core.types import Vector3
from proctor.exams.findings import some_of

if TYPE_CHECKING:
    from proctor.scenes.scene import Scene


class PathDistance:
    """The distance by which an episode is judged, one and the same for the whole of it.

    `stored_m` is the dataset's own distance from start to goal, used where there is no map.
    """

    def __init__(
        self, episode: DrivingEpisode, *, success_threshold_m: float, stored_m: float | None = None
    ) -> None:
        self.success_threshold_m = success_threshold_m
        scene = scene_of(episode)
        geodesic = None if scene is None else scene.geodesic(episode.start_position, episode.goal)
        self.kind: Literal["geodesic", "euclidean"] = "euclidean" if geodesic is None else "geodesic"
        self._distance: DistanceFn = distance if geodesic is None else geodesic
        if scene is not None and geodesic is None:  # the map does not connect start and goal
            self._distance = lambda a, b: math.inf
        self.stored_m = None if scene is not None else stored_m
        self._episode = episode

    def __call__(self, a: Vector3, b: Vector3) -> float:
        """Return metres; infinite where the map shows no path."""
        return self._distance(a, b)

    @cached_property
    def shortest_path_m(self) -> float:
        """From start to goal, for SPL: on the map, else as the dataset stores it, else the straight line."""
        if self.stored_m is not None:
            return self.stored_m
        return self(self._episode.start_position, self._episode.goal)


def has_map(episode: DrivingEpisode) -> bool:
    """Tell whether there is a scene file from which a map can be drawn."""
    return episode.scene_config_path is not None and Path(episode.scene_config_path).is_file()


def scene_of(episode: DrivingEpisode) -> Scene | None:
    """Return the scene of an episode, None if there is no scene file."""
    if not has_map(episode):
        return None
    from proctor.scenes.scene import Scene  # noqa: PLC0415  (maps need packages that agents do not)

    return Scene.load(Path(str(episode.scene_config_path)))


def is_reachable(episode: DrivingEpisode) -> bool:
    """Tell whether a robot on wheels can get from start to goal, as far as a map can tell."""
    scene = scene_of(episode)
    return scene is None or scene.is_reachable(episode.start_position, episode.goal)


def unreachable_notes(episodes: Sequence[DrivingEpisode]) -> list[str]:
    """Say which goals cannot be reached on wheels, if any."""
    lost = [episode.episode_id for episode in episodes if not is_reachable(episode)]
    if not lost:
        return []
    have = "has a goal" if len(lost) == 1 else "have goals"
    which = some_of(lost)
    return [
        f"{len(lost)} of {len(episodes)} episodes {have} that no robot on wheels can reach ({which}) and "
        f"{'counts as a failure' if len(lost) == 1 else 'count as failures'}; {LEAVE_OUT}"
    ]
