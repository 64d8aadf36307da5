"""What `navigate_to` returns: while it is under way, and when it is over."""

from __future__ import annotations

import math
from typing import Any

from proctor.core.types import Pose2
from proctor.navigation.failure import NavigationFailure
from proctor.skills.course import Course
from proctor.skills.skill import Result


class Odometer:
    """How far a robot has come, and how far it has still to go.

    Args:
        start: Where it begins.
    """

    def __init__(self, start: Pose2) -> None:
        self._last = start
        self.travelled_m = 0.0
        self.progress = 0
        """Percent. Never less than it was."""

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
