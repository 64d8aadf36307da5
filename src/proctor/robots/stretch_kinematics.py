"""Forward and inverse kinematics of the Stretch's hand in closed form, and its reach.

The hand's frame lies between the pads: x along the fingers, which always point 30 degrees down, y to the
left finger. A *heading* here is the direction of the fingers seen from above, anticlockwise from +x of the
frame that is spoken of. Opening and closing moves the pads by a few millimetres along x; the frame stays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.robots.stretch import CONTROLS

# Measured in the model that is made from the maker's URDF; good to 0.02 mm.
WRIST_IN_BASE_M = (-0.021383, -0.144949)
"""The wrist's axis with the arm retracted. The arm takes it along -y."""
HAND_FROM_WRIST_M = (0.000053, -0.203182)
"""The hand seen from the wrist's axis, with the wrist at 0."""
HAND_HEIGHT_M = 0.027418
"""Of the hand, with the lift at 0."""
HEADING_AT_ZERO = -math.pi / 2
"""With the wrist at 0 the fingers point along the arm."""
FINGER_PITCH_RAD = math.radians(30.0)
"""How far the fingers point down, always."""
VERTICAL = 1e-6
"""Shorter than this, what is left of a unit vector seen from above has no direction."""
LIFT, ARM, WRIST_YAW = CONTROLS[3], CONTROLS[4], CONTROLS[5]
LOWEST_M, HIGHEST_M = HAND_HEIGHT_M + LIFT.low, HAND_HEIGHT_M + LIFT.high


class Posture(NamedTuple):
    """Where the base stands in the world, and how the arm reaches from there."""

    base: Pose2
    lift_m: float
    arm_m: float
    wrist_yaw: float

    def is_possible(self, slack: float = 1e-9) -> bool:
        """Return whether lift, arm and wrist can do this."""
        values = (self.lift_m, self.arm_m, self.wrist_yaw)
        return all(
            control.low - slack <= value <= control.high + slack
            for control, value in zip(CONTROLS[3:6], values, strict=True)
        )

    def clamped(self) -> Posture:
        """Return the nearest posture that lift, arm and wrist can do, from the same place."""
        values = (self.lift_m, self.arm_m, self.wrist_yaw)
        possible = (
            min(max(value, control.low), control.high)
            for control, value in zip(CONTROLS[3:6], values, strict=True)
        )
        return Posture(self.base, *possible)

    def hand(self) -> tuple[Array, float]:
        """Return where the hand then is in the world, and its heading."""
        return hand_in_world(self.base, self.lift_m, self.arm_m, self.wrist_yaw)


def hand_in_base(lift_m: float, arm_m: float, wrist_yaw: float) -> tuple[Array, float]:
    """Return the hand's position in `base_link`, and its heading there."""
    return hand_in_world(Pose2(0.0, 0.0, 0.0), lift_m, arm_m, wrist_yaw)


def hand_in_world(base: Pose2, lift_m: float, arm_m: float, wrist_yaw: float) -> tuple[Array, float]:
    """Return the hand's position in the world, and its heading there."""
    x, y = _turned(_hand_from_base(arm_m, wrist_yaw), base.yaw)
    position = np.array([base.x + x, base.y + y, HAND_HEIGHT_M + lift_m])
    return position, wrap_angle(base.yaw + HEADING_AT_ZERO + wrist_yaw)


def reach_by_driving(hand_world: Array, heading: float, base: Pose2) -> Posture:
    """Return how to bring the hand to a place in the world by driving straight, lift, arm and wrist.

    The base keeps its heading and moves along it only, as the real one does. There is one such posture, or
    none: see `Posture.is_possible`. The fingers point to `heading` in the world.
    """
    wrist_yaw = wrist_for(heading, base.yaw)
    there = _turned((float(hand_world[0]) - base.x, float(hand_world[1]) - base.y), -base.yaw)
    retracted = _hand_from_base(0.0, wrist_yaw)
    forward_m, arm_m = there[0] - retracted[0], retracted[1] - there[1]
    x, y = _turned((forward_m, 0.0), base.yaw)
    lift_m = float(hand_world[2]) - HAND_HEIGHT_M
    return Posture(Pose2(base.x + x, base.y + y, base.yaw), lift_m, arm_m, wrist_yaw)


def reach_from(hand_world: Array, heading: float, base_yaw: float, arm_m: float) -> Posture:
    """Return where to stand so that the hand is at a place in the world, with the arm this far out.

    Both headings are in the world. The arm points to the right of the base's.
    """
    wrist_yaw = wrist_for(heading, base_yaw)
    x, y = _turned(_hand_from_base(arm_m, wrist_yaw), base_yaw)
    base = Pose2(float(hand_world[0]) - x, float(hand_world[1]) - y, base_yaw)
    return Posture(base, float(hand_world[2]) - HAND_HEIGHT_M, arm_m, wrist_yaw)


def wrist_for(heading: float, base_yaw: float) -> float:
    """Return the wrist's angle with which the fingers point this way in the world."""
    return wrap_angle(heading - base_yaw - HEADING_AT_ZERO)


def hand_quaternion(heading: float) -> Array:
    """Return how the hand is turned when the fingers have this heading: w, x, y, z."""
    cz, sz = math.cos(heading / 2), math.sin(heading / 2)
    cy, sy = math.cos(FINGER_PITCH_RAD / 2), math.sin(FINGER_PITCH_RAD / 2)
    return np.array([cz * cy, -sz * sy, cz * sy, sz * cy])


def heading_of(wxyz: Array) -> float:
    """Return the heading of a hand that is turned like this, whatever its pitch and roll.

    Of a hand that points straight down or up it is the heading that it would have if it were pitched back.
    """
    w, x, y, z = (np.asarray(wxyz, float) / math.hypot(*wxyz)).tolist()
    ahead = (1 - 2 * (y * y + z * z), 2 * (x * y + w * z))
    if math.hypot(*ahead) < VERTICAL:
        is_down = 2 * (x * z - w * y) < 0
        sign = 1.0 if is_down else -1.0
        ahead = (sign * 2 * (x * z + w * y), sign * 2 * (y * z - w * x))
    return math.atan2(ahead[1], ahead[0])


def _hand_from_base(arm_m: float, wrist_yaw: float) -> tuple[float, float]:
    x, y = _turned(HAND_FROM_WRIST_M, wrist_yaw)
    return WRIST_IN_BASE_M[0] + x, WRIST_IN_BASE_M[1] - arm_m + y


def _turned(vector: tuple[float, float], angle: float) -> tuple[float, float]:
    cos, sin = math.cos(angle), math.sin(angle)
    return cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]


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
