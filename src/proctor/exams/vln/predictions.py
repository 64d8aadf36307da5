"""VLN-CE's prediction files: where an agent went, for the scoring by others, and by us.

R2R-CE: JSON, `{episode_id: [{"position", "heading", "stop"}, ...]}`, beginning with the start state; the
heading is in radians from -Z, left is positive. RxR-CE: JSON lines, `{"instruction_id", "path"}` with the
positions that changed, sorted by id; it has no STOP, so the end of a path counts as one. Both are in
Habitat's axes. To score a file, it is read as traces, whose actions are inferred from the states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from proctor.core.documents import convert, parse_json, read_bytes, write_atomically, write_json
from proctor.core.errors import InvalidFile, UserError
from proctor.core.geometry import distance, wrap_angle
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import Dataset, episodes_of
from proctor.exams.driving import DrivingState, DrivingTrace
from proctor.exams.foreign_files import PredictedRun, PredictionFiles
from proctor.exams.path_distance import PathDistance, unreachable_notes
from proctor.exams.results import EpisodeResult, Results, distance_label
from proctor.exams.trace import Trace
from proctor.exams.vln.axes import Triple, from_habitat, heading_of_yaw, to_habitat, yaw_of_heading
from proctor.exams.vln.episode import LARGEST_COORDINATE, Episode
from proctor.exams.vln.gt import HEADING_TOLERANCE_DEG, TOLERATED_SHARE, version_of

PredictionFormat = Literal["r2r", "rxr"]

SAME_PLACE_M = 0.1
TURNED_RAD = math.radians(1)
SHIFTED_M = 0.05
LONGEST_STEP_M = 0.5  # a FORWARD is 0.25 m
SHORTEST_SHARE = 0.9
"""The map is a little too careful: a path may be so much shorter than the shortest one on it."""
SPL_NOTE = "SPL is measured by the path distances that the dataset stores, for want of its scenes"
UNKNOWN = {"r2r": ("collisions", "collision_rate"), "rxr": ("collisions", "collision_rate", "steps")}
"""Metrics that a file of each format cannot tell."""


class PredictedDrive(msgspec.Struct, frozen=True):
    """One episode's drive, in our axes, the start included."""

    positions: list[Vector3]
    yaws: list[float] | None  # in radians; RxR files have none
    stop_at: int | None  # index of the state that STOP led to; None if the agent never said it


class Predictions(msgspec.Struct, frozen=True):
    """A predictions file: by episode id (R2R) or by instruction id (RxR)."""

    format: PredictionFormat
    by_id: dict[str, PredictedDrive]


Pairs = Sequence[tuple[Episode, PredictedDrive | None]]


class _State(msgspec.Struct):
    position: Triple
    heading: float | None = None
    stop: bool = False


class _Line(msgspec.Struct):
    instruction_id: int | str
    path: list[Triple]


def read_predictions(path: Path) -> Predictions:
    """Read a predictions file of either format, packed or not."""
    raw = read_bytes(path)
    first_line, *_ = raw.lstrip().splitlines() or [b""]
    try:
        msgspec.json.decode(first_line, type=_Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if path.suffix != ".jsonl":
            return Predictions("r2r", _read_r2r(parse_json(raw, path), path))
    return Predictions("rxr", _read_rxr(raw, path))


def write_predictions(
    results: Iterable[EpisodeResult],
    path: Path,
    *,
    format_: PredictionFormat,
    instruction_ids: Mapping[str, str],
) -> None:
    """Write what agents did as a predictions file. Episodes that are not scored should be left out.

    `instruction_ids` are by episode id, for RxR only. Raises UserError if one of them is missing or not a
    number, or if headings, which R2R wants, are not recorded.
    """
    if format_ == "r2r":
        write_json(path, {result.episode_id: _states(result) for result in results})
        return
    lines: list[dict[str, Any]] = []
    for result in results:
        number = instruction_ids.get(result.episode_id, "")
        if not number.isdecimal() or len(number) > 18:
            found = f"found '{number}'" if number else "found none"
            raise UserError(
                f"episode '{result.episode_id}': expected a number as its instruction id, {found}"
            )
        changed = [to_habitat(point) for point, _ in groupby(result.trajectory)]
        lines.append({"instruction_id": int(number), "path": changed})
    lines.sort(key=lambda line: line["instruction_id"])
    write_atomically(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _point(given: Triple, path: Path, place: str) -> Vector3:
    if max(map(abs, given)) > LARGEST_COORDINATE:
        expected = f"expected numbers within ±{LARGEST_COORDINATE:.0f}"
        raise InvalidFile(path, f"{expected}, found {list(given)}", place=place)
    return from_habitat(given)


def _states(result: EpisodeResult) -> list[dict[str, Any]]:
    if not result.headings:
        raise UserError(
            f"episode '{result.episode_id}': no headings are recorded, which R2R predictions hold"
        )
    stopped = bool(result.actions) and result.actions[-1] == Action.STOP
    last = len(result.trajectory) - 1
    return [
        {"position": to_habitat(position), "heading": heading_of_yaw(yaw), "stop": stopped and index == last}
        for index, (position, yaw) in enumerate(zip(result.trajectory, result.headings, strict=True))
    ]


def _read_r2r(value: Any, path: Path) -> dict[str, PredictedDrive]:
    if not isinstance(value, dict) or not all(isinstance(states, list) for states in value.values()):
        expected = (
            'expected {"episode_id": [{"position": [x, y, z], "heading": radians, "stop": false}, ...]}'
        )
        raise InvalidFile(path, f"not a predictions file: {expected}, or RxR's JSON lines")
    by_id = {}
    for key, given in value.items():
        states = convert(given, list[_State], path, place=key)
        if not states:
            raise InvalidFile(path, "expected at least the start state, found none", place=key)
        if states[0].stop:  # a STOP moves nothing: it is one more state at the start
            states = [states[0], states[0]]
        headings = [state.heading for state in states if state.heading is not None]
        by_id[key] = PredictedDrive(
            positions=[_point(s.position, path, f"{key}[{i}].position") for i, s in enumerate(states)],
            yaws=[yaw_of_heading(h) for h in headings] if len(headings) == len(states) else None,
            stop_at=next((max(index, 1) for index, state in enumerate(states) if state.stop), None),
        )
    return by_id


def _read_rxr(raw: bytes, path: Path) -> dict[str, PredictedDrive]:
    by_id: dict[str, PredictedDrive] = {}
    for number, text in enumerate(raw.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text, type=_Line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            problem = f'expected {{"instruction_id": ..., "path": [[x, y, z], ...]}}: {error}'
            raise InvalidFile(path, problem, place=f"line {number}") from None
        key = str(line.instruction_id)
        if key in by_id:
            raise InvalidFile(path, f"the instruction id {key} stands twice", place=f"line {number}")
        if not line.path:
            raise InvalidFile(path, "expected at least the start, found none", place=f"line {number}, path")
        # A STOP moves nothing: it is one more state at the end of the path.
        points = [_point(point, path, f"line {number}, path[{i}]") for i, point in enumerate(line.path)]
        by_id[key] = PredictedDrive([*points, points[-1]], None, len(points))
    return by_id


class VlnPredictedRun(PredictedRun):
    """A predictions file of R2R-CE or RxR-CE."""

    def __init__(self, predictions: Predictions, pairs: Pairs, dataset: Dataset) -> None:
        self._format, self._pairs, self._dataset = predictions.format, pairs, dataset
        has_limit = predictions.format != "rxr"
        self.traces = {
            episode.episode_id: _trace(episode, prediction, episode.step_limit if has_limit else None)
            for episode, prediction in pairs
            if prediction is not None
        }
        self.ignored = sorted(predictions.by_id.keys() - {_key(e, predictions) for e, _ in pairs})
        self.unknown_metrics = UNKNOWN[predictions.format]

    def remarks(self, results: Results) -> list[str]:
        """Name goals out of reach, what counts as a STOP, and the distance."""
        remarks = unreachable_notes([episode for episode, _ in self._pairs])
        if self._format == "rxr":
            remarks.append("RxR predictions hold no STOP: the end of each path counts as one")
        if results.summary.distance != "geodesic":
            spl = "" if results.summary.shortest_path else "SPL, "
            remarks.append(
                f"measured by {distance_label(results.summary.distance)}: success, {spl}navigation error and "
                "oracle success are not comparable with those by path distance; give --scenes for these"
            )
        return remarks

    def notes(self, results: Results) -> list[str]:
        """Name other headings than the episodes', and paths that no robot could have driven."""
        return [
            *_heading_notes(self._pairs, self._dataset.format),
            *_odd_paths([episode for episode, _ in self._pairs], results),
            *([SPL_NOTE] if results.summary.shortest_path else []),
        ]


def _read(file: Path, dataset: Dataset) -> VlnPredictedRun:
    episodes = episodes_of(dataset, Episode)
    withheld = [episode.episode_id for episode in episodes if episode.goal_position is None]
    if withheld:
        problem = f"{len(withheld)} of {len(episodes)} episodes have no goal, first '{withheld[0]}'"
        raise UserError(f"{dataset.path}: {problem}: they cannot be scored here")
    predictions = read_predictions(file)
    pairs = [(episode, predictions.by_id.get(_key(episode, predictions))) for episode in episodes]
    _check_match(predictions, pairs, file, dataset.path)
    return VlnPredictedRun(predictions, pairs, dataset)


def _key(episode: Episode, predictions: Predictions) -> str:
    """Return what a predictions file calls an episode."""
    if predictions.format == "rxr" and episode.origin is not None and episode.origin.instruction_id:
        return episode.origin.instruction_id
    return episode.episode_id


def _check_match(predictions: Predictions, pairs: Pairs, file: Path, dataset: Path) -> None:
    """Refuse predictions that are of other episodes, or in other axes: no score would mean anything."""
    if all(prediction is None for _, prediction in pairs):
        known = next((_key(episode, predictions) for episode, _ in pairs), "none at all")
        given = next(iter(predictions.by_id), "none at all")
        problem = f"no prediction is of an episode of {dataset}: found '{given}', expected such as '{known}'"
        raise InvalidFile(file, problem)
    for episode, prediction in pairs:
        if prediction and distance(prediction.positions[0], episode.start_position) > SAME_PLACE_M:
            there, here = prediction.positions[0], episode.start_position
            problem = (
                f"begins {distance(there, here):.1f} m from the episode's start; expected the start state "
                "first, in Habitat's axes (y up), and of the same version of the dataset"
            )
            raise InvalidFile(file, problem, place=_key(episode, predictions))


def _trace(episode: Episode, prediction: PredictedDrive, limit: int | None) -> DrivingTrace:
    """Return what the agent must have done to get from state to state, up to its STOP or the step limit."""
    positions, yaws = prediction.positions, prediction.yaws
    last = len(positions) - 1 if prediction.stop_at is None else prediction.stop_at
    last = last if limit is None else min(last, limit)
    start_yaw = None if yaws is None else episode.start_yaw
    trace: DrivingTrace = Trace(DrivingState(position=episode.start_position, yaw=start_yaw))
    for index in range(1, last + 1):
        moved_m = distance(positions[index - 1], positions[index])
        turned_rad = 0.0 if yaws is None else wrap_angle(yaws[index] - yaws[index - 1])
        if index == prediction.stop_at:
            action = Action.STOP
        elif abs(turned_rad) > TURNED_RAD and moved_m < SHIFTED_M:
            action = Action.LEFT if turned_rad > 0 else Action.RIGHT
        else:
            action = Action.FORWARD
        yaw = None if yaws is None else yaws[index]
        trace.add(action, DrivingState(position=positions[index], yaw=yaw))
    return trace


def _heading_notes(pairs: Pairs, format_: str) -> list[str]:
    """Tell whether predictions begin with another heading than their episodes: of another version, mostly."""
    known = [(e, prediction.yaws[0]) for e, prediction in pairs if prediction and prediction.yaws is not None]
    off_rad = [abs(wrap_angle(yaw - episode.start_yaw)) for episode, yaw in known]
    wrong = [
        (episode.episode_id, angle)
        for (episode, _), angle in zip(known, off_rad, strict=True)
        if angle > math.radians(HEADING_TOLERANCE_DEG)
    ]
    if not wrong:
        return []
    name, angle = wrong[0]
    note = (
        f"{len(wrong)} of {len(known)} predictions begin with another heading than their episodes, "
        f"first that of '{name}', by {math.degrees(angle):.0f} degrees"
    )
    if len(wrong) <= TOLERATED_SHARE * len(known):
        return [note]
    versions = version_of([episode.start_yaw for episode, _ in known]), version_of([yaw for _, yaw in known])
    if format_ != "r2r-ce" or versions[0] == versions[1]:
        return [f"{note}: predictions for another version of the dataset, or by another convention?"]
    return [f"{note}: the episodes look like R2R-CE {versions[0]}, the predictions like {versions[1]}"]


def _odd_paths(episodes: Sequence[Episode], results: Results) -> list[str]:
    """Return what no robot could have driven. It is scored nevertheless, as the definitions say."""
    jumps_m = {
        result.episode_id: max(distance(a, b) for a, b in pairwise(result.trajectory))
        for result in results.episodes
        if len(result.trajectory) > 1
    }
    notes = []
    far = [key for key, jump_m in jumps_m.items() if jump_m > LONGEST_STEP_M]
    if far:
        text = f"{len(far)} predictions have steps longer than {LONGEST_STEP_M} m"
        notes.append(f"{text} (first: {far[0]}, {jumps_m[far[0]]:.1f} m)")
    by_id = {episode.episode_id: episode for episode in episodes}
    short = [text for result in results.episodes if (text := _shortcut(by_id[result.episode_id], result))]
    if short:
        text = f"{len(short)} paths are shorter than the shortest way: they pass through walls"
        notes.append(f"{text} (first: {short[0]})")
    return notes


def _shortcut(episode: Episode, result: EpisodeResult) -> str:
    """Return how much shorter a path is than the shortest one to its end; nothing if it is not."""
    if result.distance != "geodesic" or "path_length" not in result.metrics:
        return ""
    shortest = PathDistance(episode, success_threshold_m=0.0)
    shortest_m, driven_m = (
        shortest(result.trajectory[0], result.trajectory[-1]),
        result.metrics["path_length"],
    )
    if driven_m >= SHORTEST_SHARE * shortest_m - LONGEST_STEP_M:
        return ""
    return f"{result.episode_id}, {driven_m:.1f} m instead of {shortest_m:.1f} m"


def _write(
    results: Sequence[EpisodeResult], path: Path, format_: str | None, dataset: Callable[[], Dataset | None]
) -> str:
    loaded = None if format_ == "r2r" else dataset()
    ids: Mapping[str, str] = {}
    if loaded is not None:
        format_ = format_ or ("rxr" if loaded.format == "rxr-ce" else "r2r")
        ids = {e.episode_id: e.origin.instruction_id or "" for e in episodes_of(loaded, Episode) if e.origin}
    chosen: PredictionFormat = "rxr" if format_ == "rxr" else "r2r"
    write_predictions(results, path, format_=chosen, instruction_ids=ids)
    return chosen


PREDICTIONS = PredictionFiles(formats=("r2r", "rxr"), read=_read, write=_write)
