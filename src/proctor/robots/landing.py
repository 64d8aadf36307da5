"""How a move comes to its end, and where a robot that obeys late will be by then."""

from __future__ import annotations

import math
from typing import NamedTuple

STEADY_S = 0.1  # after this long a robot has its speed; the speed is measured over at least as long
SHARES = (0.8, 1.2)  # a robot outside these shares of its commanded speed does not move freely


class LandingSpeeds(NamedTuple):
    """How a drive or a turn ends; all numbers are in metres, or all in radians."""

    slowest: float
    near: float = 0.0  # a move is over when less is left
    final: float = 0.0  # from here on the robot creeps, beginning also within a period
    creep: float = 0.0
    off: float = 0.0  # a robot that stands further from its goal than this is brought to it


class Landing(NamedTuple):
    """Near its goal a robot is as fast as would cover what is left in `braking_s`, but not below a speed.

    The last command is scaled, so that it ends at the goal.
    """

    braking_s: float
    drive: LandingSpeeds
    turn: LandingSpeeds
    is_late: bool = False
    """The robot obeys late, and tells late where it is. Then commands that are underway count as done, and
    a move ends when the odometry shows that the robot stands."""
    patience_s: float = 0.0  # least real time before giving up: a simulation may run fast meanwhile


AT_ONCE = Landing(0.3, LandingSpeeds(0.1), LandingSpeeds(0.3))  # for robots that obey at once
WITH_LATENCY = Landing(
    braking_s=0.25,
    drive=LandingSpeeds(slowest=0.1, final=0.004, creep=0.04, off=0.002),
    turn=LandingSpeeds(slowest=0.3, near=0.0009, final=0.0055, creep=0.1, off=math.radians(0.15)),
    is_late=True,
    patience_s=5.0,  # at a load of ten, a simulator did not hear its commands for more than a second
)
"""For robots that obey, and tell where they are, up to 0.3 s late. How far they miss is the speed of the last
command times the spread of their latency, not the latency."""


class Approach(NamedTuple):
    """One move's path to its goal, in metres or in radians."""

    goal: float
    speed: float  # of the move, before the landing
    landing: LandingSpeeds
    braking_s: float

    @property
    def near(self) -> float:
        """What may be left when the move is over."""
        return max(self.landing.near, 0.002 * self.goal)

    @property
    def creep(self) -> float:
        """The last and slowest speed."""
        return min(self.landing.creep, self.speed)

    def is_over(self, covered: float) -> bool:
        """Tell whether so much of the way is enough."""
        return self.goal - covered <= self.near

    def is_final(self, covered: float) -> bool:
        """Tell whether the robot creeps when so much of the way is covered."""
        return self.goal - covered <= self.landing.final

    def is_off(self, off: float) -> bool:
        """Tell whether a robot that stands so far from the goal is brought to it."""
        return abs(off) > max(self.landing.off, self.near)

    def step(self, covered: float, period_s: float) -> float:
        """Return how far to go in the next period."""
        left = self.goal - covered
        if self.is_final(covered):
            return period_s * self.creep
        return min(period_s * min(self.speed, max(self.landing.slowest, left / self.braking_s)), left)


class Prediction:
    """Adds the commands that are underway to the path that a robot has covered.

    Latency is the time from a command to its effect, by the robot's clock. It is measured at the
    beginning of each move, from the first command and the path covered since, together with the share of
    the commanded speed that the robot really has. Until then `latency_s` is assumed.
    """

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self._share = 1.0
        self._commands: list[tuple[float, float]] = []  # when each speed was commanded, and the speed
        self._steady: tuple[float, float] | None = None  # when the robot had its speed, and the path then

    def command(self, now_s: float, speed: float) -> None:
        """Take note of a speed along the way that the robot is told now."""
        if not self._commands or speed != self._commands[-1][1]:
            self._commands.append((now_s, speed))

    def covered(self, measured_s: float, covered: float, now_s: float) -> float:
        """Return how much of the path will be covered if the robot is told to stop now."""
        self._measure(measured_s, covered)
        underway, until_s = 0.0, now_s
        for sent_s, speed in reversed(self._commands):
            since_s = max(sent_s, measured_s - self.latency_s)
            if since_s >= until_s:
                break
            underway += speed * (until_s - since_s)
            until_s = since_s
        return covered + self._share * underway

    def _measure(self, measured_s: float, covered: float) -> None:
        if len(self._commands) != 1 or covered <= 0:
            return  # it does not move yet, or no longer at its first speed
        begun_s, speed = self._commands[0]
        if self._steady is None:
            if measured_s - begun_s - covered / speed >= 0 and covered / speed >= STEADY_S:
                self._steady = measured_s, covered
            return
        steady_s, steady = self._steady
        if measured_s - steady_s >= STEADY_S:
            share = (covered - steady) / (measured_s - steady_s) / speed
            if SHARES[0] <= share <= SHARES[1]:
                latency_s = measured_s - begun_s - covered / (share * speed)
                self._share, self.latency_s = share, min(max(latency_s, 0.0), 0.3)
