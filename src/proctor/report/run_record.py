"""Run directories as a report reads them: who ran, what was asked, what came of it, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from proctor.core.errors import InvalidFile, UserError
from proctor.core.registry import names, suite_path
from proctor.exams.datasets import Dataset, load_dataset
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.results import MANIFEST, EpisodeResult, Results
from proctor.exams.scenes_digest import scenes_digest
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M
from proctor.runs.folder import RunFolder, agent_name, read_run_folder

TASKS = ("vln", "pick_and_place")
Summarise: TypeAlias = Callable[[Sequence[EpisodeResult]], Results]
"""Makes the numbers of a run."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run, finished or not."""

    name: str
    folder: Path
    identity: dict[str, Any]
    manifest: dict[str, Any]
    results: Results
    """Of the episodes that are finished."""
    episodes: dict[str, Any]
    """What was asked, by id, of the task's own kind; empty if the dataset is gone."""
    notices: list[str]
    """What a reader must know before trusting the numbers."""
    scenes_changed: bool = False
    """Whether the episodes' scenes are no longer what they were."""

    @property
    def task(self) -> str:
        """What the robot had to do."""
        return str(self.identity.get("task", "vln"))

    @property
    def expected(self) -> int:
        """How many episodes the whole run has."""
        planned: int = self.identity.get("episodes", 0)
        return max(planned, len(self.results.episodes))

    @property
    def success_threshold_m(self) -> float:
        """The run's, for episodes that do not say."""
        value = self.identity.get("success_threshold_m")
        return float(value) if isinstance(value, int | float) else DEFAULT_SUCCESS_THRESHOLD_M


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the run directories among these folders and the folders right inside of them.

    Raises:
        UserError: A folder is no run's and holds none.
    """
    found: dict[Path, None] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder")
        inside = (
            [folder]
            if (folder / MANIFEST).is_file()
            else sorted(f for f in folder.iterdir() if (f / MANIFEST).is_file())
        )
        if not inside:
            raise UserError(
                f"{folder} is not a run: neither it nor a folder in it has a {MANIFEST}; "
                "give the folder that 'proctor run --out' wrote to"
            )
        found.update((run.resolve(), None) for run in inside)
    return list(found)


def task_of(runs: Sequence[RunRecord]) -> str:
    """Return the one task of these runs.

    Raises:
        UserError: They are of several.
    """
    by_task = {run.task: run for run in reversed(runs)}
    if len(by_task) > 1:
        found = ", ".join(f"{run.folder} ({task})" for task, run in sorted(by_task.items()))
        raise UserError(f"a report is about runs of one task, found several: {found}; report on each alone")
    return next(iter(by_task))


def read_runs(folders: Sequence[Path], summarise: Summarise) -> tuple[list[RunRecord], list[str]]:
    """Read all runs that have something to show.

    Args:
        folders: Run directories.
        summarise: Makes the numbers of a run.

    Returns:
        The runs, and a line about each that is empty or damaged.

    Raises:
        UserError: Not one run has a finished episode.
        InvalidFile: A file of the only run is broken.
    """
    records: list[RunRecord] = []
    empty: list[str] = []
    loaded: dict[tuple[str, str | None], Dataset | str] = {}
    for folder in folders:
        try:
            run = read_run_folder(folder)
            if run.episodes:
                taken = {record.name for record in records}
                records.append(_record(run, summarise, loaded, taken))
            else:
                text = f"{folder} has no finished episode yet"
                empty.append(f"{text}; the command that began it goes on with it")
        except InvalidFile as error:
            if len(folders) == 1:
                raise
            empty.append(f"{folder} is left out, being damaged: {error}")
    if not records:
        raise UserError("; ".join(empty))
    records.sort(key=lambda run: bool(run.identity.get("privileged")))  # what is told the goal comes last
    return records, empty


def _record(
    run: RunFolder,
    summarise: Summarise,
    loaded: dict[tuple[str, str | None], Dataset | str],
    taken: set[str],
) -> RunRecord:
    folder, manifest, identity = run.path, run.manifest, run.identity
    finished = {episode.episode_id: episode for episode in run.episodes}
    task = str(identity.get("task", "vln"))
    if task not in TASKS:
        problem = f"expected the task {' or '.join(TASKS)}, found '{task[:40]}'"
        raise InvalidFile(folder / MANIFEST, problem, place="identity.task")
    episodes, notices = _episodes_of(manifest, identity, loaded)
    notices += run.notes
    changed = bool(episodes) and not _scenes_are_the_same(identity, episodes, finished)
    if changed:
        text = "A scene has changed or is gone since this run"
        notices.append(f"{text}, so there are no maps, and nothing is driven again.")
        episodes = {key: _without_scene(episode) for key, episode in episodes.items()}
    order = {episode_id: index for index, episode_id in enumerate(episodes)}
    ordered = sorted(finished.values(), key=lambda r: (order.get(r.episode_id, len(order)), r.episode_id))
    expected = identity.get("episodes", 0)
    if len(finished) < expected:
        notices.insert(0, f"This run is unfinished: {len(finished)} of {expected} episodes are done.")
    return RunRecord(
        name=_unique(agent_name(identity, folder.name), folder, taken),
        folder=folder,
        identity=identity,
        manifest=manifest,
        results=summarise(ordered),
        episodes=episodes,
        notices=notices,
        scenes_changed=changed,
    )


def _without_scene(episode: Any) -> Any:
    if isinstance(episode, PickAndPlaceEpisode):
        return msgspec.structs.replace(episode, scene_objects=[])
    return msgspec.structs.replace(episode, scene_config_path=None)


def _episodes_of(
    manifest: dict[str, Any], identity: dict[str, Any], loaded: dict[tuple[str, str | None], Dataset | str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the episodes of a run if its dataset is still what it was, else none and why."""
    without = "so there are no reference paths, goals or maps below"
    path, scenes = _source(manifest, identity)
    if path is None:
        return {}, [f"The manifest does not say where the episodes were, {without}."]
    key = (path, scenes)
    if key not in loaded:
        try:
            loaded[key] = load_dataset(Path(path), scenes=None if scenes is None else Path(scenes))
        except UserError as error:
            loaded[key] = str(error)
    dataset = loaded[key]
    if isinstance(dataset, str):
        return {}, [f"The episodes of this run cannot be read ({dataset}), {without}."]
    if dataset.digest != identity.get("dataset_sha256"):
        return {}, [f"{path} has changed since this run, {without}."]
    return {episode.episode_id: episode for episode in dataset.select()}, []


def _scenes_are_the_same(
    identity: dict[str, Any], episodes: dict[str, Any], finished: dict[str, EpisodeResult]
) -> bool:
    """Tell whether the scenes are those of the run, as far as that can be known of an unfinished one."""
    expected = identity.get("scenes_sha256")
    used = [episode for key, episode in episodes.items() if key in finished]
    if len(used) < identity.get("episodes", 0):
        used = list(episodes.values())
    if expected is None or len(used) != identity.get("episodes", 0):
        return True
    try:
        return scenes_digest(used) == str(expected)
    except (UserError, OSError):
        return False


def _source(manifest: dict[str, Any], identity: dict[str, Any]) -> tuple[str | None, str | None]:
    source = manifest.get("source") or {}
    path: str | None = source.get("dataset")
    if path and Path(path).exists():
        return path, source.get("scenes")
    # A run that came from another machine: a suite is here as well.
    suite = str(identity.get("dataset", ""))
    if suite in names("suite"):
        return str(suite_path(suite)), None
    return path, None


def _unique(agent: str, folder: Path, taken: set[str]) -> str:
    """Return a name for a run: its agent's, or also its folder's where another run has the same."""
    candidates = [agent, f"{agent} ({folder.name})"]
    number = 2
    while candidates[0] in taken and candidates[-1] in taken:
        candidates.append(f"{agent} ({folder.name} {number})")
        number += 1
    return candidates[0] if candidates[0] not in taken else candidates[-1]
