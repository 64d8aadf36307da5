"""Where a robot that obeys late will be when it has done all that it was told."""

from __future__ import annotations

STEADY_S = 0.1
"""A robot has its speed so long after it begins to move. The speed is measured over at least as long."""
MAX_LATENCY_S = 0.3
SHARES = (0.8, 1.2)
"""A robot that moves at less or more than these shares of the speed it is told does not move freely."""


class Prediction:
    """Adds the commands that are underway to the way that a robot has covered.

    Latency is the time from a command to its effect, by the robot's clock. It is measured at the beginning of
    each move, from the first command and the way covered since, together with the share of the commanded
    speed that the robot really has.

    Args:
        latency_s: What is assumed until it is measured.
    """

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self._share = 1.0
        self._commands: list[tuple[float, float]] = []
        """When each speed was commanded, and the speed along the way."""
        self._steady: tuple[float, float] | None = None
        """A time at which the robot had its speed, and the way covered then."""

    def command(self, now_s: float, speed: float) -> None:
        """Take note of a speed along the way that the robot is told now."""
        if not self._commands or speed != self._commands[-1][1]:
            self._commands.append((now_s, speed))

    def covered(self, measured_s: float, covered: float, now_s: float) -> float:
        """Return how much of the way is covered if the robot is told to stop now.

        Args:
            measured_s: When the odometry was measured.
            covered: The way that it shows.
            now_s: The robot's time.
        """
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
                self._share, self.latency_s = share, min(max(latency_s, 0.0), MAX_LATENCY_S)
