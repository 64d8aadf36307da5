"""VLN-CE's prediction files: where an agent went, for the scoring by others, and by us.

R2R-CE: JSON, `{episode_id: [{"position", "heading", "stop"}, ...]}`, beginning with the start state; the
heading is in radians from -Z, left is positive. RxR-CE: JSON lines, `{"instruction_id", "path"}` with the
positions that changed, sorted by id; it has no STOP, so the end of a path counts as one. Both are in
Habitat's axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import msgspec

from proctor.core.documents import convert, parse_json, read_bytes, write_atomically, write_json
from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Action, Vector3
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.axes import Triple, from_habitat, heading_of_yaw, to_habitat, yaw_of_heading
from proctor.exams.vln.episode import LARGEST_COORDINATE

PredictionFormat = Literal["r2r", "rxr"]


class Prediction(msgspec.Struct, frozen=True):
    """One episode's drive, in our axes, the start included."""

    positions: list[Vector3]
    yaws: list[float] | None
    """In radians; RxR files have none."""
    stop_at: int | None
    """Index of the state that STOP led to; None if the agent never said it."""


class Predictions(msgspec.Struct, frozen=True):
    """A predictions file: by episode id (R2R) or by instruction id (RxR)."""

    format: PredictionFormat
    by_id: dict[str, Prediction]


class _State(msgspec.Struct):
    position: Triple
    heading: float | None = None
    stop: bool = False


class _Line(msgspec.Struct):
    instruction_id: int | str
    path: list[Triple]


def read_predictions(path: Path) -> Predictions:
    """Read a predictions file of either format, packed or not.

    Raises:
        InvalidFile: It is none, or something in it is wrong; the place begins with the id or the line.
    """
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
    """Write what agents did as a predictions file.

    Args:
        results: The episodes. Those that are not scored should be left out.
        path: The new file.
        format_: `r2r`, or `rxr`.
        instruction_ids: By episode id; for RxR only.

    Raises:
        UserError: An RxR id is missing or no number, or headings, which R2R wants, are not recorded.
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
        {
            "position": to_habitat(position),
            "heading": heading_of_yaw(yaw),
            "stop": stopped and index == last,
        }
        for index, (position, yaw) in enumerate(zip(result.trajectory, result.headings, strict=True))
    ]


def _read_r2r(value: Any, path: Path) -> dict[str, Prediction]:
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
        by_id[key] = Prediction(
            positions=[_point(s.position, path, f"{key}[{i}].position") for i, s in enumerate(states)],
            yaws=[yaw_of_heading(h) for h in headings] if len(headings) == len(states) else None,
            stop_at=next((max(index, 1) for index, state in enumerate(states) if state.stop), None),
        )
    return by_id


def _read_rxr(raw: bytes, path: Path) -> dict[str, Prediction]:
    by_id: dict[str, Prediction] = {}
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
        by_id[key] = Prediction([*points, points[-1]], None, len(points))
    return by_id
