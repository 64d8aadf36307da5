"""The metrics of an exam, those that other packages add included.

A package adds one as an entry point in a group of `Exam.metric_groups`: a `Metric`, or a class with `reset`,
`update` and `get_metric` that is computed step by step, as the design documents write them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol

from proctor.core.errors import UserError
from proctor.core.interfaces import StepMetric
from proctor.core.types import Info, Vector3
from proctor.exams.exam import Metric
from proctor.exams.names import AnyExam
from proctor.exams.trace import AnyTrace

STEP_METHODS = ("reset", "update", "get_metric")

StateAsInfo = Callable[[Any, AnyTrace, int], Info]
"""Returns a recorded state as the env's info: of an episode, a trace and the index of the state."""


class Measured(Protocol):
    """What `Exam.distance` returns, as far as metrics of the documents ask for it."""

    @property
    def success_threshold_m(self) -> float:
        """How near to the goal a success has to end."""

    def __call__(self, a: Vector3, b: Vector3) -> float:
        """Return a distance in metres."""


class TaskOfTrace:
    """What a step metric may ask of its task."""

    def __init__(self, distance: Measured) -> None:
        self._distance = distance

    def distance_m(self, a: Vector3, b: Vector3) -> float:
        """Return the distance by which the exam is scored."""
        return self._distance(a, b)

    def shortest_path_m(self, episode: Any) -> float:
        """Return the length of the shortest path from the episode's start to its goal."""
        return float(getattr(self._distance, "shortest_path_m", math.nan))

    def success_threshold_m(self, episode: Any) -> float:
        """Return how near to the goal a success has to end."""
        return self._distance.success_threshold_m


def metric_of_class(name: str, class_: type[StepMetric], as_info: StateAsInfo) -> Metric:
    """Return a step metric as a metric: its value after the last step of a trace."""

    def score(episode: Any, trace: AnyTrace, distance: Measured) -> float:
        metric, first = class_(), len(trace.states) - trace.steps
        metric.reset(episode, TaskOfTrace(distance))
        for index, action in enumerate(trace.actions):
            metric.update({**as_info(episode, trace, first + index), "action": action})
        return float(metric.get_metric())

    definition = (class_.__doc__ or name).strip().splitlines()[0]
    is_rate = bool(getattr(class_, "is_rate", False))
    return Metric(name, score, label=name, definition=definition, is_rate=is_rate)


@cache  # each episode asks for them, and looking for entry points takes milliseconds
def metrics_of(exam: type[AnyExam]) -> Sequence[Metric]:
    """Return the metrics of an exam: its own, then those of other packages by name.

    Raises UserError if a metric of another package cannot be imported, is not a metric, or has the name of
    another.
    """
    own = {metric.name for metric in exam.metrics}
    points: dict[str, EntryPoint] = {}
    for group in exam.metric_groups:
        for point in entry_points(group=group):
            other = points.setdefault(point.name, point)
            if point.name in own:
                raise UserError(f"{_described(point)}: the exam {exam.name} has a metric of this name")
            if other.value != point.value:
                raise UserError(f"{_described(point)}: {_described(other)} has the same name; uninstall one")
    return (*exam.metrics, *(_added_metric(points[name], exam) for name in sorted(points)))


def _added_metric(point: EntryPoint, exam: type[AnyExam]) -> Metric:
    try:
        found = point.load()
    except Exception as error:  # whatever the module of a stranger does when it is imported
        raise UserError(f"{_described(point)} cannot be imported: {type(error).__name__}: {error}") from error
    if isinstance(found, Metric):
        if found.name != point.name:
            raise UserError(f"{_described(point)} calls itself '{found.name}'")
        return found
    if not (isinstance(found, type) and all(callable(getattr(found, name, None)) for name in STEP_METHODS)):
        raise UserError(
            f"{_described(point)}: expected a proctor.exams.exam.Metric or a class with "
            f"{', '.join(STEP_METHODS)}, found {type(found).__name__}"
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise UserError(f"{_described(point)} lacks {missing}")
    return metric_of_class(point.name, found, exam.as_info)


def _described(point: EntryPoint) -> str:
    owner = f" of the package {point.dist.name}" if point.dist else ""
    return f"metric '{point.name}' ({point.value}{owner})"


def metric_named(exam: type[AnyExam], name: str) -> Metric:
    """Return what is known of a metric; of one that is not the exam's, its name."""
    known = next((metric for metric in metrics_of(exam) if metric.name == name), None)
    return known or Metric(name, lambda *_: math.nan, label=name, definition="")
