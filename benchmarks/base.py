"""A mobile base without physics, for what only the controller's time is measured of."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array, Pose2
from proctor.navigation.tracking.mpc import PERIOD_S
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import STILL, Twist
from proctor.robots.spec import standard_robot

LIMITS = {"v_max": 1.0, "omega_max": 1.0, "a_max": 0.5, "alpha_max": 0.5}


class Base:
    """Moves as it is told, some time later. See `robots.robot`."""

    def __init__(self, drive: str, pose: Array, *, lag_s: float = 0.0) -> None:
        self.at, self.moves, self.time_s = pose.copy(), np.zeros(3), 0.0
        self.commanded, self.spec = STILL, standard_robot(dynamics=Dynamics(drive=drive))
        self._taken_over = 1 - math.exp(-PERIOD_S / lag_s) if lag_s else 1.0

    def pose(self) -> Pose2:
        return Pose2(*self.at.tolist())

    def velocity(self) -> Twist:
        return Twist(*self.moves.tolist())

    def in_contact(self) -> bool:
        return False

    def command(self, twist: Twist) -> None:
        self.commanded = twist

    def move(self) -> None:
        """Let one tick pass."""
        self.moves = self.moves + self._taken_over * (np.array(self.commanded) - self.moves)
        vx, vy, omega = self.moves
        yaw = self.at[2] + 0.5 * PERIOD_S * omega
        cos, sin = math.cos(yaw), math.sin(yaw)
        self.at += PERIOD_S * np.array([cos * vx - sin * vy, sin * vx + cos * vy, omega])
        self.time_s += PERIOD_S
