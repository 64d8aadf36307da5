"""Proctor's goal checker and progress checker."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import msgspec

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.navigation.plugins import GoalChecker, PluginOptions, ProgressChecker
from proctor.navigation.skill.goal import NavigationGoal

SETTLE_S = 2.0  # after the end of its trajectory a robot has this long to come to rest at the goal
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e4)]


class AtRestOptions(PluginOptions, frozen=True):
    """How near is near enough."""

    position_tolerance_m: Positive = 0.1
    yaw_tolerance_rad: Positive = 0.05  # counts only if a heading is asked for


class AtRestGoalChecker(GoalChecker):
    """Needs a robot near enough, at rest, and the last centimetres of the trajectory driven."""

    options_type = AtRestOptions

    def has_arrived(self, goal: NavigationGoal, pose: Pose2, velocity: Array, overtime_s: float) -> bool:
        """Tell whether a robot that has been at the end of its trajectory for a while has arrived."""
        vx, vy, omega = velocity
        at_rest = math.hypot(vx, vy) < 0.01 and abs(omega) < 0.02
        return overtime_s >= 0 and self._is_near(goal, pose) and (at_rest or overtime_s >= SETTLE_S)

    def _is_near(self, goal: NavigationGoal, pose: Pose2) -> bool:
        yaw_error_rad = goal.yaw_error_rad(pose)
        turned = yaw_error_rad is None or yaw_error_rad <= self.options.yaw_tolerance_rad
        return bool(turned and goal.distance_m(pose) <= self.options.position_tolerance_m)


class MovementOptions(PluginOptions, frozen=True):
    """A robot that has not moved `progress_m` in this time makes no progress."""

    progress_m: Positive = 0.1
    progress_time_s: Positive = 10.0


class MovementProgressChecker(ProgressChecker):
    """Wants the robot to move or to turn now and then."""

    options_type = MovementOptions

    def __init__(self, options: MovementOptions | None = None) -> None:
        super().__init__(options)
        self._since: tuple[Pose2, float] | None = None

    def restart(self) -> None:
        """Begin to watch anew."""
        self._since = None

    def find_problem(self, pose: Pose2, now_s: float) -> str | None:
        """Take note of a pose, and say so if the robot is stuck."""
        if self._since is not None:
            before, since_s = self._since
            moved_m = math.hypot(pose.x - before.x, pose.y - before.y)
            turned_rad = abs(wrap_angle(pose.yaw - before.yaw))
            if moved_m < self.options.progress_m and turned_rad < 0.2:
                allowed_s = self.options.progress_time_s
                return f"no progress in {allowed_s:g} s" if now_s - since_s > allowed_s else None
        self._since = (pose, now_s)
        return None
