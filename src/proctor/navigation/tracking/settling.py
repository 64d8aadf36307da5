"""When a robot at the end of its trajectory is to stop correcting itself."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array

MEAN_S = 0.3
"""Errors are averaged over about this time: noise of the measured pose must not keep a robot awake."""
REST_M, WAKE_M = 0.004, 0.008
REST_RAD, WAKE_RAD = math.radians(0.2), math.radians(0.4)
SLOW_MPS, SLOW_RADPS = 0.03, 0.05


class Settling:
    """Decides between correcting the pose and resting, with a gap between the two."""

    def __init__(self) -> None:
        self._mean: Array | None = None
        self.rests = False

    def forget(self) -> None:
        """The robot has somewhere to go again."""
        self._mean, self.rests = None, False

    def update(self, error: Array, velocity: Array, passed_s: float) -> None:
        """Take one measurement.

        Args:
            error: [x, y, yaw], of x and y only what the drive can correct.
            velocity: [vx, vy, omega] that the robot is to have now.
            passed_s: Since the last measurement.
        """
        if self._mean is None:
            self._mean = np.array(error)
        self._mean += min(passed_s / MEAN_S, 1.0) * (error - self._mean)
        off_m, off_rad = math.hypot(self._mean[0], self._mean[1]), abs(self._mean[2])
        if self.rests:
            self.rests = off_m < WAKE_M and off_rad < WAKE_RAD
        elif off_m < REST_M and off_rad < REST_RAD:
            self.rests = math.hypot(velocity[0], velocity[1]) < SLOW_MPS and abs(velocity[2]) < SLOW_RADPS
