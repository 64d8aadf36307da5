"""Datasets of any exam: reading them strictly, writing them, checking them before a run.

A file is `{"episodes": [{"episode_id": ..., ...}]}`, packed with gzip or not; the exam reads the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.core.documents import convert, read_json, read_packed, unpack, write_atomically, write_json
from proctor.core.errors import InvalidFile, MissingDependency, UnknownName, UserError
from proctor.exams.episode_files import (
    SNIFFED,
    TAG,
    Written,
    first_records,
    place_of,
    raw_records,
    tags_of,
    within,
)
from proctor.exams.findings import EpisodesToCheck, places_of
from proctor.exams.names import AnyExam, all_exams, exam_named, exam_names, exam_of_record

T = TypeVar("T")

CHECKSUMS = "checksums.json"
"""Beside the episodes of a frozen exam: the SHA-256 of each of its files, by name."""


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one task in the order of their file, with paths of scenes and assets made absolute."""

    path: Path
    exam: type[AnyExam]
    episodes: list[Any]
    digest: str
    """SHA-256 of the file, and of those that were read with it."""
    format: str = "native"
    notes: list[str] = []
    """What a reader should know, such as a missing reference."""
    scenes: Path | None = None
    """The folder in which the scenes were looked for, if one was given."""

    @property
    def task(self) -> str:
        """The name of the exam."""
        return self.exam.name

    def select(
        self, *, split: str | None = None, count: int | None = None, episode_id: str | None = None
    ) -> list[Any]:
        """Return a split, `count` of its episodes taken from all scenes in turn, or the one with this id."""
        if episode_id is not None:
            found = [episode for episode in self.episodes if episode.episode_id == episode_id]
            if not found:
                raise UnknownName("episode", episode_id, [e.episode_id for e in self.episodes])
            return found
        if count is not None and count < 1:
            raise UserError(f"expected at least 1 episode, found {count}")
        episodes = [episode for episode in self.episodes if split in (None, episode.split)]
        if not episodes:
            raise UnknownName("split", str(split), {e.split for e in self.episodes if e.split is not None})
        return episodes if count is None else spread(episodes, count)


def load_dataset(path: Path, *, scenes: Path | None = None) -> Dataset:
    """Read a file of episodes, or a folder that holds one, of any exam.

    `scenes` is a folder with the scenes, or the objects, if they are not beside the episodes. InvalidFile
    says what is wrong in the file and where.
    """
    check_scenes_folder(scenes)
    file = episode_file(path)
    check_frozen(file.parent)
    packed = read_packed(file)
    raw = unpack(packed, file)
    exam = exam_of_file(raw, file)
    try:
        loaded = exam.load(raw, file, scenes)
    except InvalidFile:
        _refuse_two_exams(raw, exam, file)
        raise
    _check_ids(loaded.episodes, file, raw)
    digest = hashlib.sha256(packed)
    for content in loaded.files.values():
        digest.update(content)
    return Dataset(
        path=file,
        exam=exam,
        episodes=list(loaded.episodes),
        digest=digest.hexdigest(),
        format=loaded.format,
        notes=list(loaded.notes),
        scenes=scenes,
    )


def check_scenes_folder(scenes: Path | None) -> None:
    """Refuse a folder of scenes that is not there."""
    if scenes is not None and not scenes.is_dir():
        raise UserError(f"--scenes: {scenes} is not a directory")


def exam_of_file(raw: bytes, file: Path) -> type[AnyExam]:
    """Return the exam of a file: the one that an episode names, else that of the first one known."""
    records = raw_records(raw)
    tags = tags_of(records) if b'"task_type"' in raw else []
    return _exam_of(tags, first_records(records), file, partial(place_of, raw))


def exam_of_document(document: Any, file: Path) -> type[AnyExam]:
    """Return what `exam_of_file` does of a parsed document, which may hold NaN though that is not JSON."""
    records = document.get("episodes", [document]) if isinstance(document, dict) else document
    records = records if isinstance(records, list) else []
    tags = [
        record[TAG] for record in records if isinstance(record, dict) and isinstance(record.get(TAG), str)
    ]
    return _exam_of(tags, records[:SNIFFED], file, "episodes[{}]".format)


def _exam_of(
    tags: Sequence[str], records: Sequence[Any], file: Path, place: Callable[[int], str]
) -> type[AnyExam]:
    known = exam_names() if tags else []
    if found := next((tag for tag in tags if tag in known), None):
        return exam_named(found)
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            continue
        try:
            exam = exam_of_record(record)
        except UnknownName as error:
            raise InvalidFile(file, str(error), place=within(place(index), TAG)) from None
        if exam.recognises(record):
            return exam
    return exam_named("")  # whoever reads it will say what is wrong


def foreign_problem(record: Any, exam: type[AnyExam]) -> str:
    """Return what to say of an episode that is of another exam than its file; nothing if it is not."""
    if not isinstance(record, dict) or exam.recognises(record):
        return ""
    try:
        other = exam_of_record(record)
    except UnknownName:
        return ""
    if other is exam or not (record.get(TAG) == other.name or other.recognises(record)):
        return ""
    found = other.title or other.name
    return f"a file holds one task: expected {exam.name} as in other episodes, found {found}"


def _refuse_two_exams(raw: bytes, exam: type[AnyExam], file: Path) -> None:
    """Complain of an episode of another exam, if that is why a file could not be read."""
    records = raw_records(raw)
    for index, record in enumerate(first_records(records, len(records))):
        if problem := foreign_problem(record, exam):
            raise InvalidFile(file, problem, place=place_of(raw, index))


def save_dataset(episodes: Sequence[Any], path: Path) -> None:
    """Write a native file of episodes of one exam, which `load_dataset` reads back."""
    exams = list(dict.fromkeys(exam_of_type(type_) for type_ in dict.fromkeys(map(type, episodes))))
    if len(exams) > 1:
        names = " and ".join(exam.name for exam in exams)
        raise UserError(f"{path}: expected episodes of one task, found {names}")
    exam = exams[0] if exams else exam_named("")
    write_json(path, exam.document(episodes, path.parent))


def write_native(episodes: Sequence[Any], path: Path) -> Written:
    """Write episodes as `save_dataset` does, as one of the formats of `proctor convert`."""
    save_dataset(episodes, path)
    return Written([path])


def exam_of_type(type_: type) -> type[AnyExam]:
    """Return the exam whose episodes are of this type; raise UserError if there is none."""
    for exam in all_exams():
        if issubclass(type_, exam.episode):
            return exam
    raise UserError(f"expected episodes of an exam that is installed, found {type_.__name__}")


def episodes_of(dataset: Dataset, type_: type[T]) -> list[T]:
    """Return the episodes if they are of this type, else raise UserError."""
    if not issubclass(dataset.exam.episode, type_):
        expected = exam_of_type(type_).name
        raise UserError(f"{dataset.path}: expected episodes of the task {expected}, found {dataset.task}")
    return dataset.episodes


def check_before_run(
    exam: AnyExam,
    dataset: Dataset,
    episodes: Sequence[Any],
    *,
    needs_scene: bool,
    left: Collection[Any] | None = None,
) -> list[str]:
    """Check the episodes of a run, and return what people should know before they trust its numbers.

    `needs_scene` says that its env cannot do an episode without a scene. `left` are the episodes still to be
    done, if not all: only their errors matter, and raise InvalidFile.
    """
    index_of = {episode.episode_id: index for index, episode in enumerate(dataset.episodes)}
    to_do = {index_of[episode.episode_id] for episode in (episodes if left is None else left)}
    given: EpisodesToCheck[Any] = EpisodesToCheck(
        {index_of[episode.episode_id]: episode for episode in episodes},
        path=dataset.path,
        format=dataset.format,
        scenes=dataset.scenes,
        is_run=True,
        needs_scene=needs_scene,
    )
    notes = []
    for finding in exam.check(given):
        if finding.severity != "error":
            notes.append(finding.text)
        elif not finding.episodes or to_do.intersection(finding.episodes):
            place = next(iter(finding.places or places_of(finding.episodes)), "")
            raise InvalidFile(dataset.path, finding.text, place=place)
    return notes


def check_in_env(
    check: Callable[[Sequence[Any]], Sequence[str] | None], dataset: Dataset, episodes: Sequence[Any]
) -> list[str]:
    """Let an env look at episodes by its `check`, and return its notes; its UserErrors become InvalidFile."""
    try:
        return list(check(episodes) or ())
    except (InvalidFile, MissingDependency):
        raise
    except UserError as error:
        raise InvalidFile(dataset.path, str(error)) from None


def episode_file(path: Path) -> Path:
    """Return the file of episodes that a path means: itself, or the only one in the folder."""
    try:
        if not path.is_dir():
            return path
        if (path / "episodes.json").is_file():
            return path / "episodes.json"
        if (own := path / f"{path.resolve().name}.json.gz").is_file():
            return own
        found = sorted([*path.glob("*.json.gz"), *path.glob("*/*.json.gz")])
    except (OSError, ValueError) as error:
        raise InvalidFile(path, f"cannot be read: {error}") from None
    files = [file for file in found if not file.name.endswith("_gt.json.gz")]
    if len(files) == 1:
        return files[0]
    names = ", ".join(str(file.relative_to(path)) for file in files[:8])
    problem = (
        f"holds several files of episodes, give one of them: {names}"
        if files
        else ("holds no episodes: expected an episodes.json, or a {split}.json.gz")
    )
    raise InvalidFile(path, problem)


def stem_of(file: Path) -> str:
    """Return `val_unseen` of `val_unseen.json.gz`."""
    return file.name.removesuffix(".gz").removesuffix(".json")


def _check_ids(episodes: Sequence[Any], file: Path, raw: bytes) -> None:
    first: dict[str, int] = {}
    for index, episode in enumerate(episodes):
        other = first.setdefault(episode.episode_id, index)
        if other != index:
            problem = f"the id '{episode.episode_id}' is taken by {place_of(raw, other)}"
            raise InvalidFile(file, problem, place=within(place_of(raw, index), "episode_id"))


def spread(episodes: list[Any], count: int) -> list[Any]:
    """Return this many episodes from as many scenes as possible, and no scene's first ones only."""
    by_scene: dict[str, list[int]] = {}
    for index, episode in enumerate(episodes):
        by_scene.setdefault(episode.scene_id, []).append(index)
    # Scene k begins with its k-th episode: if all are of one plan, a sample has some of everything.
    turned = [own[(k % len(own)) :] + own[: k % len(own)] for k, own in enumerate(by_scene.values())]
    rounds = [[own[turn] for own in turned if turn < len(own)] for turn in range(max(map(len, turned)))]
    chosen: list[int] = []
    for candidates in rounds:
        picks = min(len(candidates), count - len(chosen))
        chosen += [candidates[k * len(candidates) // picks] for k in range(picks)]
    return [episodes[index] for index in sorted(chosen)]


def check_frozen(folder: Path) -> None:
    """Refuse an exam of which a file is no longer what its checksums say."""
    checksums = folder / CHECKSUMS
    if not checksums.is_file():
        return
    for name, expected in convert(read_json(checksums), dict[str, str], checksums).items():
        file = folder / name
        if not file.is_file():
            raise InvalidFile(file, f"is missing, though {checksums} names it as a part of the exam")
        if hashlib.sha256(file.read_bytes()).hexdigest() != expected:
            problem = f"has changed since the exam was frozen; if that was meant, delete {checksums}"
            raise InvalidFile(file, problem)


def freeze(folder: Path, files: Sequence[Path]) -> None:
    """Write the checksums that `check_frozen` asks for."""
    checksums = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }
    write_atomically(folder / CHECKSUMS, msgspec.json.format(msgspec.json.encode(checksums)) + b"\n")


def scenes_digest(exam: type[AnyExam], episodes: Sequence[Any]) -> str:
    """Return a hash of all files that the worlds of these episodes are made of."""
    digest = hashlib.sha256()
    for file in exam.scene_files(episodes):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
