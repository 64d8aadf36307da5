"""How a move comes to its end, and which one suits which robot."""

from __future__ import annotations

import math
from typing import NamedTuple

LANDED = 0.002
"""A move is over when less than this fraction of its length is left."""

OFF = 3.0
"""A robot is off its goal if it is so many times as far from it as moves may end before it."""


class Landing(NamedTuple):
    """Near its goal a robot is as fast as would cover what is left in `braking_s`, but not below a speed."""

    braking_s: float
    slowest_mps: float
    slowest_radps: float
    near_m: float
    """A drive is over when no more than this, or than a fraction of it, is left."""
    near_rad: float
    """A turn likewise."""
    settles: bool
    """Whether to wait after the stop until the odometry shows that the robot stands."""
    patience_s: float
    """No move is given up before so much real time: commands may be underway while a simulation runs fast."""


AT_ONCE = Landing(0.3, 0.1, 0.3, 0.0, 0.0, settles=False, patience_s=0.0)
"""For robots that obey at once: the last command is scaled, so that it ends at the goal."""
WITH_LATENCY = Landing(0.25, 0.02, 0.03, 0.002, math.radians(0.1), settles=True, patience_s=1.0)
"""For robots that obey, and tell where they are, up to 0.1 s late: they creep up to the goal.

Their creep times their latency is the way by which they miss it.
"""


class Approach(NamedTuple):
    """One move's way to its goal, in metres or in radians."""

    goal: float
    speed: float
    """Of the way, before the landing."""
    slowest: float
    braking_s: float
    near: float

    @classmethod
    def driving(cls, distance_m: float, speed_mps: float, landing: Landing) -> Approach:
        """Return the approach of a drive of this length."""
        near_m = max(landing.near_m, LANDED * distance_m)
        return cls(distance_m, speed_mps, landing.slowest_mps, landing.braking_s, near_m)

    @classmethod
    def turning(cls, angle_rad: float, speed_radps: float, landing: Landing) -> Approach:
        """Return the approach of a turn by this angle."""
        near_rad = max(landing.near_rad, LANDED * angle_rad)
        return cls(angle_rad, speed_radps, landing.slowest_radps, landing.braking_s, near_rad)

    def is_over(self, covered: float) -> bool:
        """Tell whether so much of the way is enough."""
        return self.goal - covered <= self.near

    def is_off(self, off: float) -> bool:
        """Tell whether a robot that stands so far from the goal should not be left there."""
        return abs(off) > OFF * self.near

    def step(self, covered: float, period_s: float) -> float:
        """Return how far to go in the next period."""
        left = self.goal - covered
        return min(period_s * min(self.speed, max(self.slowest, left / self.braking_s)), left)
