"""Notices a robot that does not move though it is commanded to: something its scanner cannot see holds it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from proctor.core.types import Array

HELD_S = 0.5
LEAST_SHARE = 0.1  # a robot that does less than this share of what it is told is held
LEAST_MPS, LEAST_RADPS = 0.015, 0.025  # slower commands say nothing: wheels stick


class Held:
    """Compares the commanded velocity with the one that the odometry shows, message by message.

    A single message that shows motion is enough to begin anew, so it does not matter how late commands
    and odometry are on a busy machine. HELD_S must pass in the robot's time and in real time: commands
    take real time to get through, however fast a simulation runs meanwhile.
    """

    def __init__(self, real_s: Callable[[], float] = time.monotonic) -> None:
        self._real_s = real_s
        self._since_s: float | None = None
        self._since_real_s = 0.0
        self.is_held = False  # whether the robot has been held for HELD_S

    def update(self, time_s: float, told: Array, moves_mps: float, turns_radps: float) -> None:
        """Take note of the velocity [vx, vy, omega] that was told, and of how fast the robot is."""
        vx, vy, omega = told.tolist()
        told_mps, told_radps = math.hypot(vx, vy), abs(omega)
        is_to_drive, is_to_turn = told_mps > LEAST_MPS, told_radps > LEAST_RADPS
        drives, turns = moves_mps >= LEAST_SHARE * told_mps, turns_radps >= LEAST_SHARE * told_radps
        held = (is_to_drive or is_to_turn) and not (is_to_drive and drives) and not (is_to_turn and turns)
        if not held:
            self._since_s, self.is_held = None, False
        elif self._since_s is None or time_s < self._since_s:
            self._since_s, self._since_real_s, self.is_held = time_s, self._real_s(), False
        else:
            passed_s = min(time_s - self._since_s, self._real_s() - self._since_real_s)
            self.is_held = passed_s >= HELD_S
