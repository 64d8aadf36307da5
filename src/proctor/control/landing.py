"""How a move comes to its end, and which one suits which robot."""

from __future__ import annotations

import math
from typing import NamedTuple

LANDED = 0.002
"""A move is over when less than this fraction of its length is left."""


class Landing(NamedTuple):
    """Near its goal a robot is as fast as would cover what is left in `braking_s`, but not below a speed.

    The last command is scaled, so that it ends at the goal.
    """

    braking_s: float
    slowest_mps: float
    slowest_radps: float
    final_m: float = 0.0
    """When no more than this is left of a drive, the robot creeps; it begins to also within a period."""
    final_rad: float = 0.0
    """In a turn likewise."""
    creep_mps: float = 0.0
    creep_radps: float = 0.0
    near_rad: float = 0.0
    off_m: float = 0.0
    """A robot that stands further from its goal than this is brought to it."""
    off_rad: float = 0.0
    is_late: bool = False
    """Whether the robot obeys late, and tells late where it is.

    Then the commands that are underway count as done, and a move ends when the odometry shows that the robot
    stands.
    """
    patience_s: float = 0.0
    """No move is given up before so much real time: commands may be underway while a simulation runs fast."""


AT_ONCE = Landing(0.3, 0.1, 0.3)
"""For robots that obey at once."""
WITH_LATENCY = Landing(
    braking_s=0.25,
    slowest_mps=0.1,
    slowest_radps=0.3,
    final_m=0.004,
    final_rad=0.0055,
    creep_mps=0.04,
    creep_radps=0.1,
    near_rad=0.0009,
    off_m=0.002,
    off_rad=math.radians(0.15),
    is_late=True,
    patience_s=1.0,
)
"""For robots that obey, and tell where they are, up to 0.3 s late.

How far they miss is the speed of the last command times the spread of their latency, not the latency.
"""


class Approach(NamedTuple):
    """One move's way to its goal, in metres or in radians."""

    goal: float
    speed: float
    """Of the way, before the landing."""
    slowest: float
    braking_s: float
    near: float
    final: float
    creep: float
    off: float

    @classmethod
    def driving(cls, distance_m: float, speed_mps: float, landing: Landing) -> Approach:
        """Return the approach of a drive of this length."""
        near_m, slowest_mps = LANDED * distance_m, landing.slowest_mps
        ends = (near_m, landing.final_m, min(landing.creep_mps, speed_mps), landing.off_m)
        return cls(distance_m, speed_mps, slowest_mps, landing.braking_s, *ends)

    @classmethod
    def turning(cls, angle_rad: float, speed_radps: float, landing: Landing) -> Approach:
        """Return the approach of a turn by this angle."""
        near_rad, slowest_radps = max(landing.near_rad, LANDED * angle_rad), landing.slowest_radps
        ends = (near_rad, landing.final_rad, min(landing.creep_radps, speed_radps), landing.off_rad)
        return cls(angle_rad, speed_radps, slowest_radps, landing.braking_s, *ends)

    def is_over(self, covered: float) -> bool:
        """Tell whether so much of the way is enough."""
        return self.goal - covered <= self.near

    def is_final(self, covered: float) -> bool:
        """Tell whether the robot creeps when so much of the way is covered."""
        return self.goal - covered <= self.final

    def is_off(self, off: float) -> bool:
        """Tell whether a robot that stands so far from the goal is brought to it."""
        return abs(off) > max(self.off, self.near)

    def step(self, covered: float, period_s: float) -> float:
        """Return how far to go in the next period."""
        left = self.goal - covered
        if self.is_final(covered):
            return period_s * self.creep
        return min(period_s * min(self.speed, max(self.slowest, left / self.braking_s)), left)
