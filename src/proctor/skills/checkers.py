"""Tells whether a robot has arrived, and whether it gets anywhere."""

from __future__ import annotations

import math

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.skills.goal import Goal
from proctor.skills.params import NavigationParams

REST_MPS = 0.01
REST_RADPS = 0.02
SETTLE_S = 2.0
"""After the end of its trajectory a robot has this long to come to rest at the goal."""
TURNED_RAD = 0.2


class GoalChecker:
    """Decides on arrival: near enough, the trajectory driven to its end, and at rest.

    To be near enough is not sufficient, for then the last centimetres would be thrown away.

    Args:
        goal: Where to arrive.
        params: The tolerances.
    """

    def __init__(self, goal: Goal, params: NavigationParams) -> None:
        self._goal, self._params = goal, params

    def distance_m(self, pose: Pose2) -> float:
        """Return how far the goal is, as the crow flies."""
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
        at_rest = math.hypot(vx, vy) < REST_MPS and abs(omega) < REST_RADPS
        return overtime_s >= 0 and self.is_near(pose) and (at_rest or overtime_s >= SETTLE_S)


class ProgressChecker:
    """Notices a robot that does not get anywhere.

    Args:
        params: How far it must get in which time.
    """

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
            if moved_m < self._params.progress_m and turned_rad < TURNED_RAD:
                return now_s - since_s > self._params.progress_time_s
        self._since = (pose, now_s)
        return False
