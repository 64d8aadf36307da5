"""One goal and what has become of it so far."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.skills.checkers import GoalChecker, ProgressChecker
from proctor.skills.feedback import Odometer
from proctor.skills.goal import Goal
from proctor.skills.params import NavigationParams
from proctor.skills.pilot import Pilot
from proctor.skills.states import TERMINAL, State

AHEAD_M = 1.0
"""After so much progress, what was tried before no longer counts."""
DETOUR_S = 0.5
"""Between two new plans around something that is far enough ahead."""


class SavedMission(msgspec.Struct, forbid_unknown_fields=True):
    """A mission that is to go on later, as JSON can hold it."""

    state: State
    goal: Goal | None = None
    elapsed_s: float = 0.0
    paused: bool = False
    counts: dict[Reason, int] = {}
    recoveries: int = 0
    result: dict[str, Any] = {}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> SavedMission:
        """Read what was saved.

        Raises:
            UserError: It is something else.
        """
        try:
            kept = msgspec.convert(saved, cls)
        except msgspec.ValidationError as error:
            raise UserError(f"not a saved navigation: {error}") from None
        if kept.goal is None and kept.state not in (State.IDLE, State.SUCCEEDED, State.FAILED):
            raise UserError(f"not a saved navigation: it is in {kept.state} and has no goal")
        if kept.state in TERMINAL and "status" not in kept.result:
            raise UserError(f"not a saved navigation: it is in {kept.state} and has no result")
        if not 0 <= kept.elapsed_s < math.inf:
            raise UserError(f"not a saved navigation: its goal was given {kept.elapsed_s} s ago")
        return kept


class Mission:
    """A goal that is pursued.

    Args:
        goal: Where to go.
        params: How.
        start: Where the robot is.
        now_s: When the goal was given.
    """

    def __init__(self, goal: Goal, params: NavigationParams, start: Pose2, now_s: float) -> None:
        self.goal, self._params = goal, params
        self.start_s = now_s
        self.arrival = GoalChecker(goal, params)
        self.progress = ProgressChecker(params)
        self.odometer = Odometer(start)
        self.counts: Counter[Reason] = Counter()
        """How often the way was planned anew, and why."""
        self.recoveries = 0
        self.tries = 0
        """Recoveries since there was progress."""
        self._paused_s: float | None = None
        self._counted_from_m = 0.0
        self._detour_s = now_s

    @property
    def is_paused(self) -> bool:
        """Whether it waits to be resumed."""
        return self._paused_s is not None

    def pause(self, now_s: float) -> None:
        """Let no more time count."""
        self._paused_s = now_s

    def resume(self, now_s: float) -> None:
        """Let time count again."""
        self.start_s += now_s - (now_s if self._paused_s is None else self._paused_s)
        self._paused_s = None
        self.progress.restart()

    def elapsed_s(self, now_s: float) -> float:
        """Return how long it has taken, pauses not counted."""
        return (now_s if self._paused_s is None else self._paused_s) - self.start_s

    def check_time(self, now_s: float) -> None:
        """See whether it takes too long.

        Raises:
            NavigationFailure: It does.
        """
        if self.elapsed_s(now_s) > self.goal.timeout_s:
            raise NavigationFailure(Reason.TIMEOUT, f"timeout after {self.goal.timeout_s:g} s")

    def count(self, reason: Reason, message: str) -> None:
        """Take note of something that makes a new plan necessary.

        Raises:
            NavigationFailure: It has happened too often.
        """
        self.counts[reason] += 1
        if self.counts[reason] > self._params.max_replans:
            raise NavigationFailure(reason, f"{message}, {self.counts[reason]} times")

    def count_recovery(self) -> None:
        """Take note of a recovery."""
        self.recoveries += 1
        self.tries += 1

    def may_detour(self, state: State, now_s: float) -> bool:
        """Tell whether the latest detour is long enough ago: a walker would cause one at each tick."""
        return state is State.EXECUTING and now_s - self._detour_s >= DETOUR_S

    def count_detour(self, now_s: float) -> bool:
        """Take note of something in the way, and tell whether there are too many with no progress."""
        self._detour_s = now_s
        if self.odometer.travelled_m - self._counted_from_m > AHEAD_M:
            self._counted_from_m = self.odometer.travelled_m
            self.counts[Reason.BLOCKED] = self.tries = 0
        self.counts[Reason.BLOCKED] += 1
        return self.counts[Reason.BLOCKED] > self._params.max_detours

    def takes(self, asked: Goal | str) -> bool:
        """Take over another time limit for the same goal, and tell whether it is the same."""
        if not isinstance(asked, Goal) or (asked.position, asked.yaw) != (self.goal.position, self.goal.yaw):
            return False
        self.goal = asked
        return True

    def data(self, pose: Pose2) -> dict[str, Any]:
        """Return what is known of the goal from the first, at a pose."""
        return {
            "start_pos": np.array([pose.x, pose.y, self.goal.position[2]]),
            "target_pos": np.array(self.goal.position),
            "start_time": self.start_s,
        }

    def feedback(self, pilot: Pilot) -> dict[str, Any]:
        """Return how far the robot has come, and what is left."""
        pose, course, now_s = pilot.pose(), pilot.course, pilot.now_s()
        self.odometer.update(pose, course, now_s)
        left_s = max(course.ends_s - now_s, 0.0) if course and course.purpose == "goal" else None
        return {
            "progress": self.odometer.progress,
            "distance_to_goal": self.arrival.distance_m(pose),
            "current_velocity": pilot.velocity().tolist(),
            "remaining_time": left_s,
            "elapsed_time": self.elapsed_s(now_s),
            "paused": self.is_paused,
        }

    def saved(self, state: State, now_s: float) -> SavedMission:
        """Return what is needed to go on later."""
        return SavedMission(
            state, self.goal, self.elapsed_s(now_s), self.is_paused, dict(self.counts), self.recoveries
        )

    def take_up(self, saved: SavedMission, now_s: float) -> None:
        """Go on from what was saved."""
        self.start_s = now_s - saved.elapsed_s
        self.counts, self.recoveries = Counter(saved.counts), saved.recoveries
        if saved.paused:
            self.pause(now_s)
