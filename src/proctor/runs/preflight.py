"""What can be found wrong before the first episode begins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from proctor.core.errors import InvalidFile, MissingDependency, UserError
from proctor.core.interfaces import Env
from proctor.core.types import Vector3
from proctor.exams.datasets import Dataset
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.dataset_warnings import out_of_reach
from proctor.exams.vln.episode import LEAVE_OUT, Episode
from proctor.runs.job import Job
from proctor.exams.vln.exam import is_reachable
from proctor.navigation.maps.grid_map import house_of_scene, map_of_scene
from proctor.scenes.scene_config import load_scene, missing_file_notes, scene_version


def check_scenes(dataset: Dataset, episodes: Sequence[Any], *, needs_scene: bool) -> None:
    """Load every scene in use, meshes included, and build its map. Episodes without a goal are refused.

    Navigation only: a table is set by the env itself, whose `check` finds what is wrong with it.

    Args:
        dataset: Where the episodes come from, for the message.
        episodes: Those that will be run.
        needs_scene: Whether an episode without a scene file is an error.

    Raises:
        InvalidFile: A goal or a scene is missing, or a scene is broken.
    """
    if dataset.task != "vln":
        return
    _check_goals(dataset, episodes)
    by_scene: dict[str | None, list[Episode]] = {}
    for episode in episodes:
        by_scene.setdefault(episode.scene_config_path, []).append(episode)
    for scene, group in by_scene.items():
        if scene is not None and Path(scene).is_file():
            _check_map(Path(scene), scene_version(Path(scene)), group[0].start_position)
            for episode in group:
                is_reachable(episode)  # remembered, for `scene_notes`, while the map is at hand
        elif needs_scene:
            problem = f"there is no scene file {scene}" if scene else _no_file(dataset, episodes, group[0])
            raise InvalidFile(dataset.path, problem, place=_place(dataset, group[0], "scene_config_path"))


@lru_cache(maxsize=2**14)
def _check_map(scene: Path, version: int, start: Vector3) -> None:
    """Build a map, once for each version of a scene, however many policies are run in it."""
    del version
    map_of_scene(scene, start)


def scene_notes(episodes: Sequence[Any]) -> list[str]:
    """Return what people should know about the scenes of navigation before they trust a run in them.

    That is how meshes were read, where their floors are, which images they lack, and how many goals cannot be
    reached on wheels.

    Raises:
        InvalidFile: A scene is broken.
    """
    by_scene: dict[Path, list[Episode]] = {}
    for episode in (each for each in episodes if isinstance(each, Episode)):
        if episode.scene_config_path is not None and Path(episode.scene_config_path).is_file():
            by_scene.setdefault(Path(episode.scene_config_path), []).append(episode)
    notes = []
    for path in by_scene:
        house = house_of_scene(path)
        if house is not None:
            notes += [*load_scene(path).notes, f"{path.name} has its floors at {house.described_floors()}"]
        notes += missing_file_notes(path)
    return [*notes, *unreachable_notes([episode for group in by_scene.values() for episode in group])]


def check_episodes(env: Env, dataset: Dataset, episodes: Sequence[Any]) -> list[str]:
    """Let the env look at the episodes, and return what it has to say of them.

    Raises:
        InvalidFile: An episode cannot be done.
    """
    try:
        return list(env.check(episodes) or ())
    except (InvalidFile, MissingDependency):
        raise
    except UserError as error:
        raise InvalidFile(dataset.path, str(error)) from None


def reach_notes(episodes: Sequence[Any]) -> list[str]:
    """Say which objects of pick-and-place the hand cannot get at, if any."""
    picks = [episode for episode in episodes if isinstance(episode, PickAndPlaceEpisode)]
    reasons = {pick.episode_id: reason for pick in picks if (reason := out_of_reach(pick)) is not None}
    some = [f"{key}: {reason}" for key, reason in list(reasons.items())[:5]]
    lost = f"{len(reasons)} of {len(episodes)} episodes cannot be done, whatever the agent does"
    return [f"{lost}: {'; '.join(some)}{'; ...' if len(reasons) > 5 else ''}"] if reasons else []


def job_notes(job: Job) -> list[str]:
    """Return what a reader of the results must know of how they were come by."""
    notes = []
    if job.env_options.get("level"):
        notes.append(f"level {job.env_options['level']}: the world looks otherwise than it is stored")
    if job.env_options.get("object_info"):
        notes.append("object_info is on: observations tell where the object and its target are")
    if job.hide_goal:
        notes.append("the goal is hidden: agents are told no coordinates of things and places")
    return notes


def unreachable_notes(episodes: Sequence[Episode]) -> list[str]:
    """Say which goals cannot be reached on wheels, if any.

    Raises:
        InvalidFile: A scene is broken.
    """
    with_goal = [episode for episode in episodes if episode.goal_position is not None]
    lost = [episode.episode_id for episode in with_goal if not is_reachable(episode)]
    if not lost:
        return []
    some = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
    have = "has a goal" if len(lost) == 1 else "have goals"
    return [
        f"{len(lost)} of {len(episodes)} episodes {have} that no robot on wheels can reach ({some}) and "
        f"{'counts as a failure' if len(lost) == 1 else 'count as failures'}; {LEAVE_OUT}"
    ]


def _check_goals(dataset: Dataset, episodes: Sequence[Episode]) -> None:
    withheld = [episode for episode in episodes if episode.goal_position is None]
    if withheld:
        problem = (
            f"{len(withheld)} of {len(episodes)} episodes have no goal, as in the test split of a challenge: "
            "nothing could be scored; choose a split with goals"
        )
        raise InvalidFile(dataset.path, problem, place=_place(dataset, withheld[0], "goal"))


def _no_file(dataset: Dataset, episodes: Sequence[Episode], episode: Episode) -> str:
    if dataset.format == "native" and dataset.scenes is None:
        name = episode.scene_id
        return f"missing, and there is no scenes/{name}.json and no mesh named '{name}' beside the dataset"
    if dataset.scenes is None:
        return f"give --scenes DIR with the scenes of {dataset.format}, such as {episode.scene_id}.glb"
    without = [other for other in episodes if other.scene_config_path is None]
    names = list(dict.fromkeys(other.scene_id for other in without))
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"{dataset.scenes} lacks {len(names)} scenes of {len(without)} episodes: {some}"


def _place(dataset: Dataset, episode: Episode, key: str) -> str:
    return f"episodes[{dataset.episodes.index(episode)}].{key}"
