"""VLN-CE's ground truth: `{split}_gt.json.gz`, the dense path and the actions of a shortest-path follower.

It belongs to one version of its episodes. Start rotations differ between R2R-CE v1-2 and v1-3, so the gt of
one drives the episodes of the other into the wrong direction. `mismatch` finds out by replaying.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from proctor.core.documents import convert, decode, parse_json, refuse_nan
from proctor.core.errors import InvalidFile
from proctor.core.geometry import wrap_angle
from proctor.core.types import Action
from proctor.exams.datasets import stem_of
from proctor.exams.vln.axes import Triple

FORWARD, LEFT, RIGHT, LOOK_DOWN = 1, 2, 3, 5
TURNS_DEG = (15, 30)  # of R2R and of RxR
NEAR_M = 0.1
HEADING_TOLERANCE_DEG = 5.0
TOLERATED_SHARE = 0.1  # sliding along walls turns a few first moves aside, less than one in a hundred
V1_3_GRID_DEG = 30.0
MANY = 20  # episodes that are no accident


class VlnceGroundTruth(msgspec.Struct, frozen=True):
    """The reference of one episode, in Habitat's axes."""

    locations: list[Triple]  # the start and where each FORWARD led; turns add none
    actions: list[int] = []
    forward_steps: int | None = None


class Start(NamedTuple):
    """Where an episode begins, in Habitat's axes."""

    position: Triple
    heading_rad: float


def gt_name(episodes_file: Path) -> Path:
    """Return what the gt file beside an episode file is called."""
    stem = stem_of(episodes_file)
    return episodes_file.with_name(f"{stem}_gt{episodes_file.name.removeprefix(stem)}")


def gt_file(episodes_file: Path) -> Path | None:
    """Return the gt file beside an episode file, packed or not, if there is one."""
    return next((file for file in gt_candidates(episodes_file) if file.is_file()), None)


def gt_candidates(episodes_file: Path) -> list[Path]:
    """Return what a gt file beside an episode file may be called, packed or not."""
    stem = stem_of(episodes_file)
    return [episodes_file.with_name(f"{stem}_gt{ending}") for ending in (".json.gz", ".json")]


def parse_gt(raw: bytes, file: Path, *, remedy: str) -> dict[str, VlnceGroundTruth]:
    """Return an unpacked gt file by episode id; the message about a broken one ends with `remedy`."""
    try:
        entries = decode(raw, dict[str, VlnceGroundTruth], file)
        for key, entry in entries.items():
            _check_entry(entry, file, key)
    except InvalidFile:
        document = parse_json(raw, file, nan_as_text=True)
        broken = sound_entries(document, file)[1] if isinstance(document, dict) else []
        if not broken:
            raise
        first = broken[0]
        count = f"{len(broken)} of {len(document)} entries are broken, this is the first"
        problem = f"{first.problem}; {count}; {remedy}"
        raise InvalidFile(file, problem, place=first.place) from None
    return entries


def sound_entries(
    document: Mapping[str, Any], file: Path
) -> tuple[dict[str, VlnceGroundTruth], list[InvalidFile]]:
    """Return the entries of a parsed gt file that can be used, and what is wrong with each of the others."""
    entries, broken = {}, []
    for key, record in document.items():
        try:
            refuse_nan(record, file, place=key)
            entry = convert(record, VlnceGroundTruth, file, place=key)
            _check_entry(entry, file, key)
        except InvalidFile as error:
            broken.append(error)
        else:
            entries[key] = entry
    return entries, broken


def strays(starts: Mapping[str, Start], gt: Mapping[str, VlnceGroundTruth]) -> list[str]:
    """Return the ids of episodes whose gt begins elsewhere than they do."""
    common = (key for key in starts if key in gt)
    return [key for key in common if math.dist(gt[key].locations[0], starts[key].position) > NEAR_M]


def _check_entry(entry: VlnceGroundTruth, file: Path, key: str) -> None:
    if not entry.locations:
        raise InvalidFile(file, "expected at least one point, found none", place=f"{key}.locations")
    unknown = [action for action in entry.actions if not 0 <= action <= LOOK_DOWN]
    if unknown:
        raise InvalidFile(file, f"expected 0 to 5, found {unknown[0]}", place=f"{key}.actions")


def actions_of(entry: VlnceGroundTruth, *, turn_deg: int) -> list[Action]:
    """Return the actions in our terms: turns of 15 degrees; looking up and down is left out."""
    turns = turn_deg // TURNS_DEG[0]
    ours: dict[int, list[Action]] = {
        action: [action] * (turns if action in (LEFT, RIGHT) else 1) for action in Action
    }
    return [each for action in entry.actions for each in ours.get(action, ())]


def turn_deg_of(starts: Mapping[str, Start], gt: Mapping[str, VlnceGroundTruth], *, usual: int) -> int:
    """Return by how much a turn in this gt turns: the usual angle, unless the first moves say otherwise."""
    (other,) = set(TURNS_DEG) - {usual}
    usual_hits, other_hits = _hits(starts, gt, usual), _hits(starts, gt, other)
    return other if other_hits >= MANY and other_hits > 2 * usual_hits else usual


def mismatch(starts: Mapping[str, Start], gt: Mapping[str, VlnceGroundTruth], *, turn_deg: int) -> str | None:
    """Tell why a gt cannot be that of these episodes, or None if it can."""
    common = [key for key in starts if key in gt]
    if not common:
        return (
            f"none of its {len(gt)} entries is of one of the {len(starts)} episodes: the gt of another split?"
        )
    far = strays(starts, gt)
    if len(far) > TOLERATED_SHARE * len(common):
        return (
            f"the paths of {len(far)} of {len(common)} episodes begin elsewhere than the episodes do, "
            f"first that of '{far[0]}': the gt of another dataset or version?"
        )
    errors_deg = {
        key: error_deg
        for key in common
        if (error_deg := _first_move_error_deg(starts[key], gt[key], turn_deg)) is not None
    }
    wrong = [key for key, error_deg in errors_deg.items() if error_deg > HEADING_TOLERANCE_DEG]
    if len(wrong) > TOLERATED_SHARE * len(errors_deg):
        ours = version_of(start.heading_rad for start in starts.values())
        implied = (_implied_heading(gt[key], turn_deg) for key in common)
        theirs = version_of(heading for heading in implied if heading is not None)
        return (
            f"the first moves of {len(wrong)} of {len(errors_deg)} episodes lead into another direction than "
            f"their start rotations and first turns say, first that of '{wrong[0]}' by "
            f"{errors_deg[wrong[0]]:.0f} degrees: the gt of another version? "
            f"The episodes look like R2R-CE {ours}, this gt like {theirs}"
        )
    return None


def version_of(headings_rad: Iterable[float]) -> str:
    """Tell which version of R2R-CE has such start headings: all of v1-3 are multiples of 30 degrees."""
    degrees = np.degrees(np.fromiter(headings_rad, dtype=float))
    off_grid = np.abs(np.remainder(degrees + V1_3_GRID_DEG / 2, V1_3_GRID_DEG) - V1_3_GRID_DEG / 2)
    return "v1-3" if (off_grid < 0.5).mean() > 0.9 else "v1-2"


def inconsistencies(entries: Mapping[str, VlnceGroundTruth]) -> list[str]:
    """Return the ids of entries whose actions and path cannot be of one drive."""
    return [key for key, entry in entries.items() if entry.actions and not _is_consistent(entry)]


def _is_consistent(entry: VlnceGroundTruth) -> bool:
    moves = entry.actions.count(FORWARD)
    return (
        entry.actions[-1] == Action.STOP
        and len(entry.locations) == moves + 1
        and entry.forward_steps in (None, moves)
    )


def _hits(starts: Mapping[str, Start], gt: Mapping[str, VlnceGroundTruth], turn_deg: int) -> int:
    errors = (_first_move_error_deg(starts[key], gt[key], turn_deg) for key in starts if key in gt)
    return sum(error_deg is not None and error_deg <= HEADING_TOLERANCE_DEG for error_deg in errors)


def _first_move_error_deg(start: Start, entry: VlnceGroundTruth, turn_deg: int) -> float | None:
    implied = _implied_heading(entry, turn_deg)
    return None if implied is None else abs(math.degrees(wrap_angle(implied - start.heading_rad)))


def _implied_heading(entry: VlnceGroundTruth, turn_deg: int) -> float | None:
    """Return the start heading that follows from the first move, or None if there is none."""
    if FORWARD not in entry.actions or len(entry.locations) < 2:
        return None
    before: Sequence[int] = entry.actions[: entry.actions.index(FORWARD)]
    turned_rad = math.radians(turn_deg) * (before.count(LEFT) - before.count(RIGHT))
    (x0, _, z0), (x1, _, z1) = entry.locations[:2]
    if math.hypot(x1 - x0, z1 - z0) < NEAR_M:  # blocked: the direction says nothing
        return None
    return math.atan2(x0 - x1, z0 - z1) - turned_rad
