"""Check a whole dataset and write a corrected copy: `proctor check-dataset`.

The strict loader stops at the first mistake. Here a file is read as far as it can be read, mistakes are
collected, and its JSON is repaired where that is plain. What is not understood, such as tokens, is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.core.documents import parse_json, read_bytes, refuse_nan, write_json
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.exams.datasets import (
    check_frozen,
    check_scenes_folder,
    episode_file,
    exam_of_document,
    foreign_problem,
    stem_of,
)
from proctor.exams.episode_files import EPISODES, records_of
from proctor.exams.findings import EpisodesToCheck, Findings


class CheckedDataset:
    """A dataset as far as it can be read, and what was found about it."""

    def __init__(self, path: Path) -> None:
        self.file = episode_file(path)
        self.document: dict[str, Any] = parse_json(read_bytes(self.file), self.file, nan_as_text=True)
        """The repaired one."""
        self.exam = exam_of_document(self.document, self.file)
        self.format = "native"
        self.episodes: dict[int, Any] = {}
        """By index in the file; only those that can be understood."""
        self.companion: dict[str, Any] | None = None
        """What the file beside a corrected copy holds, by episode id, if there is one."""
        self.changes: list[str] = []
        """What was repaired, in words."""
        self.unreadable = ""
        """Why no corrected copy can be written, if so."""
        self.findings = Findings(self.id_at, self.exam.filters)
        records = records_of(self.document, self.file, self.exam.episode)
        if not (isinstance(self.document, dict) and EPISODES in self.document):
            self.document = {EPISODES: [record for record, _ in records]}
        try:
            check_frozen(self.file.parent)
        except InvalidFile as error:
            self.findings.about("error", "frozen", str(error), places=[str(error.file)])

    @property
    def records(self) -> list[Any]:
        """The repaired episodes, as JSON."""
        records: list[Any] = self.document[EPISODES]
        return records

    def id_at(self, index: int) -> str:
        """Return the id of the episode at an index, or its place if it has none."""
        record = self.records[index]
        found = record.get("episode_id") if isinstance(record, dict) else None
        return str(found) if isinstance(found, str | int) and found != "" else f"episodes[{index}]"

    def repair_id(self, index: int, new_id: str, why: str) -> None:
        """Give an episode another id."""
        self.changes.append(
            f"episodes[{index}]: id {self.records[index]['episode_id']!r} to '{new_id}', {why}"
        )
        self.records[index]["episode_id"] = new_id

    def repair_duplicate_ids(self, ids: dict[int, str]) -> dict[int, str]:
        """Give every episode an id of its own. Returns the indices of the new ids with the ids they had."""
        taken, renamed = set(ids.values()), {}
        seen: set[str] = set()
        for index, name in ids.items():
            if name in seen:
                number = next(n for n in range(2, len(ids) + 2) if f"{name}_{n}" not in taken)
                self.repair_id(index, f"{name}_{number}", "which was taken")
                taken.add(f"{name}_{number}")
                renamed[index] = name
            seen.add(name)
        text = "the id is taken by an episode before"
        self.findings.about("error", "duplicate-id", text, episodes=renamed, remedy="fixed")
        return renamed

    def add_malformed(self, problems: Sequence[tuple[int, str, str]]) -> None:
        """Add (index, place, problem) of episodes that cannot be understood, alike ones together."""
        alike: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for index, place, problem in problems:
            alike[problem].append((index, place))
        for problem, found in alike.items():
            self.findings.about(
                "error",
                "malformed",
                problem,
                episodes=[index for index, _ in found],
                places=[place for _, place in found],
                remedy="dropped",
            )

    def read_native(self) -> None:
        """Read episodes in the native format, and repair keys beside them and ids."""
        unknown = sorted(self.document.keys() - {EPISODES})
        text = "unknown beside `episodes`"
        self.findings.about("error", "unknown-key", text, places=unknown, remedy="fixed")
        for key in unknown:
            self.changes.append(f"without the key {key!r}")
            del self.document[key]
        numbers = [
            index
            for index, record in enumerate(self.records)
            if isinstance(record, dict) and type(record.get("episode_id")) is int
        ]
        for index in numbers:
            self.repair_id(index, str(self.records[index]["episode_id"]), "as text")
        self.findings.about("error", "id-type", "the id is no text", episodes=numbers, remedy="fixed")
        malformed = []
        for index in range(len(self.records)):
            malformed += self._read_record(index)
        self.add_malformed(malformed)
        for index in self.repair_duplicate_ids({i: e.episode_id for i, e in self.episodes.items()}):
            self._read_record(index)

    def _read_record(self, index: int) -> list[tuple[int, str, str]]:
        """Read an episode, or return its problems."""
        record, place = self.records[index], f"episodes[{index}]"
        try:
            refuse_nan(record, self.file, place=place)
            episode = self.exam.read(record, self.file, place)
        except InvalidFile as error:
            if problem := foreign_problem(record, self.exam):
                return [(index, place, problem)]
            return [(index, error.place or place, error.problem)]
        problems = [(index, f"{place}.{inner}", problem) for inner, problem in self.exam.problems(episode)]
        if not problems:
            self.episodes[index] = episode
        return problems

    def locate(self, scenes: Path | None) -> None:
        """Make the paths in the episodes absolute; those with a path that cannot be one are malformed."""
        malformed, locate = [], self.exam.locator(self.file, scenes)
        for index, episode in list(self.episodes.items()):
            try:
                self.episodes[index] = locate(episode)
            except InvalidFile as error:
                malformed.append((index, f"episodes[{index}].{error.place}", error.problem))
                del self.episodes[index]
        self.add_malformed(malformed)


class Fixed(NamedTuple):
    """A corrected copy: its files, and how many episodes it holds and lacks."""

    file: Path
    report: Path
    kept: int
    dropped: int
    changes: int


def examine(path: Path, *, scenes: Path | None = None) -> CheckedDataset:
    """Check all of a dataset, however broken. `scenes` is a folder with its scenes, if they are elsewhere."""
    check_scenes_folder(scenes)
    checked = CheckedDataset(path)
    checked.exam.read_broken(checked)
    checked.locate(scenes)
    given: EpisodesToCheck[Any] = EpisodesToCheck(
        checked.episodes, path=checked.file, format=checked.format, scenes=scenes
    )
    for finding in checked.exam().check(given):
        checked.findings.add(finding)
    return checked


def write_fixed(checked: CheckedDataset, out: Path, *, drop: Sequence[str] = ()) -> Fixed:
    """Write a corrected copy and a report beside it, without the episodes of the filters in `drop`."""
    if checked.unreadable:
        raise UserError(f"{checked.file}: no corrected copy can be written: {checked.unreadable}")
    report, beside = out.with_name(f"{stem_of(out)}.report.json"), checked.exam.companions(out)
    for file in (out, *beside, report):
        if file.exists():
            raise UserError(f"{file} exists already; give --fix a new name")
    dropped = _dropped(checked, drop)
    kept = [index for index in range(len(checked.records)) if index not in dropped]
    if not kept:
        raise UserError(f"{checked.file}: no episode would be left")
    records = [
        checked.exam.moved_record(checked.records[i], checked.episodes[i], checked.file, out.parent)
        for i in kept
    ]
    left_out = [
        {"place": f"episodes[{i}]", "episode_id": _id(checked.records[i]), "reason": dropped[i]}
        for i in sorted(dropped)
    ]
    content = {
        "input": str(checked.file.resolve()),
        "output": str(out.resolve()),
        "episodes": len(kept),
        "changed": checked.changes,
        "dropped": left_out,
        "findings": checked.findings.items,
        "filters": {name: len(indices) for name, indices in checked.findings.filters.items()},
    }
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_json(out, {**checked.document, EPISODES: records})
        if checked.companion is not None:
            ids = {str(record["episode_id"]) for record in records}
            write_json(beside[0], {key: entry for key, entry in checked.companion.items() if key in ids})
        write_json(report, content)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error
    return Fixed(out, report, len(kept), len(dropped), len(checked.changes))


def _dropped(checked: CheckedDataset, drop: Sequence[str]) -> dict[int, str]:
    """Return the episodes that the copy goes without, and why."""
    dropped, filters = dict(checked.findings.dropped), checked.exam.filters
    for name in drop:
        if name not in filters:
            raise UnknownName("filter", name, filters)
        for index in checked.findings.filters.get(name, ()):
            dropped.setdefault(index, f"{name}: {filters[name]}")
    return dropped


def _id(record: Any) -> Any:
    return record.get("episode_id") if isinstance(record, dict) else None
