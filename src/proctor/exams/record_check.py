"""Whether an episode record can be what an exam wrote: readers of run folders rely on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from proctor.exams.results import EpisodeResult, PickPlaceRecord

LARGEST_NUMBER = 1e9
"""Larger metres, steps or metrics are not measured by any exam, and sums of them may overflow."""
SCORES = frozenset(
    (
        *("success", "success_at_0.2m", "oracle_success", "spl", "ndtw", "sdtw", "cls"),
        *("success_any_step", "completion_rate", "reached", "grasped", "lifted", "placed"),
    )
)
"""The metrics that an agent earns, from 0 to 1. The others describe what it did."""
ROUNDING = 1e-6


def record_problem(result: EpisodeResult) -> tuple[str, str] | None:
    """Return the first field of a record that no exam could have written, and what is wrong with it."""
    return next(_problems(result), None)


def _problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    for field, value in _numbers(result):
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            yield field, f"expected a number within ±{LARGEST_NUMBER:.0e}, found {value:g}"
    for name in sorted(SCORES & result.metrics.keys()):
        value = result.metrics[name]
        if not -ROUNDING <= value <= 1 + ROUNDING:
            yield f"metrics.{name}", f"expected a number from 0 to 1, found {value:g}"
    for name, count in (("steps", result.steps), ("collision_count", result.collision_count)):
        if count is not None and count < 0:
            yield name, f"expected a number from 0 up, found {count}"
    yield from _outcome_problems(result)
    yield from _length_problems(result)


def _outcome_problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    if result.success != (result.status == "success"):
        yield "success", f"expected what the status '{result.status}' says, found {_json(result.success)}"
    measured = result.metrics.get("success")
    if result.error is None and measured is not None and measured != result.success:
        yield "metrics.success", f"expected {int(result.success)} as 'success' says, found {measured:g}"


def _length_problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    """Yield what is too long or too short. An episode that broke off may lack the end of some lists."""
    points, steps = len(result.trajectory), result.steps
    if not points and (result.error is None or result.pick_place is UNSET):
        yield "trajectory", "expected at least the start, found no point"
    if result.error is not None:
        return
    if len(result.actions) != steps:
        yield "actions", f"expected {steps}, the number of steps, found {len(result.actions)}"
    if points != steps + 1:
        yield "trajectory", f"expected {steps + 1} points: the start and {steps} steps, found {points}"
    if result.headings and len(result.headings) != points:
        yield "headings", _one_per_point(points, len(result.headings))
    for step in result.collision_steps:
        if not 1 <= step <= steps:
            yield "collision_steps", f"expected steps from 1 to {steps}, found {step}"
    if result.pick_place is not UNSET:
        yield from _pick_place_problems(result.pick_place, points)


def _pick_place_problems(record: PickPlaceRecord, points: int) -> Iterator[tuple[str, str]]:
    for name in ("object_path", "base_path", "gripper", "phases", "held"):
        found = len(getattr(record, name))
        if found != points:
            yield f"pick_place.{name}", _one_per_point(points, found)
    for name, step in record.stages.items():
        if step is not None and not 0 <= step < points:
            yield f"pick_place.stages.{name}", f"expected a step up to {points - 1}, found {step}"


def _one_per_point(points: int, found: int) -> str:
    return f"expected {points}, one for each point of the trajectory, found {found}"


def _numbers(result: EpisodeResult) -> Iterator[tuple[str, float]]:
    yield "final_distance_to_goal", result.final_distance_to_goal
    yield "steps", result.steps
    yield "collision_count", result.collision_count or 0
    yield from ((f"metrics.{name}", value) for name, value in result.metrics.items())
    for index, point in enumerate(result.trajectory):
        yield from ((f"trajectory[{index}].{axis}", getattr(point, axis)) for axis in ("x", "y", "z"))
    yield from _listed("headings", result.headings)
    if result.timing is not UNSET:
        yield from _listed("timing.act_s", result.timing.act_s)
    if result.pick_place is not UNSET:
        record = result.pick_place
        yield from _listed("pick_place.gripper", record.gripper)
        for name in ("object_path", "base_path"):
            for index, place in enumerate(getattr(record, name)):
                yield from _listed(f"pick_place.{name}[{index}]", place)
        yield from _listed("pick_place.target", record.target or ())


def _listed(field: str, values: Iterable[float]) -> Iterator[tuple[str, float]]:
    return ((f"{field}[{index}]", value) for index, value in enumerate(values))


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
