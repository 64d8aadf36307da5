"""The episodes of R2R-CE and RxR-CE: from their files into our terms, and back.

Keys that nothing here needs (tokens, vocabularies, timings) are skipped; what is used is checked strictly.
The axes are Habitat's, see `episodes.axes`. Licences forbid to ship these data: users bring their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from proctor.core.documents import decode, read_bytes, write_json
from proctor.core.errors import InvalidFile, UserError
from proctor.core.geometry import pose_after
from proctor.core.types import Action, Pose2, Vector3
from proctor.episodes.axes import (
    HEADING_OF_YAW_0_RAD,
    Quadruple,
    Triple,
    classify_rotations,
    from_habitat,
    to_habitat,
    xyzw_of_yaw_deg,
    yaw_deg_of_xyzw,
)
from proctor.episodes.gt import (
    TURNS_DEG,
    GroundTruth,
    Start,
    actions_of,
    gt_file,
    gt_name,
    mismatch,
    parse_gt,
    stem_of,
    strays,
    turn_deg_of,
)
from proctor.episodes.vln import Episode, Origin

Format = Literal["r2r-ce", "rxr-ce"]
ROLES = ("guide", "follower")
SPLITS = ("train", "val_seen", "val_unseen", "test", "test_challenge")
SAME_PLACE_M = 0.02
RADIUS_M = 3.0
"""Within which a STOP is a success, where a goal does not say it."""


class Goal(msgspec.Struct, frozen=True):
    """Where to stop."""

    position: Triple
    radius: float | None = None


class Instruction(msgspec.Struct, frozen=True):
    """What the agent is told. R2R has the text only."""

    instruction_text: str
    instruction_id: int | str | None = None
    language: str | None = None


class Info(msgspec.Struct, frozen=True):
    """What else is known."""

    geodesic_distance: float | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An episode as it stands in the file."""

    episode_id: int | str
    scene_id: str
    start_position: Triple
    start_rotation: Quadruple
    instruction: Instruction
    goals: list[Goal] | None = None
    """Missing in test splits."""
    trajectory_id: int | str | None = None
    reference_path: list[Triple] | None = None
    info: Info | None = None


class RecordFile(msgspec.Struct, frozen=True):
    """The whole file."""

    episodes: list[Record]


class Loaded(NamedTuple):
    """The episodes of a file, and what a reader should know of them."""

    format: Format
    episodes: list[Episode]
    notes: list[str]
    files: list[Path]
    """All that were read, the gt included."""


def is_vlnce(record: Any) -> bool:
    """Tell whether an episode of a JSON document is one of VLN-CE's."""
    if not isinstance(record, dict):
        return False
    return isinstance(record.get("start_position"), list) or isinstance(record.get("instruction"), dict)


def format_of(records: Sequence[Record]) -> Format:
    """Tell the two datasets apart: only RxR numbers its instructions."""
    return "rxr-ce" if any(r.instruction.instruction_id is not None for r in records) else "r2r-ce"


def split_of(file: Path) -> str | None:
    """Return the split that a file is named for, such as `val_unseen_guide.json.gz`, or None."""
    stem = stem_of(file)
    for role in ROLES:
        stem = stem.removesuffix(f"_{role}")
    return stem if stem in SPLITS else None


def usual_turn_deg(format_: Format) -> int:
    """Return by how much LEFT and RIGHT turn in a dataset's own simulator settings."""
    return TURNS_DEG[format_ == "rxr-ce"]


def scene_name(scene_id: str) -> str:
    """Return `17DRP5sb8fy` of `mp3d/17DRP5sb8fy/17DRP5sb8fy.glb`."""
    name = PurePosixPath(scene_id).name
    return name.removesuffix(".glb").removesuffix(".basis") or scene_id


def start_of(record: Record) -> Start:
    """Return where an episode begins, in Habitat's axes."""
    heading_rad = np.radians(yaw_deg_of_xyzw(record.start_rotation)) + HEADING_OF_YAW_0_RAD
    return Start(record.start_position, float(heading_rad))


def load_vlnce(raw: bytes, file: Path) -> Loaded:
    """Read episodes, and the gt file beside them if there is one.

    Args:
        raw: The file's content, unpacked.
        file: Where it came from.

    Raises:
        InvalidFile: Something is wrong in the file, or the gt is not that of these episodes.
    """
    records = decode(raw, RecordFile, file).episodes
    _check_rotations(records, file)
    format_ = format_of(records)
    starts = {str(record.episode_id): start_of(record) for record in records}
    found = gt_file(file)
    remedy = f"`proctor check-dataset {file} --fix OUT` writes a copy without them"
    gt = parse_gt(read_bytes(found), found, remedy=remedy) if found else {}
    turn_deg = turn_deg_of(starts, gt, usual=usual_turn_deg(format_)) if gt else usual_turn_deg(format_)
    if found and (problem := mismatch(starts, gt, turn_deg=turn_deg)):
        raise InvalidFile(found, problem)
    split = split_of(file)
    episodes = []
    for index, record in enumerate(records):
        try:
            episodes.append(
                episode_of(
                    record, gt.get(str(record.episode_id)), format_=format_, turn_deg=turn_deg, split=split
                )
            )
        except ValueError as error:
            raise InvalidFile(file, str(error), place=f"episodes[{index}]") from None
    notes = _notes(episodes, found)
    if far := strays(starts, gt):
        text = f"the gt of {len(far)} of {len(episodes)} episodes begins elsewhere than they do"
        notes.append(f"{text}, first that of '{far[0]}': nDTW, SDTW and CLS mean nothing there")
    return Loaded(format_, episodes, notes, [file, found] if found else [file])


def episode_of(
    record: Record, gt: GroundTruth | None, *, format_: Format, turn_deg: int, split: str | None
) -> Episode:
    """Return an episode in our terms.

    Raises:
        ValueError: It says something that an episode cannot mean.
    """
    goals = record.goals or []
    if len(goals) > 1:
        raise ValueError(f"goals: expected one goal, found {len(goals)}")
    radius_m = (goals[0].radius or RADIUS_M) if goals else RADIUS_M
    waypoints = record.reference_path
    return Episode(
        episode_id=str(record.episode_id),
        scene_id=scene_name(record.scene_id),
        start_position=from_habitat(record.start_position),
        start_rotation=Vector3(0.0, 0.0, yaw_deg_of_xyzw(record.start_rotation)),
        goal_position=from_habitat(goals[0].position) if goals else None,
        instruction=record.instruction.instruction_text,
        success_threshold=radius_m,
        reference_path=[from_habitat(point) for point in gt.locations] if gt else None,
        reference_actions=actions_of(gt, turn_deg=turn_deg) if gt and gt.actions else None,
        language=record.instruction.language or "en",
        split=split,
        origin=Origin(
            format=format_,
            scene_id=record.scene_id,
            trajectory_id=_text(record.trajectory_id),
            instruction_id=_text(record.instruction.instruction_id),
            geodesic_distance=record.info.geodesic_distance if record.info else None,
            waypoints=None if waypoints is None else [from_habitat(point) for point in waypoints],
        ),
    )


def to_vlnce(episodes: Sequence[Episode], format_: Format) -> dict[str, Any]:
    """Return the content of an episode file of VLN-CE, without tokens.

    Raises:
        UserError: An episode cannot be written in this format.
    """
    routes: dict[Any, int] = {}
    records = []
    for episode in episodes:
        if episode.start_rotation.x or episode.start_rotation.y:
            raise UserError(f"episode '{episode.episode_id}' starts tilted, which {format_} does not know")
        origin = episode.origin or Origin(format=format_, scene_id=episode.scene_id)
        route = routes.setdefault(
            (episode.scene_id, episode.start_position, episode.goal_position), len(routes) + 1
        )
        record: dict[str, Any] = {
            "episode_id": _id(episode.episode_id, format_),
            "trajectory_id": _id(origin.trajectory_id or str(route), format_),
            "scene_id": origin.scene_id,
            "start_position": to_habitat(episode.start_position),
            "start_rotation": xyzw_of_yaw_deg(episode.start_rotation.z),
            "instruction": _instruction(episode, origin, format_),
        }
        if episode.goal_position is not None:
            radius_m = episode.success_threshold or RADIUS_M
            record["goals"] = [{"position": to_habitat(episode.goal_position), "radius": radius_m}]
        if origin.waypoints is not None:
            record["reference_path"] = [to_habitat(point) for point in origin.waypoints]
        if origin.geodesic_distance is not None:
            record["info"] = {"geodesic_distance": origin.geodesic_distance}
        records.append(record)
    # VLN-CE's reader of R2R asks for the vocabulary, though only its own models do for the words in it.
    return {"episodes": records} | ({"instruction_vocab": {"word_list": []}} if format_ == "r2r-ce" else {})


def to_gt(episodes: Sequence[Episode], format_: Format) -> dict[str, Any]:
    """Return the content of the gt file of all episodes that have a reference path.

    There, actions and locations are of one drive. Reference actions of episodes of our own that lead
    elsewhere than along the reference path are left out.

    Raises:
        UserError: A reference turns by an angle that the format does not know.
    """
    entries: dict[str, Any] = {}
    for episode in episodes:
        if episode.reference_path is None:
            continue
        of_one_drive = episode.origin is not None or _drives_along(episode)
        actions = _their_actions(episode, usual_turn_deg(format_)) if of_one_drive else []
        entries[episode.episode_id] = {
            "locations": [to_habitat(point) for point in episode.reference_path],
            "actions": actions,
            "forward_steps": len(episode.reference_path) - 1,
        }
    return entries


def save_vlnce(episodes: Sequence[Episode], path: Path, format_: Format) -> Path | None:
    """Write an episode file and, if any episode has a reference path, the gt file beside it.

    Returns:
        The gt file, or None.

    Raises:
        UserError: An episode cannot be written in this format.
    """
    document, gt = to_vlnce(episodes, format_), to_gt(episodes, format_)
    write_json(path, document)
    if not gt:
        return None
    beside = gt_name(path)
    write_json(beside, gt)
    return beside


def _check_rotations(records: Sequence[Record], file: Path) -> None:
    if not records:
        return
    seen = classify_rotations(np.array([record.start_rotation for record in records]))
    fix = f"`proctor check-dataset {file} --fix OUT` writes a corrected copy"
    if seen.order == "wxyz":
        share = f"{int(seen.about_y_wxyz.sum())} of {len(records)}"
        problem = f"looks like wxyz ({share} episodes), expected xyzw; {fix}"
        raise InvalidFile(file, problem, place="episodes[].start_rotation")
    for index in np.flatnonzero(~(seen.unit & seen.about_y)).tolist():
        kind = "a rotation about the up axis y" if seen.unit[index] else "a quaternion of length 1"
        problem = f"expected {kind}, order xyzw, found {list(records[index].start_rotation)}; {fix}"
        raise InvalidFile(file, problem, place=f"episodes[{index}].start_rotation")


def _notes(episodes: Sequence[Episode], gt: Path | None) -> list[str]:
    notes = []
    without = sum(episode.reference_path is None for episode in episodes)
    if gt is None:
        notes.append("no gt file beside the episodes: nDTW, SDTW and CLS are not measured")
    elif without:
        notes.append(
            f"{without} of {len(episodes)} episodes have no gt: nDTW, SDTW and CLS are not measured there"
        )
    withheld = sum(episode.goal_position is None for episode in episodes)
    if withheld:
        notes.append(f"{withheld} of {len(episodes)} episodes have no goal: they cannot be scored")
    return notes


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


def _text(value: int | str | None) -> str | None:
    return None if value is None else str(value)
