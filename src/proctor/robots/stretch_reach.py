"""What Stretch's hand can get at, by geometry alone: nothing is known here of what stands in the way."""

from __future__ import annotations

import math
from typing import NamedTuple

from proctor.robots.stretch import CONTROLS
from proctor.robots.stretch_kinematics import HAND_HEIGHT_M, hand_in_base

LIFT, ARM, WRIST_YAW = CONTROLS[3], CONTROLS[4], CONTROLS[5]
LOWEST_M, HIGHEST_M = HAND_HEIGHT_M + LIFT.low, HAND_HEIGHT_M + LIFT.high


def _away_m(arm_m: float, wrist_yaw: float) -> float:
    position, _ = hand_in_base(0.0, arm_m, wrist_yaw)
    return math.hypot(*position[:2].tolist())


FARTHEST_M, NEAREST_M = _away_m(ARM.high, 0.0), _away_m(ARM.low, WRIST_YAW.high)
"""Of the pads from the base's axis, horizontally."""


class Reach(NamedTuple):
    """How a robot can get at a point."""

    distance_m: float
    """From the base's axis at the start, horizontally."""
    drive_m: float
    """How far the base must drive at least, if it may turn."""
    too_high_m: float
    """By how much the point is above what the hand can get at; negative if below, 0 if neither."""

    @property
    def is_reachable(self) -> bool:
        """Whether the pads can get there, the base being free to drive: so only the height counts."""
        return self.too_high_m == 0


def reach_of(start: tuple[float, float, float], point: tuple[float, float, float]) -> Reach:
    """Tell how a robot that starts at x, y and heading can get its pads to a point of the world."""
    distance_m = math.hypot(point[0] - start[0], point[1] - start[1])
    drive_m = max(distance_m - FARTHEST_M, NEAREST_M - distance_m, 0.0)
    return Reach(distance_m, drive_m, point[2] - min(max(point[2], LOWEST_M), HIGHEST_M))
