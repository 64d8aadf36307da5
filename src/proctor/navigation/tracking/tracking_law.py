"""The feedback law for when the optimiser fails, and the rule for when to stop correcting at the end."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.robots.dynamics import Dynamics

POSITION_PER_S = 1.5  # how fast an error is corrected; by a differential drive, only ahead
ACROSS_PER_M2 = 6.0  # turn towards the path, per metre driven and per metre of error
HEADING_PER_S = 3.0
MEAN_S = 0.3  # errors are averaged over this time: noise must not keep a robot awake
REST_M, WAKE_M = 0.004, 0.008
REST_RAD, WAKE_RAD = math.radians(0.2), math.radians(0.4)
SLOW_MPS, SLOW_RADPS = 0.03, 0.05


def follow(pose: Array, velocity: Array, target: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity to have one period later, within the limits.

    The yaw of `pose` [x, y, yaw] is within half a turn of the target's. `target` [x, y, yaw, vx, vy,
    omega] is in the world frame; `velocity` and the answer are in the world frame for a holonomic drive,
    in the robot's frame for a differential one.
    """
    off, heading = target[:2] - pose[:2], target[2] - pose[2]
    wanted = np.array([0.0, 0.0, target[5] + HEADING_PER_S * heading])
    if dynamics.drive == "holonomic":
        wanted[:2] = target[3:5] + POSITION_PER_S * off
    else:
        cos, sin = math.cos(pose[2]), math.sin(pose[2])
        ahead, left = cos * off[0] + sin * off[1], cos * off[1] - sin * off[0]
        speed = target[3] * math.cos(target[2]) + target[4] * math.sin(target[2])
        wanted[0] = speed * math.cos(heading) + POSITION_PER_S * ahead
        wanted[2] += ACROSS_PER_M2 * speed * left
    return within_limits(wanted, velocity, dynamics, period_s)


def within_limits(wanted: Array, velocity: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity nearest to the wanted one that the limits allow one period later."""
    speed = math.hypot(wanted[0], wanted[1])
    slower = min(1.0, dynamics.v_max / max(speed, 1e-9))
    omega = min(max(wanted[2], -dynamics.omega_max), dynamics.omega_max)
    step = np.array([wanted[0] * slower, wanted[1] * slower, omega]) - velocity
    step[:2] *= min(1.0, dynamics.a_max * period_s / max(math.hypot(step[0], step[1]), 1e-9))
    turn = dynamics.alpha_max * period_s
    step[2] = min(max(step[2], -turn), turn)
    return np.asarray(velocity + step)


class Settling:
    """Decides between correcting the pose and resting, with a gap between the two."""

    def __init__(self) -> None:
        self._mean: Array | None = None
        self.rests = False

    def forget(self) -> None:
        """The robot has somewhere to go again."""
        self._mean, self.rests = None, False

    def update(self, error: Array, velocity: Array, passed_s: float) -> None:
        """Take the error [x, y, yaw] that the drive can correct, and the velocity to have now."""
        if self._mean is None:
            self._mean = np.array(error)
        self._mean += min(passed_s / MEAN_S, 1.0) * (error - self._mean)
        off_m, off_rad = math.hypot(self._mean[0], self._mean[1]), abs(self._mean[2])
        if self.rests:
            self.rests = off_m < WAKE_M and off_rad < WAKE_RAD
        elif off_m < REST_M and off_rad < REST_RAD:
            self.rests = math.hypot(velocity[0], velocity[1]) < SLOW_MPS and abs(velocity[2]) < SLOW_RADPS
