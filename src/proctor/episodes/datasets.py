"""Files of episodes: reading them strictly, writing them back.

The native format is `{"episodes": [{"episode_id": ..., "scene_id": ..., ...}]}` with the fields of `Episode`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import convert, read_json, write_atomically
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.episodes.vln import Episode

REQUIRED_KEYS = (
    "episode_id",
    "scene_id",
    "start_position",
    "start_rotation",
    "goal_position",
    "instruction",
)


CHECKSUMS = "checksums.json"
"""Beside the episodes of a frozen exam: the SHA-256 of each of its files, by name."""


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes in the order of their file, with scene paths made absolute."""

    path: Path
    episodes: list[Episode]
    digest: str
    """SHA-256 of the episode file."""

    def select(
        self, *, split: str | None = None, count: int | None = None, episode_id: str | None = None
    ) -> list[Episode]:
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


def load_dataset(path: Path, *, scenes: Path | None = None) -> Dataset:
    """Read a native episode file, or a folder that holds an `episodes.json`.

    Args:
        path: The file or folder.
        scenes: A folder with the scenes, where they are not beside the episodes.

    Raises:
        InvalidFile: Something in it is wrong; the message says what and where.
    """
    try:
        file = path / "episodes.json" if path.is_dir() else path
    except OSError as error:
        raise InvalidFile(path, f"cannot be read: {error.strerror}") from None
    _check_frozen(file.parent)
    value = read_json(file)
    _check_required(value, file)
    episodes = convert(value, _EpisodeFile, file).episodes
    if not episodes:
        raise InvalidFile(file, "expected at least one episode, found none", place="episodes")
    first_index: dict[str, int] = {}
    for index, episode in enumerate(episodes):
        if episode.episode_id in first_index:
            other = first_index[episode.episode_id]
            problem = f"the id '{episode.episode_id}' is taken by episodes[{other}]"
            raise InvalidFile(file, problem, place=f"episodes[{index}].episode_id")
        first_index[episode.episode_id] = index
    located = []
    for index, episode in enumerate(episodes):
        try:
            scene = _locate_scene(episode, file.parent)
        except (OSError, ValueError) as error:
            place = f"episodes[{index}].scene_config_path"
            raise InvalidFile(file, f"no name of a file: {error}"[:120], place=place) from None
        located.append(msgspec.structs.replace(episode, scene_config_path=scene))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Dataset(path=file, episodes=located, digest=digest)


def save_dataset(episodes: Sequence[Episode], path: Path) -> None:
    """Write a native episode file that `load_dataset` reads back."""
    records = [
        {key: getattr(episode, key) for key in REQUIRED_KEYS} | msgspec.to_builtins(episode)
        for episode in episodes
    ]
    encoded = msgspec.json.encode({"episodes": records})
    write_atomically(path, msgspec.json.format(encoded, indent=1) + b"\n")


def _spread(episodes: list[Episode], count: int) -> list[Episode]:
    """Return this many episodes, one of each scene before the second of any, in their order."""
    turns: Counter[str] = Counter()
    ranks = []
    for index, episode in enumerate(episodes):
        ranks.append((turns[episode.scene_id], index))
        turns[episode.scene_id] += 1
    return [episodes[index] for index in sorted(index for _, index in sorted(ranks)[:count])]


def _check_frozen(folder: Path) -> None:
    """Refuse an exam of which a file is no longer what its checksums say."""
    checksums = folder / CHECKSUMS
    if not checksums.is_file():
        return
    for name, expected in convert(read_json(checksums), dict[str, str], checksums).items():
        file = folder / name
        found = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "nothing"
        if found != expected:
            problem = f"has changed since the exam was frozen; if that was meant, delete {checksums}"
            raise InvalidFile(file, problem)


def _check_required(value: Any, file: Path) -> None:
    """Complain about missing keys, which `Episode` itself has defaults for."""
    if not isinstance(value, dict) or not isinstance(value.get("episodes"), list):
        raise InvalidFile(file, 'expected {"episodes": [...]}')
    for index, record in enumerate(value["episodes"]):
        missing = [key for key in REQUIRED_KEYS if isinstance(record, dict) and key not in record]
        if missing and not set(record) - set(Episode.__struct_fields__):
            raise InvalidFile(file, f"the key '{missing[0]}' is missing", place=f"episodes[{index}]")


def _locate_scene(episode: Episode, folder: Path) -> str | None:
    """Return the scene file's absolute path, or None where the episode has no scene file."""
    if episode.scene_config_path is None:
        beside = folder / "scenes" / f"{episode.scene_id}.json"
        return str(beside.resolve()) if episode.scene_id and beside.is_file() else None
    beside = folder / episode.scene_config_path
    here = Path(episode.scene_config_path)
    return str((here if here.is_file() and not beside.is_file() else beside).resolve())
