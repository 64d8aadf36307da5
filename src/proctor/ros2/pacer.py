"""Keeps simulated time in step with the wall clock, at any real-time factor."""

from __future__ import annotations

import time
from collections import deque

LAG_S = 0.25
"""A world that is late by more than this does not hurry to catch up: it would only be late elsewhere."""
WINDOW_S = 2.0
"""The real-time factor is that of so many seconds."""


class Pacer:
    """Says when the next tick is due. Never decides what happens in it.

    Args:
        tick_s: Simulated seconds of a tick.
        real_time_factor: Simulated seconds in a second; None is as fast as possible.
    """

    def __init__(self, tick_s: float, real_time_factor: float | None) -> None:
        self._tick_s = tick_s
        self._period_s = 0.0 if real_time_factor is None else tick_s / real_time_factor
        self._due_s = time.monotonic()
        self._ticks: deque[float] = deque()
        self.real_time_factor = 0.0
        """What was reached in the last seconds."""

    def left_s(self) -> float:
        """Return the seconds until the next tick is due, or 0."""
        return max(0.0, self._due_s - time.monotonic())

    def tick(self) -> None:
        """Note that a tick has begun."""
        now_s = time.monotonic()
        # Due times do not drift: being late once is made up for.
        self._due_s = max(self._due_s + self._period_s, now_s - LAG_S)
        self._ticks.append(now_s)
        while self._ticks[0] < now_s - WINDOW_S:
            self._ticks.popleft()
        passed_s = now_s - self._ticks[0]
        if passed_s > 0:
            self.real_time_factor = (len(self._ticks) - 1) * self._tick_s / passed_s

    def restart(self) -> None:
        """Begin anew: the world has stood still."""
        self._due_s = time.monotonic()
        self._ticks.clear()
        self.real_time_factor = 0.0
