"""From a trace to the record of an episode: pure functions that need no simulator."""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from proctor.core.errors import EvaluatorError
from proctor.exams.exam import Metric
from proctor.exams.names import AnyExam
from proctor.exams.record_check import record_problem
from proctor.exams.results import EpisodeResult, Fault, Thinking, Timing
from proctor.exams.step_metrics import metrics_of
from proctor.exams.trace import AnyTrace

PLAIN_TYPES = (str, int, bool, type(None), datetime)


def grade(
    exam: AnyExam,
    episode: Any,
    trace: AnyTrace,
    *,
    seed: int = 0,
    fault: Fault | None = None,
    timing: Timing | UnsetType = UNSET,
    leave_out: Collection[str] = (),
) -> EpisodeResult:
    """Return the record of an episode: its scores, how it ended and why.

    The trace has no steps if nothing is known. What a fault of the evaluator cut short is not scored.
    `leave_out` names metrics that this trace cannot tell. Raises an EvaluatorError if a metric fails.
    """
    distance = exam.distance(episode)
    is_scored = fault is None or fault.side == "agent"
    scores = score(exam, episode, trace, distance, leave_out) if is_scored else {}
    is_success = fault is None and scores.get("success") == 1.0
    result = exam.result(
        episode_id=episode.episode_id,
        scene_id=episode.scene_id,
        instruction=exam.instruction(episode),
        status="error" if fault else "success" if is_success else "failure",
        success=is_success,
        failure_reason=None if fault is None else fault.kind,
        error=fault,
        steps=trace.steps,
        actions=[exam.encode_action(action) for action in trace.actions],
        metrics=scores,
        seed=seed,
        timing=timing,
        thinking=_thinking(trace),
        **exam.record(episode, trace, distance),
    )
    if fault is None and not is_success:
        result = replace(result, failure_reason=exam.failure_reason(episode, result))
    return replace(result, verdict=exam.verdict(episode, result))


def _thinking(trace: AnyTrace) -> Thinking | UnsetType:
    if not trace.charged_s:
        return UNSET
    return Thinking(charged_s=trace.charged_s, simulated_s=round(trace.simulated_s, 6))


def score(
    exam: AnyExam, episode: Any, trace: AnyTrace, distance: Any, leave_out: Collection[str] = ()
) -> dict[str, float]:
    """Return the metrics that apply to an episode; an EvaluatorError if one fails or is not a number."""
    found = {}
    for metric in metrics_of(type(exam)):
        if metric.name not in leave_out:
            value = _score_of(metric, episode, trace, distance)
            if math.isfinite(value):
                found[metric.name] = value
    return found


def _score_of(metric: Metric, episode: Any, trace: AnyTrace, distance: Any) -> float:
    try:
        value: Any = metric.score(episode, trace, distance)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise EvaluatorError(f"the metric '{metric.name}' failed: {problem}") from error
    if not isinstance(value, int | float | np.number | np.bool_):
        found = type(value).__name__
        raise EvaluatorError(
            f"the metric '{metric.name}' returned {value!r:.40} ({found}), expected a number"
        )
    return float(value)


def encode_result(exam: AnyExam, result: EpisodeResult) -> bytes:
    """Return a record as JSON that is read again as the same record; else an EvaluatorError names the place.

    JSON has no NaN, and its writer takes no numbers of numpy: either would be noticed only when the
    journal is written or read, where it costs the whole run.
    """
    problem: str | None = None
    try:
        encoded = msgspec.json.encode(result)
        is_same = msgspec.json.decode(encoded, type=exam.result) == result
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        encoded, is_same, problem = b"", False, str(error)
    if not is_same:
        problem = _unwritable(result, "") or problem or "it would be read as something else"
    elif (refused := record_problem(type(exam), result)) is not None:  # as its readers would
        problem = ": ".join(refused)
    if problem is not None:
        raise EvaluatorError(f"the episode's record cannot be written: {problem.lstrip('.')}")
    return encoded


def _unwritable(value: Any, place: str) -> str | None:
    """Return what is wrong with the first value that JSON cannot hold, and where; None if there is none."""
    if type(value) is float:
        return None if math.isfinite(value) else f"{place}: expected a finite number, found {value}"
    if type(value) in PLAIN_TYPES or value is UNSET:
        return None
    if isinstance(value, msgspec.Struct):
        inside = [(f"{place}.{name}", getattr(value, name)) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        inside = [(f"{place}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        inside = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
    else:
        kind = type(value)
        return f"{place}: expected a plain number or text, found {kind.__module__}.{kind.__qualname__}"
    return next((problem for at, item in inside if (problem := _unwritable(item, at)) is not None), None)
