"""One goal and what has become of it so far: arrival, progress, counts, feedback and result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.plugins import GoalChecker, ProgressChecker, calling, check_returned, make_plugin
from proctor.navigation.skill.goal import NavigationGoal
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.pilot import Pilot
from proctor.navigation.skill.states import OVER, TERMINAL, Result, SkillState

AHEAD_M = 1.0  # after so much progress, what was tried before no longer counts


class SavedMission(msgspec.Struct, forbid_unknown_fields=True):
    """A mission that is to go on later, as JSON can hold it."""

    state: SkillState
    goal: NavigationGoal | None = None
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
        if kept.goal is None and kept.state not in OVER:
            raise UserError(f"not a saved navigation: it is in {kept.state} and has no goal")
        if kept.state in TERMINAL and "status" not in kept.result:
            raise UserError(f"not a saved navigation: it is in {kept.state} and has no result")
        if not 0 <= kept.elapsed_s < math.inf:
            raise UserError(f"not a saved navigation: its goal was given {kept.elapsed_s} s ago")
        return kept


class Mission:
    """A goal that is pursued."""

    def __init__(self, goal: NavigationGoal, params: NavigationParams, start: Pose2, now_s: float) -> None:
        self.goal, self._params = goal, params
        self.start_s = now_s
        self._goal_checker: GoalChecker = make_plugin(
            "goal_checker", params.goal_checker, params.goal_checker_options
        )
        self._progress_checker: ProgressChecker = make_plugin(
            "progress_checker", params.progress_checker, params.progress_checker_options
        )
        self.travelled_m, self._last_pose = 0.0, start
        self.progress = 0  # percent; never less than it was
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
        self.watch_anew()

    def has_arrived(self, pilot: Pilot, pose: Pose2, overtime_s: float) -> bool:
        """Ask the goal checker, so long after the end of the trajectory."""
        velocity = pilot.velocity()  # an error of the robot is not the goal checker's
        with calling(self._goal_checker):
            arrived = self._goal_checker.has_arrived(self.goal, pose, velocity, overtime_s)
        check_returned(self._goal_checker, arrived, (bool, np.bool_), "True or False")
        return bool(arrived)

    def watch_anew(self) -> None:
        """Let the progress checker begin anew: the robot has another course."""
        with calling(self._progress_checker):
            self._progress_checker.restart()

    def find_problem(self, pose: Pose2, now_s: float) -> str | None:
        """Ask the progress checker."""
        with calling(self._progress_checker):
            problem = self._progress_checker.find_problem(pose, now_s)
        check_returned(self._progress_checker, problem, (str, type(None)), "what is wrong, or None")
        return problem

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

    def count_refusal(self, pose: Pose2) -> None:
        """Count a trajectory that was driven to its end and not accepted as the arrival."""
        where = f"{self.goal.distance_m(pose):.2f} m from the goal"
        self.count(Reason.NOT_ACCEPTED, f"the {self._goal_checker.title} did not accept the arrival, {where}")

    def count_recovery(self) -> None:
        """Take note of a recovery."""
        self.recoveries += 1
        self.tries += 1

    def may_detour(self, state: SkillState, now_s: float) -> bool:
        """Tell whether the latest detour is long enough ago: a walker would cause one at each tick."""
        return state is SkillState.EXECUTING and now_s - self._detour_s >= 0.5

    def count_detour(self, now_s: float) -> bool:
        """Take note of something in the way, and tell whether there are too many with no progress."""
        self._detour_s = now_s
        if self.travelled_m - self._counted_from_m > AHEAD_M:
            self._counted_from_m = self.travelled_m
            self.counts[Reason.BLOCKED] = self.tries = 0
        self.counts[Reason.BLOCKED] += 1
        return self.counts[Reason.BLOCKED] > self._params.max_detours

    def takes(self, asked: NavigationGoal | str) -> bool:
        """Take over another time limit for the same goal, and tell whether it is the same."""
        if not isinstance(asked, NavigationGoal) or (asked.position, asked.yaw) != (
            self.goal.position,
            self.goal.yaw,
        ):
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
        pose, course, now_s = pilot.robot.pose(), pilot.course, pilot.now_s()
        self.travelled_m += math.hypot(pose.x - self._last_pose.x, pose.y - self._last_pose.y)
        self._last_pose = pose
        left_s = None
        if course is not None and course.purpose == "goal":
            left_s = max(course.ends_s - now_s, 0.0)
            total_m = self.travelled_m + course.remaining_m(now_s)
            share = self.travelled_m / total_m if total_m > 0 else 0.0
            self.progress = max(self.progress, min(int(100 * share), 99))
        return {
            "progress": self.progress,
            "distance_to_goal": self.goal.distance_m(pose),
            "current_velocity": pilot.velocity().tolist(),
            "remaining_time": left_s,
            "elapsed_time": self.elapsed_s(now_s),
            "paused": self.is_paused,
        }

    def saved(self, state: SkillState, now_s: float) -> SavedMission:
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
