"""Episodes as files of R2R-CE and RxR-CE.

What these formats have no place for, such as step limits, goes under the key `proctor` of the document, by
episode id: other readers skip it there, and ours finds it, so that the way back gives the same exam.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from proctor.core.documents import write_json
from proctor.core.errors import UserError
from proctor.core.geometry import pose_after
from proctor.core.types import Action, Pose2
from proctor.exams.episode_files import Written
from proctor.exams.vln.axes import to_habitat, xyzw_of_yaw_deg
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode, Origin
from proctor.exams.vln.files import with_relative_scenes
from proctor.exams.vln.gt import TURNS_DEG, gt_name
from proctor.exams.vln.vlnce import Extra, Format, usual_turn_deg

SAME_PLACE_M = 0.02


def to_vlnce(episodes: Sequence[Episode], format_: Format) -> dict[str, Any]:
    """Return the content of an episode file of VLN-CE, without tokens."""
    routes: dict[Any, int] = {}
    records, extras = [], {}
    for episode in episodes:
        if episode.start_rotation.x or episode.start_rotation.y:
            raise UserError(f"episode '{episode.episode_id}' starts tilted, which {format_} does not know")
        origin = episode.origin or Origin(format=format_, scene_id=episode.scene_id)
        route = routes.setdefault(
            (episode.scene_id, episode.start_position, episode.goal_position), len(routes) + 1
        )
        record: dict[str, Any] = {
            "episode_id": _id(episode.episode_id, format_),
            "trajectory_id": _id(str(route), format_)
            if origin.trajectory_id is None
            else origin.trajectory_id,
            "scene_id": origin.scene_id,
            "start_position": to_habitat(episode.start_position),
            "start_rotation": xyzw_of_yaw_deg(episode.start_rotation.z),
            "instruction": _instruction(episode, origin, format_),
        }
        if episode.goal_position is not None:
            own_m = episode.success_threshold
            radius_m = DEFAULT_SUCCESS_THRESHOLD_M if own_m is None else own_m
            record["goals"] = [{"position": to_habitat(episode.goal_position), "radius": radius_m}]
        if origin.waypoints is not None:
            record["reference_path"] = [to_habitat(point) for point in origin.waypoints]
        if origin.geodesic_distance is not None:
            record["info"] = {"geodesic_distance": origin.geodesic_distance}
        records.append(record)
        if (extra := _extra(episode, format_)) != Extra():
            extras[episode.episode_id] = extra
    # VLN-CE's reader of R2R asks for the vocabulary, though only its own models do for the words in it.
    vocabulary: dict[str, Any] = {"instruction_vocab": {"word_list": []}} if format_ == "r2r-ce" else {}
    return {"episodes": records, **vocabulary, **({"proctor": extras} if extras else {})}


def to_gt(episodes: Sequence[Episode], format_: Format) -> dict[str, Any]:
    """Return the content of the gt file of all episodes that have a reference path.

    Reference actions that are not of one drive with the path stand with the episodes, see `Extra`.
    """
    entries: dict[str, Any] = {}
    for episode in episodes:
        if episode.reference_path is None:
            continue
        actions = _their_actions(episode, usual_turn_deg(format_)) if _is_of_one_drive(episode) else []
        entries[episode.episode_id] = {
            "locations": [to_habitat(point) for point in episode.reference_path],
            "actions": actions,
            "forward_steps": len(episode.reference_path) - 1,
        }
    return entries


def save_vlnce(episodes: Sequence[Episode], path: Path, format_: Format) -> Path | None:
    """Write an episode file and, if any episode has a reference path, the gt file, which is returned."""
    document, gt = to_vlnce(episodes, format_), to_gt(episodes, format_)
    write_json(path, document)
    if not gt:
        return None
    beside = gt_name(path)
    write_json(beside, gt)
    return beside


def write_vlnce(episodes: Sequence[Episode], path: Path, *, format_: Format) -> Written:
    """Write episodes as `save_vlnce` does, with paths of scenes that hold from the new folder."""
    moved = with_relative_scenes(episodes, path.parent)
    gt = save_vlnce(moved, path, format_)
    return Written([path, gt] if gt else [path], writing_notes(moved, format_))


def writing_notes(episodes: Sequence[Episode], format_: Format) -> list[str]:
    """Return what people should know who give such a file to other programs."""
    assumed = sum(e.success_threshold is None and e.goal_position is not None for e in episodes)
    kept = sum(_extra(e, format_) != Extra() for e in episodes)
    lost = sum(e.origin is not None and e.origin.instruction_id is not None for e in episodes)
    notes = []
    if assumed:
        radius = f"radius {DEFAULT_SUCCESS_THRESHOLD_M} m, the default of a run"
        notes.append(f"{assumed} of {len(episodes)} episodes have no success_threshold: written as {radius}")
    if kept:
        what = "step limits, levels, splits, languages or reference actions that the format has no place for"
        notes.append(f"{kept} of {len(episodes)} episodes have {what}: kept under the key 'proctor'")
    if lost and format_ == "r2r-ce":
        notes.append(f"{lost} of {len(episodes)} episodes lose their instruction id, which is RxR's")
    return notes


def _extra(episode: Episode, format_: Format) -> Extra:
    """Return what the format has no place for."""
    native = episode.origin is None
    return Extra(
        native=native,
        default_threshold=episode.success_threshold is None,
        max_steps=episode.max_steps,
        level=episode.level,
        split=episode.split,
        language=episode.language if format_ == "r2r-ce" and episode.language != "en" else None,
        scene_config_path=episode.scene_config_path if native else None,
        reference_actions=None if _is_of_one_drive(episode) else episode.reference_actions,
    )


def _is_of_one_drive(episode: Episode) -> bool:
    """Tell whether the reference actions, if any, can stand in a gt beside the reference path."""
    if episode.reference_actions is None or episode.reference_path is None:
        return episode.reference_actions is None
    return episode.origin is not None or _drives_along(episode)


def _instruction(episode: Episode, origin: Origin, format_: Format) -> dict[str, Any]:
    if format_ == "r2r-ce":
        return {"instruction_text": episode.instruction}
    if origin.instruction_id is None:
        raise UserError(f"episode '{episode.episode_id}' has no instruction id, which RxR-CE needs")
    return {
        "instruction_id": origin.instruction_id,
        "instruction_text": episode.instruction,
        "language": episode.language,
    }


def _drives_along(episode: Episode) -> bool:
    """Tell whether the reference actions lead from point to point of the reference path, one per move."""
    path, actions = episode.reference_path or [], episode.reference_actions or []
    if len(path) != actions.count(Action.FORWARD) + 1:
        return False
    pose, points = Pose2(path[0].x, path[0].y, episode.start_yaw), iter(path[1:])
    for action in actions:
        pose = pose_after(action, pose)
        if action is Action.FORWARD:
            point = next(points)
            if math.hypot(pose.x - point.x, pose.y - point.y) > SAME_PLACE_M:
                return False
    return True


def _their_actions(episode: Episode, turn_deg: int) -> list[int]:
    """Undo `actions_of`: as many of their turns as make up each run of ours."""
    per_turn = turn_deg // TURNS_DEG[0]
    theirs: list[int] = []
    for action, run in groupby(episode.reference_actions or []):
        count = len(list(run))
        if action in (Action.LEFT, Action.RIGHT):
            if count % per_turn:
                problem = f"its reference turns by {count * TURNS_DEG[0]} degrees at once"
                raise UserError(f"episode '{episode.episode_id}': {problem}, RxR-CE only by multiples of 30")
            count //= per_turn
        theirs += [int(action)] * count
    return theirs


def _id(text: str, format_: Format) -> int | str:
    """Return an id as the dataset writes it: R2R's are integers."""
    is_number = len(text) < 16 and text.isdecimal() and str(int(text)) == text
    return int(text) if format_ == "r2r-ce" and is_number else text
