"""A mobile base without physics, for what only the controller's time is measured of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from proctor.core.types import Array
from proctor.navigation.tracking.mpc import PERIOD_S

LIMITS = {"v_max": 1.0, "omega_max": 1.0, "a_max": 0.5, "alpha_max": 0.5}


class Base:
    """Moves as it is told, some time later. See `navigation.mobile_robot`."""

    def __init__(self, drive: str, pose: Array, *, lag_s: float = 0.0) -> None:
        self.pose, self.velocity, self.time_s = pose.copy(), np.zeros(3), 0.0
        self.target_linear_velocity, self.target_angular_velocity = np.zeros(3), np.zeros(3)
        self._limits = {**LIMITS, "drive": drive}
        self._taken_over = 1 - math.exp(-PERIOD_S / lag_s) if lag_s else 1.0

    def get_world_pose(self) -> tuple[Array, Array]:
        x, y, yaw = self.pose
        return np.array([x, y, 0.0]), np.array([0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)])

    def get_velocity(self) -> Array:
        return self.velocity

    def get_dynamics_constraints(self) -> Mapping[str, Any]:
        return self._limits

    def is_collision_detected(self) -> bool:
        return False

    def move(self) -> None:
        """Let one tick pass."""
        told = np.array([*self.target_linear_velocity[:2], self.target_angular_velocity[2]])
        self.velocity = self.velocity + self._taken_over * (told - self.velocity)
        vx, vy, omega = self.velocity
        yaw = self.pose[2] + 0.5 * PERIOD_S * omega
        cos, sin = math.cos(yaw), math.sin(yaw)
        self.pose += PERIOD_S * np.array([cos * vx - sin * vy, sin * vx + cos * vy, omega])
        self.time_s += PERIOD_S
