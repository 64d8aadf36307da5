"""One goal and what has become of it so far: arrival, progress, counts, feedback and result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.skill.goal import Goal
from proctor.navigation.skill.manager import Result
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.pilot import Course, Pilot
from proctor.navigation.skill.states import TERMINAL, State

SETTLE_S = 2.0  # after the end of its trajectory a robot has this long to come to rest at the goal
AHEAD_M = 1.0  # after so much progress, what was tried before no longer counts
DETOUR_S = 0.5  # between two new plans around something that is far enough ahead


class GoalChecker:
    """Decides on arrival: near enough, at rest, and the last centimetres of the trajectory driven."""

    def __init__(self, goal: Goal, params: NavigationParams) -> None:
        self._goal, self._params = goal, params

    def distance_m(self, pose: Pose2) -> float:
        """Return the straight distance to the goal."""
        return math.dist((pose.x, pose.y), self._goal.xy)

    def yaw_error_rad(self, pose: Pose2) -> float | None:
        """Return how far the heading is off, if one is asked for."""
        return None if self._goal.yaw is None else abs(wrap_angle(pose.yaw - self._goal.yaw))

    def is_near(self, pose: Pose2) -> bool:
        """Tell whether position and heading are within the tolerances."""
        yaw_error_rad = self.yaw_error_rad(pose)
        turned = yaw_error_rad is None or yaw_error_rad <= self._params.yaw_tolerance_rad
        return turned and self.distance_m(pose) <= self._params.position_tolerance_m

    def has_arrived(self, pose: Pose2, velocity: Array, overtime_s: float) -> bool:
        """Tell whether a robot that has been at the end of its trajectory for a while has arrived."""
        vx, vy, omega = velocity
        at_rest = math.hypot(vx, vy) < 0.01 and abs(omega) < 0.02
        return overtime_s >= 0 and self.is_near(pose) and (at_rest or overtime_s >= SETTLE_S)


class ProgressChecker:
    """Notices a robot that makes no progress."""

    def __init__(self, params: NavigationParams) -> None:
        self._params = params
        self._since: tuple[Pose2, float] | None = None

    def restart(self) -> None:
        """Begin to watch anew."""
        self._since = None

    def is_stuck(self, pose: Pose2, now_s: float) -> bool:
        """Take note of a pose and tell whether the robot is stuck."""
        if self._since is not None:
            before, since_s = self._since
            moved_m = math.hypot(pose.x - before.x, pose.y - before.y)
            turned_rad = abs(wrap_angle(pose.yaw - before.yaw))
            if moved_m < self._params.progress_m and turned_rad < 0.2:
                return now_s - since_s > self._params.progress_time_s
        self._since = (pose, now_s)
        return False


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
        """Read what was saved; UserError if it is something else."""
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
    """A goal that is pursued."""

    def __init__(self, goal: Goal, params: NavigationParams, start: Pose2, now_s: float) -> None:
        self.goal, self._params = goal, params
        self.start_s = now_s
        self.arrival = GoalChecker(goal, params)
        self.progress = ProgressChecker(params)
        self.odometer = Odometer(start)
        self.counts: Counter[Reason] = Counter()  # how often the way was planned anew, and why
        self.recoveries = 0
        self.tries = 0  # recoveries since there was progress
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
        """Raise NavigationFailure if it takes too long."""
        if self.elapsed_s(now_s) > self.goal.timeout_s:
            raise NavigationFailure(Reason.TIMEOUT, f"timeout after {self.goal.timeout_s:g} s")

    def count(self, reason: Reason, message: str) -> None:
        """Count an event that makes a new plan necessary; NavigationFailure if it happened too often."""
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


class Odometer:
    """How far a robot has driven, and how far it still has to."""

    def __init__(self, start: Pose2) -> None:
        self._last = start
        self.travelled_m = 0.0
        self.progress = 0  # Percent. Never less than it was.

    def update(self, pose: Pose2, course: Course | None, now_s: float) -> None:
        """Take note of where the robot is."""
        self.travelled_m += math.hypot(pose.x - self._last.x, pose.y - self._last.y)
        self._last = pose
        if course is not None and course.purpose == "goal":
            total_m = self.travelled_m + course.remaining_m(now_s)
            share = self.travelled_m / total_m if total_m > 0 else 0.0
            self.progress = max(self.progress, min(int(100 * share), 99))


def processing(message: str, **fields: Any) -> Result:
    """Return the feedback of a tick."""
    return {"status": "processing", "message": message, **fields}


def standing(message: str, result: Result, **fields: Any) -> Result:
    """Return the feedback of a tick in which there is no goal to go to: it is over, or makes no sense."""
    return processing(
        message,
        **fields,
        distance_to_goal=result.get("final_distance"),
        current_velocity=[0.0, 0.0, 0.0],
        remaining_time=None,
        elapsed_time=result.get("total_time", 0.0),
        replans=result.get("replans", 0),
        recoveries=result.get("recoveries", 0),
        paused=False,
    )


def succeeded(distance_m: float, yaw_error_rad: float | None, total_s: float, **fields: Any) -> Result:
    """Return the result of an arrival."""
    result = {
        "status": "succeeded",
        "message": "Navigation completed successfully",
        "final_distance": distance_m,
        "total_time": total_s,
        **fields,
    }
    if yaw_error_rad is not None:
        result["final_yaw_error"] = yaw_error_rad
    return result


def failed(failure: NavigationFailure, distance_m: float | None, elapsed_s: float, **fields: Any) -> Result:
    """Return the result of a failure."""
    return {
        "status": "failed",
        "message": f"Navigation failed: {failure}",
        "reason": str(failure.reason),
        "final_distance": distance_m,
        "elapsed_time": elapsed_s,
        "total_time": elapsed_s,
        **fields,
    }
