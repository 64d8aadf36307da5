"""Whether an episode record can be what an exam wrote: readers of run folders rely on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from proctor.core.errors import InvalidFile
from proctor.exams.names import AnyExam
from proctor.exams.results import EpisodeResult

LARGEST_NUMBER = 1e9
"""Larger metres, steps or metrics are not measured by any exam, and sums of them may overflow."""
ROUNDING = 1e-6
TIMES = ("env_s", "policy_s", "evaluator_s", "cpu_s", "peak_mb")  # of `Timing`: numbers that are added up


def check_record(exam: type[AnyExam], result: EpisodeResult, path: Path, *, place: str) -> None:
    """Raise InvalidFile, with episode and field, for a record that no run of the exam could have written."""
    problem = record_problem(exam, result)
    if problem is not None:
        field, text = problem
        raise InvalidFile(path, f"episode '{result.episode_id:.80}', {field}: {text}", place=place)


def record_problem(exam: type[AnyExam], result: EpisodeResult) -> tuple[str, str] | None:
    """Return the first field of a record that no run could have written, and what is wrong with it."""
    return next(_problems(exam, result), None)


def _problems(exam: type[AnyExam], result: EpisodeResult) -> Iterator[tuple[str, str]]:
    for field, value in _numbers(result):
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            yield field, f"expected a number within ±{LARGEST_NUMBER:.0e}, found {value:g}"
    scores = {metric.name for metric in exam.metrics if metric.is_score}
    for name in sorted(scores & result.metrics.keys()):
        value = result.metrics[name]
        if not -ROUNDING <= value <= 1 + ROUNDING:
            yield f"metrics.{name}", f"expected a number from 0 to 1, found {value:g}"
    for name, count in (("steps", result.steps), ("collision_count", result.collision_count)):
        if count is not None and count < 0:
            yield name, f"expected a number from 0 up, found {count}"
    if result.usage is not UNSET:
        for name, value in msgspec.structs.asdict(result.usage).items():
            if value is not None and not 0 <= value <= LARGEST_NUMBER:
                yield f"usage.{name}", f"expected a number from 0 to {LARGEST_NUMBER:.0e}, found {value:g}"
    yield from _outcome_problems(result)
    yield from _length_problems(result)
    yield from exam.record_problems(result)


def _outcome_problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    if result.success != (result.status == "success"):
        yield (
            "success",
            f"expected what the status '{result.status}' says, found {str(result.success).lower()}",
        )
    measured = result.metrics.get("success")
    if result.error is None and measured is not None and measured != result.success:
        yield "metrics.success", f"expected {int(result.success)} as 'success' says, found {measured:g}"


def _length_problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    """Yield what is too long or too short. An episode that broke off may lack the end of some lists."""
    points, steps = len(result.trajectory), result.steps
    if result.error is not None:
        return
    if not points:
        yield "trajectory", "expected at least the start, found no point"
    if len(result.actions) != steps:
        yield "actions", f"expected {steps}, the number of steps, found {len(result.actions)}"
    if points != steps + 1:
        yield "trajectory", f"expected {steps + 1} points: the start and {steps} steps, found {points}"
    if result.headings and len(result.headings) != points:
        yield (
            "headings",
            f"expected {points}, one for each point of the trajectory, found {len(result.headings)}",
        )
    if result.thinking is not UNSET and len(result.thinking.charged_s) != steps:
        found = len(result.thinking.charged_s)
        yield "thinking.charged_s", f"expected {steps}, one for each step, found {found}"
    for step in result.collision_steps:
        if not 1 <= step <= steps:
            yield "collision_steps", f"expected steps from 1 to {steps}, found {step}"


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
        for name in TIMES:
            yield f"timing.{name}", getattr(result.timing, name) or 0.0
        yield from _listed("timing.decision_s", result.timing.decision_s or [])
    if result.thinking is not UNSET:
        yield from _numbers_in("thinking", result.thinking)
    for name in sorted(set(result.__struct_fields__) - set(EpisodeResult.__struct_fields__)):
        yield from _numbers_in(name, getattr(result, name))


def _numbers_in(field: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield all numbers of an exam's own field, however it is built."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers_in(f"{field}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _numbers_in(f"{field}[{index}]", item)
    elif isinstance(value, int | float):
        yield field, value


def _listed(field: str, values: Iterable[float]) -> Iterator[tuple[str, float]]:
    return ((f"{field}[{index}]", value) for index, value in enumerate(values))
