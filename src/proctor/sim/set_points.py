"""Set points that move towards commands as fast as the robot's drives can follow, and no faster.

MuJoCo's servos know no speed limit: a command that jumps would fling the arm.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.robots.stretch import CONTROLS

SPEEDS = np.array([control.speed for control in CONTROLS])
ACCELERATIONS = np.array([control.acceleration for control in CONTROLS])
PLANE = slice(0, 2)


class SetPoints:
    """Where the seven controls are to be now, the base's in the world frame.

    Args:
        position: Where they start, at rest.
        nonholonomic: Whether the base moves along its heading only.
    """

    def __init__(self, position: Array, *, nonholonomic: bool) -> None:
        self.position = position.copy()
        self._velocity = np.zeros(len(CONTROLS))
        self._nonholonomic = nonholonomic

    def move(self, target: Array, dt_s: float) -> Array:
        """Move towards a target for a while and return the new positions."""
        error = target - self.position
        if self._nonholonomic:
            heading = np.array([math.cos(self.position[2]), math.sin(self.position[2])])
            error[PLANE] = (error[PLANE] @ heading) * heading
            self._velocity[PLANE] = (self._velocity[PLANE] @ heading) * heading
        distance = np.abs(error)
        direction = np.sign(error)
        # The base's speed is one number, whatever the direction.
        distance[PLANE] = planar = math.hypot(error[0], error[1])
        if planar > 0:
            direction[PLANE] = error[PLANE] / planar
        # Fast enough to stop in time, in steps of dt, and never beyond the target.
        gain = ACCELERATIONS * dt_s
        stopping = gain * (np.sqrt(0.25 + 2 * distance / (gain * dt_s)) - 0.5)
        wanted = direction * np.minimum(np.minimum(stopping, SPEEDS), distance / dt_s)
        change = wanted - self._velocity
        limit = gain.copy()
        planar_change = math.hypot(change[0], change[1])
        if planar_change > 0:
            limit[PLANE] *= np.abs(change[PLANE]) / planar_change
        self._velocity += np.clip(change, -limit, limit)
        self.position = self.position + self._velocity * dt_s
        return self.position
