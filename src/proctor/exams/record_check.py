"""Whether an episode record can be what an exam wrote: readers of run folders rely on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

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
    for numbers in _numbers(result):
        if not _are_measurable(numbers.values):
            yield from _unmeasurable(numbers)
    yield from _score_problems(exam, result)
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


@cache
def _score_names(exam: type[AnyExam]) -> list[str]:
    return sorted(metric.name for metric in exam.metrics if metric.is_score)


def _score_problems(exam: type[AnyExam], result: EpisodeResult) -> Iterator[tuple[str, str]]:
    for name in _score_names(exam):
        value = result.metrics.get(name, 0.0)
        if not -ROUNDING <= value <= 1 + ROUNDING:
            yield f"metrics.{name}", f"expected a number from 0 to 1, found {value:g}"


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


class _Numbers(NamedTuple):
    """Numbers of a record. What their fields are called is only asked if there is something to say."""

    values: Sequence[float]
    field_of: Callable[[int], str]


def _are_measurable(values: Sequence[float]) -> bool:
    """Tell whether all of them are within ±LARGEST_NUMBER, at the speed of C: a record has hundreds."""
    total = sum(values)
    has_nan = total != total  # noqa: PLR0124  (as only NaN does)
    smallest, largest = min(values, default=0), max(values, default=0)
    return not has_nan and -LARGEST_NUMBER <= smallest <= largest <= LARGEST_NUMBER


def _unmeasurable(numbers: _Numbers) -> Iterator[tuple[str, str]]:
    for index, value in enumerate(numbers.values):
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            expected = f"expected a number within ±{LARGEST_NUMBER:.0e}"
            yield numbers.field_of(index), f"{expected}, found {value:g}"


def _numbers(result: EpisodeResult) -> Iterator[_Numbers]:
    named: dict[str, float] = {
        "final_distance_to_goal": result.final_distance_to_goal,
        "steps": result.steps,
        "collision_count": result.collision_count or 0,
    }
    yield _Numbers(list(named.values()), lambda index: list(named)[index])
    yield _Numbers(list(result.metrics.values()), lambda index: f"metrics.{list(result.metrics)[index]}")
    coordinates = [number for point in result.trajectory for number in (point.x, point.y, point.z)]
    yield _Numbers(coordinates, lambda index: f"trajectory[{index // 3}].{'xyz'[index % 3]}")
    yield _Numbers(result.headings, "headings[{}]".format)
    timing = result.timing
    if timing is not UNSET:
        yield _Numbers(timing.act_s, "timing.act_s[{}]".format)
        yield _Numbers(
            [getattr(timing, name) or 0.0 for name in TIMES], lambda index: f"timing.{TIMES[index]}"
        )
        yield _Numbers(timing.decision_s or [], "timing.decision_s[{}]".format)
    if result.thinking is not UNSET:
        yield _inside("thinking", result.thinking)
    for name in sorted(set(result.__struct_fields__) - set(EpisodeResult.__struct_fields__)):
        yield _inside(name, getattr(result, name))


def _inside(field: str, value: Any) -> _Numbers:
    """Return all numbers of a field, however it is built."""
    return _Numbers(
        list(_values_in(value)), lambda index: next(islice(_fields_in(field, value), index, None))
    )


def _values_in(value: Any) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    else:
        for _, item in _items_of(value):
            yield from _values_in(item)


def _fields_in(field: str, value: Any) -> Iterator[str]:
    """Yield what the numbers of `_values_in` are called, in the same order."""
    if isinstance(value, int | float):
        yield field
    else:
        for key, item in _items_of(value):
            yield from _fields_in(f"{field}[{key}]" if isinstance(key, int) else f"{field}.{key}", item)


def _items_of(value: Any) -> Iterable[tuple[int | str, Any]]:
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return ((str(key), item) for key, item in value.items())
    return enumerate(value) if isinstance(value, list | tuple) else ()
