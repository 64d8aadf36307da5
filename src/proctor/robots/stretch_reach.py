"""What Stretch's hand can get at, by geometry alone: nothing is known here of what stands in the way."""

from __future__ import annotations

import math
from typing import NamedTuple

from proctor.robots.stretch import CONTROLS

WRIST_XY_M = (-0.0214, -0.145)
"""Where the wrist's axis stands in the base frame, the arm drawn in."""
PADS_AHEAD_OF_WRIST_M = 0.2036
PADS_ABOVE_LIFT_M = 0.0272
"""How high the middle between the pads is above the floor, the lift at 0: the lowest."""
LIFT, ARM, WRIST_YAW = CONTROLS[3], CONTROLS[4], CONTROLS[5]
LOWEST_M, HIGHEST_M = PADS_ABOVE_LIFT_M + LIFT.low, PADS_ABOVE_LIFT_M + LIFT.high


def pads_in_base(lift_m: float, arm_m: float, wrist_yaw: float) -> tuple[float, float, float]:
    """Return where the middle between the pads is in the base frame."""
    x = WRIST_XY_M[0] + PADS_AHEAD_OF_WRIST_M * math.sin(wrist_yaw)
    y = WRIST_XY_M[1] - arm_m - PADS_AHEAD_OF_WRIST_M * math.cos(wrist_yaw)
    return x, y, PADS_ABOVE_LIFT_M + lift_m


FARTHEST_M = math.hypot(*pads_in_base(0.0, ARM.high, 0.0)[:2])
NEAREST_M = math.hypot(*pads_in_base(0.0, ARM.low, WRIST_YAW.high)[:2])
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
