"""Metrics of pick-and-place beside success, stages and similarity, which are found here too.

docs/metrics.md has the definitions.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from proctor.core.interfaces import Metric, MetricTask
from proctor.core.types import Info
from proctor.exams.pick_place.similarity import EePoseSimilarity, PickPlaceTrajectorySimilarity
from proctor.exams.pick_place.stages import (
    CompletionRate,
    Grasped,
    Lifted,
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    Placed,
    Reached,
    initial_position,
    target_distance_m,
    target_position,
)

__all__ = [
    "ClampedCommands",
    "CompletionRate",
    "Drops",
    "EePoseSimilarity",
    "FinalDistance",
    "FinalSuccess",
    "Grasped",
    "HandPath",
    "Lifted",
    "ObjectCollisions",
    "ObjectDisplacement",
    "PickPlaceCompletionRate",
    "PickPlaceSuccess",
    "PickPlaceTrajectorySimilarity",
    "Placed",
    "Reached",
    "SelfCollisions",
    "TableCollisions",
    "TimeToSuccess",
]

DROP_M = 0.05
"""An object that falls further than this has been dropped."""


class FinalSuccess(Metric):
    """Whether the task was done after the last step: the object at its target, let go and at rest."""

    is_rate = True

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with a task that is not done."""
        self._success = False

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._success = bool(state.get("success", False))

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(self._success)


class TimeToSuccess(Metric):
    """Seconds of simulated time until the task was done for the first time."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin without a success."""
        self._time_s = math.nan

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        if math.isnan(self._time_s) and state.get("success", False):
            self._time_s = round(float(state["time_s"]), 6)  # clocks add up small errors

    def get_metric(self) -> float:
        """Return seconds, NaN without a success."""
        return self._time_s


class Drops(Metric):
    """How often the hold on the object was lost and it then fell more than 5 cm before anything bore it."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin with empty hands."""
        self._count = 0
        self._held_z_m: float | None = None

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        z_m = float(state["object_position"][2])
        if state["object_grasped"]:
            self._held_z_m = z_m
        elif self._held_z_m is not None:
            fell = self._held_z_m - z_m > DROP_M
            self._count += fell
            if fell or state.get("object_supported", False):
                self._held_z_m = None

    def get_metric(self) -> float:
        """Return the count."""
        return float(self._count)


class TableCollisions(Metric):
    """In how many steps the robot touched furniture."""

    touched: ClassVar[str] = "furniture"

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin at 0."""
        self._count = 0

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._count += bool(state.get("touched", {}).get(self.touched, False))

    def get_metric(self) -> float:
        """Return the count."""
        return float(self._count)


class ObjectCollisions(TableCollisions):
    """In how many steps the robot touched another object than the one to pick."""

    touched = "objects"


class SelfCollisions(TableCollisions):
    """In how many steps the robot touched itself."""

    touched = "self"


class HandPath(Metric):
    """Length of the hand's path through the world in metres, from the end of the first step on."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin anywhere."""
        self._position: Any = None
        self._length_m = 0.0

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        position = state["ee_position"]
        if self._position is not None:
            self._length_m += math.dist(self._position, position)
        self._position = position

    def get_metric(self) -> float:
        """Return the length in metres."""
        return self._length_m


class ClampedCommands(Metric):
    """In how many steps the agent asked for what a joint cannot do."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin at 0."""
        self._count = 0

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._count += bool(state.get("clamped"))

    def get_metric(self) -> float:
        """Return the count."""
        return float(self._count)


class ObjectDisplacement(Metric):
    """How far the object is from where it stood at first, in metres."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin where the object stands."""
        self._start = self._position = initial_position(episode)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._start = state.get("initial_object_position", self._start)  # once it had settled
        self._position = state["object_position"]
        if self._start is None:
            self._start = self._position

    def get_metric(self) -> float:
        """Return the distance in metres."""
        return 0.0 if self._start is None else math.dist(self._start, self._position)


class FinalDistance(Metric):
    """How far the object is from its target after the last step, in metres; 0 inside a container."""

    def reset(self, episode: Any, task: MetricTask) -> None:
        """Begin where the object stands."""
        self._target = target_position(episode)
        self._distance_m = target_distance_m(
            {"object_position": initial_position(episode)}, target=self._target
        )

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._distance_m = target_distance_m(state, target=self._target)

    def get_metric(self) -> float:
        """Return the distance in metres, NaN where there is no target."""
        return self._distance_m if math.isfinite(self._distance_m) else math.nan
