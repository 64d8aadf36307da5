"""A plain feedback law that follows a reference: what the controller does when its optimiser fails."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.robots.dynamics import Dynamics

POSITION_PER_S = 1.5
"""How fast an error of position is taken back; by a differential drive, only the part ahead."""
ACROSS_PER_M2 = 6.0
"""Turn towards the path, per metre driven and per metre of error."""
HEADING_PER_S = 3.0


def follow(pose: Array, velocity: Array, target: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity to have one period later.

    Args:
        pose: [x, y, yaw], the yaw within half a turn of the target's.
        velocity: [vx, vy, omega] to go on from. This and the answer are in the world frame for a holonomic
            drive, in the robot's frame for a differential one.
        target: [x, y, yaw, vx, vy, omega] of the reference now, in the world frame.
        dynamics: The limits, which the answer keeps.
        period_s: Until the velocity is to be there.
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
