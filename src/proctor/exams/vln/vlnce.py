"""The episodes of R2R-CE and RxR-CE: from their files into our terms, and back.

Keys that nothing here needs (tokens, vocabularies, timings) are skipped; what is used is checked strictly.
The axes are Habitat's, see `axes.py`. Licences forbid to ship these data: users bring their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec
import numpy as np

from proctor.core.documents import decode, read_packed, unpack
from proctor.core.errors import InvalidFile
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import stem_of
from proctor.exams.episode_files import Loaded
from proctor.exams.vln.axes import (
    HEADING_OF_YAW_0_RAD,
    Quadruple,
    Triple,
    classify_rotations,
    from_habitat,
    yaw_deg_of_xyzw,
)
from proctor.exams.vln.episode import Episode, Origin
from proctor.exams.vln.gt import (
    TURNS_DEG,
    Start,
    VlnceGroundTruth,
    actions_of,
    gt_file,
    mismatch,
    parse_gt,
    strays,
    turn_deg_of,
)

Format = Literal["r2r-ce", "rxr-ce"]
SPLITS = ("train", "val_seen", "val_unseen", "test", "test_challenge")
RADIUS_M = 3.0  # within which a STOP is a success, where a goal does not say it


class VlnceGoal(msgspec.Struct, frozen=True):
    """Where to stop."""

    position: Triple
    radius: float | None = None


class VlnceInstruction(msgspec.Struct, frozen=True):
    """What the agent is told. R2R has the text only."""

    instruction_text: str
    instruction_id: int | str | None = None
    language: str | None = None


class Info(msgspec.Struct, frozen=True):
    """What else is known."""

    geodesic_distance: float | None = None


class VlnceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An episode as it stands in the file."""

    episode_id: int | str
    scene_id: str
    start_position: Triple
    start_rotation: Quadruple
    instruction: VlnceInstruction
    goals: list[VlnceGoal] | None = None  # missing in test splits
    trajectory_id: int | str | None = None
    reference_path: list[Triple] | None = None
    info: Info | None = None


class Extra(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Proctor knows of an episode and these formats have no place for."""

    native: bool = False  # whether the episode is not from a public dataset
    default_threshold: bool = False
    """Whether it leaves the success threshold to the run, whatever the radius says."""
    max_steps: int | None = None
    level: Literal["short", "medium", "long"] | None = None
    split: str | None = None
    language: str | None = None
    scene_config_path: str | None = None
    reference_actions: list[Action] | None = None
    """Where they are not of one drive with the reference path, as a gt has them."""


class RecordFile(msgspec.Struct, frozen=True):
    """The whole file."""

    episodes: list[VlnceRecord]
    proctor: dict[str, Extra] = {}  # by episode id; only in files that Proctor wrote


def is_vlnce(record: Any) -> bool:
    """Tell whether an episode of a JSON document is one of VLN-CE's."""
    if not isinstance(record, dict):
        return False
    return isinstance(record.get("start_position"), list) or isinstance(record.get("instruction"), dict)


def format_of(records: Sequence[VlnceRecord]) -> Format:
    """Tell the two datasets apart: only RxR numbers its instructions."""
    return "rxr-ce" if any(r.instruction.instruction_id is not None for r in records) else "r2r-ce"


def split_of(file: Path) -> str | None:
    """Return the split that a file is named for, such as `val_unseen_guide.json.gz`, or None."""
    stem = stem_of(file)
    for role in ("guide", "follower"):
        stem = stem.removesuffix(f"_{role}")
    return stem if stem in SPLITS else None


def usual_turn_deg(format_: Format) -> int:
    """Return by how much LEFT and RIGHT turn in a dataset's own simulator settings."""
    return TURNS_DEG[format_ == "rxr-ce"]


def scene_name(scene_id: str) -> str:
    """Return `17DRP5sb8fy` of `mp3d/17DRP5sb8fy/17DRP5sb8fy.glb`."""
    name = PurePosixPath(scene_id).name
    return name.removesuffix(".glb").removesuffix(".basis") or scene_id


def start_of(record: VlnceRecord) -> Start:
    """Return where an episode begins, in Habitat's axes."""
    heading_rad = np.radians(yaw_deg_of_xyzw(record.start_rotation)) + HEADING_OF_YAW_0_RAD
    return Start(record.start_position, float(heading_rad))


def load_vlnce(raw: bytes, file: Path) -> Loaded[Episode]:
    """Read unpacked episodes, and the gt file beside them, if any, which must be that of these episodes."""
    document = decode(raw, RecordFile, file)
    records = document.episodes
    _check_rotations(records, file)
    format_ = format_of(records)
    starts = {str(record.episode_id): start_of(record) for record in records}
    found = gt_file(file)
    remedy = f"`proctor check-dataset {file} --fix OUT` writes a copy without them"
    packed = read_packed(found) if found else b""
    gt = parse_gt(unpack(packed, found), found, remedy=remedy) if found else {}
    turn_deg = turn_deg_of(starts, gt, usual=usual_turn_deg(format_)) if gt else usual_turn_deg(format_)
    if found and (problem := mismatch(starts, gt, turn_deg=turn_deg)):
        raise InvalidFile(found, problem)
    split = split_of(file)
    episodes = []
    for index, record in enumerate(records):
        try:
            episodes.append(
                episode_of(
                    record,
                    gt.get(str(record.episode_id)),
                    document.proctor.get(str(record.episode_id), Extra()),
                    format_=format_,
                    turn_deg=turn_deg,
                    split=split,
                )
            )
        except ValueError as error:
            raise InvalidFile(file, str(error), place=f"episodes[{index}]") from None
    notes = _notes(episodes, found)
    if far := strays(starts, gt):
        text = f"the gt of {len(far)} of {len(episodes)} episodes begins elsewhere than they do"
        notes.append(f"{text}, first that of '{far[0]}': nDTW, SDTW and CLS mean nothing there")
    return Loaded(episodes, format_, notes, {found: packed} if found else {})


def episode_of(
    record: VlnceRecord,
    gt: VlnceGroundTruth | None,
    extra: Extra,
    *,
    format_: Format,
    turn_deg: int,
    split: str | None,
) -> Episode:
    """Return an episode in our terms; raise ValueError if it says what an episode cannot mean."""
    goals = record.goals or []
    if len(goals) > 1:
        raise ValueError(f"goals: expected one goal, found {len(goals)}")
    radius_m = (goals[0].radius or RADIUS_M) if goals else RADIUS_M
    waypoints, number = record.reference_path, record.instruction.instruction_id
    driven = actions_of(gt, turn_deg=turn_deg) if gt and gt.actions else None
    return Episode(
        episode_id=str(record.episode_id),
        scene_id=scene_name(record.scene_id),
        start_position=from_habitat(record.start_position),
        start_rotation=Vector3(0.0, 0.0, yaw_deg_of_xyzw(record.start_rotation)),
        goal_position=from_habitat(goals[0].position) if goals else None,
        instruction=record.instruction.instruction_text,
        success_threshold=None if extra.default_threshold else radius_m,
        scene_config_path=extra.scene_config_path,
        max_steps=extra.max_steps,
        level=extra.level,
        reference_path=[from_habitat(point) for point in gt.locations] if gt else None,
        reference_actions=driven if extra.reference_actions is None else extra.reference_actions,
        language=record.instruction.language or extra.language or "en",
        split=extra.split or split,
        origin=None
        if extra.native
        else Origin(
            format=format_,
            scene_id=record.scene_id,
            trajectory_id=record.trajectory_id,
            instruction_id=None if number is None else str(number),
            geodesic_distance=record.info.geodesic_distance if record.info else None,
            waypoints=None if waypoints is None else [from_habitat(point) for point in waypoints],
        ),
    )


def _check_rotations(records: Sequence[VlnceRecord], file: Path) -> None:
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
