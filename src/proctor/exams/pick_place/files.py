"""Files of pick-and-place episodes: `{"episodes": [...]}`, a list of them, or a single one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from proctor.core.documents import convert, parse_json
from proctor.core.errors import InvalidFile, did_you_mean
from proctor.exams.pick_place.episode import TASK, PickAndPlaceEpisode
from proctor.exams.pick_place.episode_checks import problems_of
from proctor.scenes.tabletop_parts import LocationType, SuccessType

OWN_KEYS = {"task_type", "task_goal", "scene_objects", "robot_config"}
"""No episode of navigation has such."""
NAVIGATION_KEYS = {"start_position", "start_rotation", "goal_position", "goals"}
CHOICES = {
    ".target_location.type": get_args(LocationType),
    ".success_criteria.type": get_args(SuccessType),
}
REQUIRED_KEYS = ("episode_id", "task_goal", "scene_objects")


def is_pick_place(record: Any) -> bool:
    """Tell whether an episode of a JSON document is one of this task."""
    return isinstance(record, dict) and bool(OWN_KEYS & record.keys()) and record.get("task_type") != "vln"


def pick_place_document(raw: bytes, file: Path) -> Any:
    """Return what `read_bytes` returned as JSON if it holds episodes of this task, else None.

    Raises:
        InvalidFile: It seems to, but is no JSON document.
    """
    if not any(f'"{key}"'.encode() in raw for key in OWN_KEYS):
        return None  # large files of other tasks need not be parsed to see that
    document = parse_json(raw, file)
    return document if any(is_pick_place(record) for record, _ in records_of(document)) else None


def records_of(document: Any) -> list[tuple[Any, str]]:
    """Return the episodes of a JSON document and where they stand in it."""
    if isinstance(document, dict) and "episodes" not in document:
        return [(document, "")]
    records = document.get("episodes") if isinstance(document, dict) else document
    prefix = "episodes" if isinstance(document, dict) else ""
    if not isinstance(records, list):
        return []
    return [(record, f"{prefix}[{index}]") for index, record in enumerate(records)]


def read_pick_place(document: Any, file: Path, assets: Path | None) -> list[PickAndPlaceEpisode]:
    """Return the episodes of what `pick_place_document` returned.

    Args:
        document: The JSON document.
        file: Where it stands.
        assets: The folder of the things' files, where they are not beside the episodes.

    Raises:
        InvalidFile: Something is wrong; the message says what and where.
    """
    if isinstance(document, dict) and "episodes" in document:
        for key in sorted(document.keys() - {"episodes"}):
            raise InvalidFile(file, f"unknown key '{key[:40]}'{did_you_mean(key, ['episodes'])}")
    episodes = []
    for record, place in records_of(document):
        episode = read_record(record, file, place)
        for inner, problem in problems_of(episode):
            raise InvalidFile(file, problem, place=f"{place}.{inner}".lstrip("."))
        episodes.append(located(episode, file, assets))
    return episodes


def read_record(record: Any, file: Path, place: str) -> PickAndPlaceEpisode:
    """Return an episode of a file, each value checked by itself.

    Args:
        record: The episode as JSON.
        file: Where it stands, for the message.
        place: Where in the file it stands.

    Raises:
        InvalidFile: Something is wrong with it.
    """
    if isinstance(record, dict):
        if not is_pick_place(record) and NAVIGATION_KEYS & record.keys():
            problem = f"a file holds one task: expected {TASK} as in other episodes, found navigation"
            raise InvalidFile(file, problem, place=place)
        task = record.get("task_type", TASK)
        if task != TASK and isinstance(task, str):
            problem = f"expected '{TASK}', found '{task[:40]}'{did_you_mean(task, [TASK])}"
            raise InvalidFile(file, problem, place=f"{place}.task_type".lstrip("."))
        missing = [key for key in REQUIRED_KEYS if key not in record]
        if missing and not record.keys() - set(PickAndPlaceEpisode.__struct_fields__):
            raise InvalidFile(file, f"the key '{missing[0]}' is missing", place=place)
    try:
        return convert(record, PickAndPlaceEpisode, file, place=place)
    except InvalidFile as error:
        found = error.problem.removeprefix("Invalid enum value ")
        for key, choices in CHOICES.items():
            if found != error.problem and error.place.endswith(key):
                problem = f"expected {' or '.join(map(repr, choices))}, found {found[:40]}"
                raise InvalidFile(file, problem + did_you_mean(found, choices), place=error.place) from None
        raise


def located(episode: PickAndPlaceEpisode, file: Path, assets: Path | None) -> PickAndPlaceEpisode:
    """Return an episode with the absolute path of its assets, which its own is relative to."""
    folder = (assets or file.parent) / (episode.assets_path or "")
    return msgspec.structs.replace(episode, assets_path=str(folder.resolve()))


def document_of(episodes: Sequence[PickAndPlaceEpisode], folder: Path) -> dict[str, Any]:
    """Return episodes as a JSON document for a folder, from where their assets must still be found."""
    always: dict[str, Any] = {"task_goal": {}, "scene_objects": []}
    records = []
    for episode in episodes:
        names = {"episode_id": episode.episode_id, "task_type": TASK, "scene_id": episode.scene_id}
        assets = relative_assets(episode, folder)
        moved = msgspec.structs.replace(episode, assets_path=assets)
        records.append(names | always | msgspec.to_builtins(moved))
    return {"episodes": records}


def relative_assets(episode: PickAndPlaceEpisode, folder: Path) -> str | None:
    """Return where an episode's assets are, seen from a folder; None if in it, or if that is left open."""
    if episode.assets_path is None:
        return None
    path = os.path.relpath(episode.assets_path, folder.resolve())
    return None if path == "." else path
