"""A plain feedback law that follows a reference: what the controller does when its optimiser fails."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.robots.dynamics import Dynamics

ALONG_PER_S = 1.5
"""How fast an error ahead, or of a holonomic base any error of position, is taken back."""
ACROSS_PER_M2 = 6.0
"""Turn towards the path, per metre driven and per metre of error."""
HEADING_PER_S = 3.0


def follow(pose: Array, velocity: Array, target: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity [vx, vy, omega] in the robot's frame to have one period later.

    Args:
        pose: [x, y, yaw], the yaw within half a turn of the target's.
        velocity: [vx, vy, omega] in the robot's frame, to go on from.
        target: [x, y, yaw, vx, vy, omega] of the reference now, in the world frame.
        dynamics: The limits, which the answer keeps.
        period_s: Until the velocity is to be there.
    """
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    to_robot = np.array([[cos, sin], [-sin, cos]])
    ahead, left = to_robot @ (target[:2] - pose[:2])
    heading = target[2] - pose[2]
    wanted = np.empty(3)
    if dynamics.drive == "holonomic":
        wanted[:2] = to_robot @ target[3:5] + ALONG_PER_S * np.array([ahead, left])
        wanted[2] = target[5] + HEADING_PER_S * heading
    else:
        speed = float(target[3] * math.cos(target[2]) + target[4] * math.sin(target[2]))
        wanted[0] = speed * math.cos(heading) + ALONG_PER_S * ahead
        wanted[1] = 0.0
        wanted[2] = target[5] + ACROSS_PER_M2 * speed * left + HEADING_PER_S * heading
    return within_limits(wanted, velocity, dynamics, period_s)


def within_limits(wanted: Array, velocity: Array, dynamics: Dynamics, period_s: float) -> Array:
    """Return the velocity nearest to the wanted one that the limits allow one period later."""
    wanted, step = wanted.copy(), np.zeros(3)
    wanted[:2] *= min(1.0, dynamics.v_max / max(math.hypot(*wanted[:2]), 1e-9))
    wanted[2] = min(max(wanted[2], -dynamics.omega_max), dynamics.omega_max)
    step[:2] = wanted[:2] - velocity[:2]
    step[:2] *= min(1.0, dynamics.a_max * period_s / max(math.hypot(*step[:2]), 1e-9))
    turn = dynamics.alpha_max * period_s
    step[2] = min(max(wanted[2] - velocity[2], -turn), turn)
    return velocity + step
