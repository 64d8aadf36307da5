"""What an exam says about its files of episodes, and the native format, which is read strictly.

A file is `{"episodes": [{"episode_id": ..., "task_type": ..., ...}]}`, a list of episodes, or a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from proctor.core.documents import BYTE_ORDER_MARK, convert, parse_json
from proctor.core.errors import InvalidFile, did_you_mean

if TYPE_CHECKING:
    from proctor.exams.checked_dataset import CheckedDataset

T = TypeVar("T")
EpisodeT = TypeVar("EpisodeT")

TAG = "task_type"  # the key that names an episode's exam
EPISODES = "episodes"
SNIFFED = 8  # so many episodes are looked at to find out what a file holds


class Loaded(NamedTuple, Generic[EpisodeT]):
    """What `Exam.load` found in a file of episodes."""

    episodes: Sequence[EpisodeT]
    format: str = "native"
    notes: Sequence[str] = ()
    """What a reader should know, such as a missing reference."""
    files: Mapping[Path, bytes] = {}
    """Further files that were read, as they are stored; the dataset's digest covers them in this order."""


class Written(NamedTuple):
    """What a writer of another format wrote."""

    files: Sequence[Path]
    notes: Sequence[str] = ()
    """What people should know who give these files to other programs."""


Writer: TypeAlias = Callable[[Sequence[Any], Path], Written]
"""Writes episodes as a new file."""


class EpisodeFiles(Generic[EpisodeT]):
    """What of an exam concerns its files. Only `name` and `episode` must be given."""

    name: ClassVar[str]
    """In files, messages and results."""
    episode: ClassVar[type[Any]]
    """A msgspec struct with at least `episode_id`, `scene_id`, `instruction`, `step_limit`, `language` and
    `split`."""
    is_untagged: ClassVar[bool] = False
    """Whether files and messages that name no exam are of this one."""
    formats: ClassVar[Mapping[str, Writer]] = {}
    """Formats other than the native one that `proctor convert` writes, by name."""
    filters: ClassVar[Mapping[str, str]] = {}
    """Kinds of findings by which `check-dataset --drop` leaves episodes out, and what they mean."""

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Tell whether an episode of a file is of this exam, though it has no `task_type` that says so."""
        return False

    @classmethod
    def read(cls, record: Any, file: Path, place: str) -> EpisodeT:
        """Read one episode of a native file, each of its values by itself.

        `place` is where it stands in the file, such as `episodes[3]`. Raises InvalidFile, which says
        what is wrong and where.
        """
        episode: EpisodeT = read_record(record, cls.episode, file, place, exam=cls.name)
        return episode

    @classmethod
    def problems(cls, episode: EpisodeT) -> Iterator[tuple[str, str]]:
        """Yield where values of an episode contradict each other, and how: a file with one is refused."""
        return iter(())

    @classmethod
    def locator(cls, file: Path, scenes: Path | None) -> Callable[[EpisodeT], EpisodeT]:
        """Return a function that makes the paths in an episode of this file absolute.

        It raises InvalidFile, with a place within the episode, if a value cannot be a path. `scenes` is a
        folder with the scenes, if they are not beside the episodes.
        """
        return lambda episode: episode

    @classmethod
    def load(cls, raw: bytes, file: Path, scenes: Path | None) -> Loaded[EpisodeT]:
        """Read the unpacked content `raw` of a file. Exams with formats of their own override it.

        `scenes` is a folder with the scenes, if they are not beside the episodes. Raises InvalidFile,
        which says what is wrong and where.
        """
        return Loaded(native_episodes(raw, file, cls, scenes))

    @classmethod
    def document(cls, episodes: Sequence[EpisodeT], folder: Path) -> dict[str, Any]:
        """Return episodes as the JSON of a native file in a folder, where the paths in them must hold."""
        return {"episodes": [{TAG: cls.name, **msgspec.to_builtins(episode)} for episode in episodes]}

    @classmethod
    def companions(cls, file: Path) -> Sequence[Path]:
        """Return what files beside a file of episodes would be read with it, by their names."""
        return ()

    @classmethod
    def read_broken(cls, checked: CheckedDataset) -> None:
        """Read all that can be read for `check-dataset`. Exams with formats of their own override it."""
        checked.read_native()

    @classmethod
    def moved_record(
        cls, record: dict[str, Any], episode: EpisodeT, file: Path, folder: Path
    ) -> dict[str, Any]:
        """Return an episode's JSON for a copy of its file in another folder, where its paths must hold."""
        return record

    @classmethod
    def composition(cls, episodes: Sequence[EpisodeT]) -> list[str]:
        """Return lines that say how many episodes of which sort there are."""
        return []

    @classmethod
    def scene_files(cls, episodes: Sequence[EpisodeT]) -> Iterator[Path]:
        """Yield every file that the worlds of these episodes are made of, each once, in a fixed order."""
        return iter(())


class _Tagged(msgspec.Struct):
    task_type: Any = None


class _RawFile(msgspec.Struct):
    episodes: list[msgspec.Raw]


def raw_records(raw: bytes) -> list[msgspec.Raw]:
    """Return the episodes of a document without decoding them; none if it is broken."""
    text = raw.removeprefix(BYTE_ORDER_MARK)
    try:
        if text.lstrip()[:1] == b"[":
            return msgspec.json.decode(text, type=list[msgspec.Raw])
        if b'"episodes"' in text:
            return msgspec.json.decode(text, type=_RawFile).episodes
        return [msgspec.Raw(text)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []  # whoever reads it will say what is wrong


def place_of(raw: bytes, index: int) -> str:
    """Return where an episode stands in a document that `raw_records` could read."""
    text = raw.removeprefix(BYTE_ORDER_MARK).lstrip()
    return f"[{index}]" if text[:1] == b"[" else f"episodes[{index}]" if b'"episodes"' in text else ""


def first_records(records: Sequence[msgspec.Raw], count: int = SNIFFED) -> list[Any]:
    """Return the first of these episodes, decoded; none if one is broken."""
    try:
        return [msgspec.json.decode(record) for record in records[:count]]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []


def tags_of(records: Sequence[msgspec.Raw]) -> list[str]:
    """Return the names of exams that episodes give."""
    tags = []
    for record in records:
        try:
            tag = msgspec.json.decode(record, type=_Tagged).task_type
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(tag, str):
            tags.append(tag)
    return tags


def records_of(document: Any, file: Path, type_: type[msgspec.Struct]) -> list[tuple[Any, str]]:
    """Return the episodes of a JSON document, or the one of `type_` that it is, with their places."""
    if isinstance(document, list) and document:
        return [(record, f"[{index}]") for index, record in enumerate(document)]
    if isinstance(document, dict):
        records = document.get(EPISODES)
        if isinstance(records, list):
            if not records:
                raise InvalidFile(file, "expected at least one episode, found none", place=EPISODES)
            return [(record, f"episodes[{index}]") for index, record in enumerate(records)]
        if EPISODES not in document and keys_of(type_) & document.keys():
            return [(document, "")]
    raise InvalidFile(file, 'expected {"episodes": [...]}')


def native_episodes(raw: bytes, file: Path, exam: type[EpisodeFiles[T]], scenes: Path | None) -> list[T]:
    """Read a native file strictly, by the `read`, `problems` and `locator` of an exam."""
    document = parse_json(raw, file)
    records = records_of(document, file, exam.episode)
    if isinstance(document, dict) and EPISODES in document:
        for key in sorted(document.keys() - {EPISODES}):
            raise InvalidFile(file, f"unknown key '{key[:40]}'{did_you_mean(key, [EPISODES])}")
    episodes, locate = [], exam.locator(file, scenes)
    for record, place in records:
        episode = exam.read(record, file, place)
        for inner, problem in exam.problems(episode):
            raise InvalidFile(file, problem, place=within(place, inner))
        episodes.append(located(episode, locate, file, place))
    return episodes


def located(episode: T, locate: Callable[[T], T], file: Path, place: str) -> T:
    """Return an episode as its locator does, whose errors get the file and the place of the episode."""
    try:
        return locate(episode)
    except InvalidFile as error:
        raise InvalidFile(file, error.problem, place=within(place, error.place)) from None


def read_record(
    record: Any, type_: type[T], file: Path, place: str, *, exam: str, required: Sequence[str] | None = None
) -> T:
    """Return an episode of a file as a struct, each value checked by itself.

    Its `task_type`, if any, must be `exam`. By default the struct's fields without defaults are `required`.
    """
    if not isinstance(record, dict):
        return convert(record, type_, file, place=place)
    struct: Any = type_
    tag, keys = record.get(TAG), keys_of(struct)
    if isinstance(tag, str) and tag != exam:
        problem = f"expected '{exam}', found '{tag[:40]}'{did_you_mean(tag, [exam])}"
        raise InvalidFile(file, problem, place=within(place, TAG))
    if tag == exam and TAG not in keys:
        record = {key: value for key, value in record.items() if key != TAG}
    unknown = [key for key in record if key not in keys]
    if unknown:
        problem = f"unknown key '{unknown[0][:40]}'{did_you_mean(unknown[0], keys)}"
        raise InvalidFile(file, problem, place=place)
    for key in required_keys(struct) if required is None else required:
        if key not in record:
            raise InvalidFile(file, f"the key '{key}' is missing", place=place)
    return convert(record, type_, file, place=place)


def within(place: str, inner: str) -> str:
    """Return the place of a part of an episode."""
    return f"{place}.{inner}" if place else inner


@cache
def keys_of(type_: Any) -> frozenset[str]:
    """Return the keys of a struct in files."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(type_))


@cache
def required_keys(type_: Any) -> list[str]:
    """Return the keys of a struct's fields that have no default."""
    return [field.encode_name for field in msgspec.structs.fields(type_) if field.required]
