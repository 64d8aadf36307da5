"""Runs as a report reads them: the run folder, what was asked, what came of it, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from proctor.core.errors import InvalidFile, UserError
from proctor.exams.datasets import Dataset, load_dataset, scenes_digest
from proctor.exams.names import AnyExam
from proctor.exams.results import Results
from proctor.runs.folder import RunFolder
from proctor.runs.scoring import source_of

Loaded = dict[tuple[Path, Path | None], Dataset | str]
"""Datasets by path and folder of scenes, or why one cannot be read."""
T = TypeVar("T")
OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how many episodes are done, and how many there are."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One run, finished or not."""

    name: str
    folder: RunFolder
    results: Results  # of the episodes that are finished, in the order of the dataset
    episodes: dict[str, Any]  # what was asked, by id, of the exam's own type; empty if the dataset is gone
    notices: list[str]  # what a reader must know before trusting the numbers
    scenes_changed: bool = False  # whether the episodes' scenes are no longer what they were

    @property
    def identity(self) -> dict[str, Any]:
        """What defines the run."""
        return self.folder.identity

    @property
    def exam(self) -> type[AnyExam]:
        """What the robot had to do."""
        return self.folder.exam


def exam_of(runs: Sequence[RunRecord]) -> type[AnyExam]:
    """Return the one exam of these runs; a UserError if they are of several."""
    by_name = {run.exam.name: run for run in reversed(runs)}
    if len(by_name) > 1:
        found = ", ".join(f"{run.folder.path} ({task})" for task, run in sorted(by_name.items()))
        raise UserError(f"a report is about runs of one task, found several: {found}; report on each alone")
    return runs[0].exam


def read_runs(folders: Sequence[Path]) -> tuple[list[RunRecord], list[str]]:
    """Read all runs that have something to show; also return a line about each that is empty or damaged."""
    records: list[RunRecord] = []
    empty: list[str] = []
    loaded: Loaded = {}
    for path in folders:
        try:
            run = RunFolder.open(path)
            if run.episodes:
                records.append(_record(run, loaded, {record.name for record in records}))
            else:
                text = f"{path} has no finished episode yet"
                empty.append(f"{text}; the command that began it goes on with it")
        except InvalidFile as error:
            if len(folders) == 1:
                raise
            empty.append(f"{path} is left out, being damaged: {error}")
    if not records:
        raise UserError("; ".join(empty))
    records.sort(key=lambda run: run.folder.is_privileged)  # what is told the goal comes last
    return records, empty


def _record(run: RunFolder, loaded: Loaded, taken: set[str]) -> RunRecord:
    episodes, notices = _episodes_of(run, loaded)
    notices += run.notes
    changed = bool(episodes) and not _scenes_are_the_same(run, episodes)
    if changed:
        text = "A scene has changed or is gone since this run"
        notices.append(f"{text}, so there are no maps, and nothing is driven again.")
        episodes = {key: run.exam.without_scene(episode) for key, episode in episodes.items()}
    order = {episode_id: index for index, episode_id in enumerate(episodes)}
    summary, done = run.results.summary, run.episodes
    ordered = sorted(done, key=lambda r: (order.get(r.episode_id, len(order)), r.episode_id))
    if len(done) < run.expected:
        notices.insert(0, f"This run is unfinished: {len(done)} of {run.expected} episodes are done.")
    return RunRecord(
        name=_unique(run.agent_name, run.path, taken),
        folder=run,
        results=Results(summary, ordered),
        episodes=episodes,
        notices=notices,
        scenes_changed=changed,
    )


def _episodes_of(run: RunFolder, loaded: Loaded) -> tuple[dict[str, Any], list[str]]:
    """Return the episodes of a run if its dataset is still what it was, else none and why."""
    without = "so there are no reference paths, goals or maps below"
    path, scenes = source_of(run)
    if path is None:
        return {}, [f"The manifest does not say where the episodes were, {without}."]
    key = (path, scenes)
    if key not in loaded:
        try:
            loaded[key] = load_dataset(path, scenes=scenes)
        except UserError as error:
            loaded[key] = str(error)
    dataset = loaded[key]
    if isinstance(dataset, str):
        return {}, [f"The episodes of this run cannot be read ({dataset}), {without}."]
    if dataset.digest != run.identity.get("dataset_sha256"):
        return {}, [f"{path} has changed since this run, {without}."]
    return {episode.episode_id: episode for episode in dataset.select()}, []


def _scenes_are_the_same(run: RunFolder, episodes: dict[str, Any]) -> bool:
    """Tell whether the scenes are those of the run, as far as that can be known of an unfinished one."""
    expected, asked = run.identity.get("scenes_sha256"), run.identity.get("episodes", 0)
    finished = {result.episode_id for result in run.episodes}
    used = [episode for key, episode in episodes.items() if key in finished]
    if len(used) < asked:
        used = list(episodes.values())
    if expected is None or len(used) != asked:
        return True
    try:
        return scenes_digest(run.exam, used) == str(expected)
    except (UserError, OSError):
        return False


def _unique(agent: str, folder: Path, taken: set[str]) -> str:
    """Return a name for a run: its agent's, or also its folder's where another run has the same."""
    by_folder = (f"{agent} ({folder.name} {number})" for number in count(2))
    candidates = chain([agent, f"{agent} ({folder.name})"], by_folder)
    return next(name for name in candidates if name not in taken)


def tracked(items: Sequence[T], what: str, on_progress: OnProgress | None) -> Iterator[T]:
    """Yield items, and report after each how many are done."""
    for done, item in enumerate(items, 1):
        yield item
        if on_progress is not None:
            on_progress(what, done, len(items))
