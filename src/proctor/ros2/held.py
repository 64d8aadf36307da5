"""Notices a robot that does not move though it is told to: it is held by what its scanner cannot see."""

from __future__ import annotations

from proctor.core.types import Array

HELD_S = 0.5
LEAST_SHARE = 0.1
"""A robot that does less than this share of what it is told is held."""
LEAST_MPS, LEAST_RADPS = 0.02, 0.05
"""Slower commands say nothing: wheels stick."""


class Held:
    """Compares the velocity that a robot is told with the one that its odometry shows, message by message.

    A single message that shows motion is enough to begin anew: how late commands and odometry are on a busy
    machine does not matter then, as it would for the way that was asked for and the way that was gone.
    """

    def __init__(self) -> None:
        self._since_s: float | None = None
        self.is_held = False
        """Whether the robot has been held for HELD_S of its time."""

    def update(self, time_s: float, told: Array, measured: Array) -> None:
        """Take note of a velocity [vx, vy, omega] that was told and of the one that is measured."""
        (vx, vy, omega), (is_vx, is_vy, is_omega) = told, measured
        told_mps, told_radps = (vx * vx + vy * vy) ** 0.5, abs(omega)
        drives, turns = told_mps > LEAST_MPS, told_radps > LEAST_RADPS
        held_back = drives and (is_vx * is_vx + is_vy * is_vy) ** 0.5 < LEAST_SHARE * told_mps
        kept_from_turning = turns and abs(is_omega) < LEAST_SHARE * told_radps
        held = (held_back and (kept_from_turning or not turns)) or (kept_from_turning and not drives)
        if not held:
            self._since_s = None
        elif self._since_s is None or time_s < self._since_s:
            self._since_s = time_s
        self.is_held = self._since_s is not None and time_s - self._since_s >= HELD_S
