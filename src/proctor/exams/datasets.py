"""Files of episodes: reading them strictly, writing them back.

The native format is `{"episodes": [{"episode_id": ..., "scene_id": ..., ...}]}` with the fields of `Episode`
or of `PickAndPlaceEpisode`.
Files of R2R-CE and RxR-CE are recognised by what is in them, packed with gzip or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from proctor.core.documents import convert, parse_json, read_bytes, read_json, write_json
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.files import document_of, pick_place_document, read_pick_place, records_of
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.vlnce import is_vlnce, load_vlnce
from proctor.scenes.mesh_files import MESH_SUFFIXES
from proctor.scenes.mesh_scene import find_scene

REQUIRED_KEYS = (
    "episode_id",
    "scene_id",
    "start_position",
    "start_rotation",
    "goal_position",
    "instruction",
)

AnyEpisode = Episode | PickAndPlaceEpisode
"""Of whatever task: all have an `episode_id`, `scene_id`, `split`, `step_limit`, `language` and `task`."""
E = TypeVar("E", Episode, PickAndPlaceEpisode)

CHECKSUMS = "checksums.json"
"""Beside the episodes of a frozen exam: the SHA-256 of each of its files, by name."""


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one task in the order of their file, with paths of scenes and assets made absolute."""

    path: Path
    episodes: list[AnyEpisode]
    digest: str
    """SHA-256 of the episode file, and of the gt file where there is one."""
    format: Literal["native", "r2r-ce", "rxr-ce"] = "native"
    notes: list[str] = []
    """What a reader should know, such as a missing gt."""
    scenes: Path | None = None
    """The folder in which the scenes were looked for, if one was given."""

    @property
    def task(self) -> str:
        """The name of the task: `vln` or `pick_and_place`."""
        return self.episodes[0].task if self.episodes else Episode.task

    def of(self, kind: type[E]) -> list[E]:
        """Return the episodes, for what can be done with one task only.

        Raises:
            UserError: They are of another task.
        """
        found = [episode for episode in self.episodes if isinstance(episode, kind)]
        if len(found) != len(self.episodes):
            raise UserError(f"{self.path}: expected episodes of the task {kind.task}, found {self.task}")
        return found

    def select(
        self, *, split: str | None = None, count: int | None = None, episode_id: str | None = None
    ) -> list[Any]:
        """Return a split, `count` of its episodes taken from all scenes in turn, or the one with this id.

        Raises:
            UnknownName: No episode has this id or split.
            UserError: The count is below 1.
        """
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
        return episodes if count is None else _spread(episodes, count)


class _EpisodeFile(msgspec.Struct, forbid_unknown_fields=True):
    episodes: list[Episode]


class _AnyFile(msgspec.Struct):
    episodes: list[msgspec.Raw]


def load_dataset(path: Path, *, scenes: Path | None = None) -> Dataset:
    """Read a file of episodes, or a folder that holds one: native (of any task), R2R-CE or RxR-CE.

    Args:
        path: The file or folder.
        scenes: A folder with the scenes, or the things, where they are not beside the episodes.

    Raises:
        InvalidFile: Something in it is wrong; the message says what and where.
    """
    if scenes is not None and not scenes.is_dir():
        raise UserError(f"{scenes} is no folder; scenes are looked for in a folder")
    file = episode_file(path)
    check_frozen(file.parent)
    raw = read_bytes(file)
    format_: Literal["native", "r2r-ce", "rxr-ce"] = "native"
    notes: list[str] = []
    files = [file]
    episodes: Sequence[AnyEpisode]
    if (document := pick_place_document(raw, file)) is not None:
        episodes = read_pick_place(document, file, scenes)
        _check_ids(episodes, file, [place for _, place in records_of(document)])
    else:
        if holds_vlnce(raw):
            format_, walks, notes, files = load_vlnce(raw, file)
        else:
            walks = _native_episodes(parse_json(raw, file), file)
        if not walks:
            raise InvalidFile(file, "expected at least one episode, found none", place="episodes")
        _check_ids(walks, file, [f"episodes[{index}]" for index in range(len(walks))])
        episodes = locate_scenes(walks, file, scenes)
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()
    return Dataset(
        path=file, episodes=list(episodes), digest=digest, format=format_, notes=notes, scenes=scenes
    )


def episode_file(path: Path) -> Path:
    """Return the file of episodes that a path means: itself, or the one in the folder.

    Raises:
        InvalidFile: The folder holds none, or several.
    """
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


def holds_vlnce(raw: bytes) -> bool:
    """Tell whether a document, as `read_bytes` returned it, holds episodes of VLN-CE."""
    try:
        records = msgspec.json.decode(raw, type=_AnyFile).episodes
        return any(is_vlnce(msgspec.json.decode(record)) for record in records[:8])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False  # whoever reads it will say what is wrong


def locate_scenes(episodes: Sequence[Episode], file: Path, scenes: Path | None) -> list[Episode]:
    """Return the episodes with absolute paths of their scene files, or None where there is no such file.

    Raises:
        InvalidFile: A path is none.
    """
    located, locate = [], scene_locator(file, scenes)
    for index, episode in enumerate(episodes):
        try:
            located.append(locate(episode))
        except ValueError as error:
            raise InvalidFile(file, str(error), place=f"episodes[{index}].scene_config_path") from None
    return located


def scene_locator(file: Path, scenes: Path | None) -> Callable[[Episode], Episode]:
    """Return a function that sets the path of an episode's scene file, and looks for each scene only once.

    The function raises a ValueError if the path is none.

    Args:
        file: The file of the episodes.
        scenes: A folder with the scenes, where they are not beside the episodes.
    """

    @cache
    def find(path: str | None, scene_id: str) -> str | None:
        try:
            scene = _find_beside(file.parent, scene_id) if path is None else _locate_scene(path, file.parent)
        except (OSError, ValueError) as error:
            raise ValueError(f"no name of a file: {error}"[:120]) from None
        if scenes is not None and (scene is None or not Path(scene).is_file()):
            found = find_scene(scenes, path or scene_id)
            scene = str(found) if found else scene
        return scene

    def locate(episode: Episode) -> Episode:
        scene = find(episode.scene_config_path, (episode.origin or episode).scene_id)
        if scene == episode.scene_config_path:
            return episode
        return msgspec.structs.replace(episode, scene_config_path=scene)

    return locate


def save_dataset(episodes: Sequence[Episode] | Sequence[PickAndPlaceEpisode], path: Path) -> None:
    """Write a native episode file that `load_dataset` reads back."""
    walks = [episode for episode in episodes if isinstance(episode, Episode)]
    picks = [episode for episode in episodes if isinstance(episode, PickAndPlaceEpisode)]
    if walks and picks:
        raise UserError(f"{path}: expected episodes of one task, found {Episode.task} and {picks[0].task}")
    if picks:
        write_json(path, document_of(picks, path.parent))
        return
    write_json(path, document_of_walks(walks))


def document_of_walks(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return what a native file of navigation episodes holds."""
    return {
        "episodes": [
            {key: getattr(episode, key) for key in REQUIRED_KEYS} | msgspec.to_builtins(episode)
            for episode in episodes
        ]
    }


def _native_episodes(value: Any, file: Path) -> list[Episode]:
    check_required(value, file)
    return convert(value, _EpisodeFile, file).episodes


def _check_ids(episodes: Sequence[AnyEpisode], file: Path, places: Sequence[str]) -> None:
    first_place: dict[str, str] = {}
    for episode, place in zip(episodes, places, strict=True):
        other = first_place.setdefault(episode.episode_id, place)
        if other != place:
            problem = f"the id '{episode.episode_id}' is taken by {other}"
            raise InvalidFile(file, problem, place=f"{place}.episode_id")


def _spread(episodes: list[AnyEpisode], count: int) -> list[AnyEpisode]:
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


def check_required(value: Any, file: Path) -> None:
    """Complain about missing keys, which `Episode` itself has defaults for."""
    if not isinstance(value, dict) or not isinstance(value.get("episodes"), list):
        is_gt = "_gt.json" in file.name
        hint = "; this looks like a gt file: give the episodes, it is found beside them" if is_gt else ""
        raise InvalidFile(file, f'expected {{"episodes": [...]}}{hint}')
    for index, record in enumerate(value["episodes"]):
        missing = [key for key in REQUIRED_KEYS if isinstance(record, dict) and key not in record]
        if missing and not set(record) - set(Episode.__struct_fields__):
            raise InvalidFile(file, f"the key '{missing[0]}' is missing", place=f"episodes[{index}]")


def _locate_scene(path: str, folder: Path) -> str:
    """Return the absolute path of the scene file that an episode names."""
    beside, here = folder / path, Path(path)
    return str((here if here.is_file() and not beside.is_file() else beside).resolve())


def _find_beside(folder: Path, scene_id: str) -> str | None:
    """Return the scene of an episode that names none: in `scenes` beside the dataset, or a mesh right there.

    Files beside the dataset that end with .json are episodes rather than scenes.
    """
    own = folder / "scenes" / f"{scene_id}.json"
    if scene_id and own.is_file():
        return str(own.resolve())
    found = find_scene(folder / "scenes", scene_id) or find_scene(folder, scene_id, suffixes=MESH_SUFFIXES)
    return str(found.resolve()) if found is not None else None
