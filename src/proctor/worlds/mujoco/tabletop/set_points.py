"""Set points that move towards commands as fast as the robot's drives can follow, and no faster.

MuJoCo's servos know no speed limit: a command that jumps would fling the arm.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.robots.stretch import CONTROLS

SPEEDS = tuple(control.speed for control in CONTROLS)
ACCELERATIONS = tuple(control.acceleration for control in CONTROLS)


class SetPoints:
    """The present targets of the seven controls, the base's in the world frame.

    They start at rest. A nonholonomic base moves along its heading only.
    """

    def __init__(self, position: Array, *, nonholonomic: bool) -> None:
        # Plain numbers: for seven of them numpy takes four times as long, and this runs at 100 Hz.
        self._position: list[float] = position.tolist()
        self._velocity = [0.0] * len(CONTROLS)
        self._nonholonomic = nonholonomic

    @property
    def position(self) -> Array:
        """Where they are."""
        return np.array(self._position)

    def stopping_point(self) -> Array:
        """Return where they come to rest if their drives brake as hard as they can."""
        braking_s = [abs(speed) / limit for speed, limit in zip(self._velocity, ACCELERATIONS, strict=True)]
        braking_s[:2] = [math.hypot(*self._velocity[:2]) / ACCELERATIONS[0]] * 2
        return self.position + np.array(self._velocity) * braking_s / 2

    def move(self, target: Array, dt_s: float) -> Array:
        """Move towards a target for a while and return the new positions."""
        position, velocity, goal = self._position, self._velocity, target.tolist()
        self._drive(goal, dt_s)
        for index in range(2, len(CONTROLS)):
            error = goal[index] - position[index]
            if error == 0.0 and velocity[index] == 0.0:
                continue
            wanted = math.copysign(_speed(index, abs(error), dt_s), error)
            most = ACCELERATIONS[index] * dt_s
            velocity[index] += min(max(wanted - velocity[index], -most), most)
            position[index] += velocity[index] * dt_s
        return np.array(position)

    def _drive(self, goal: list[float], dt_s: float) -> None:
        """Move the base over the floor. Its speed is one number, whatever the direction."""
        position, velocity = self._position, self._velocity
        ahead_x, ahead_y = goal[0] - position[0], goal[1] - position[1]
        if self._nonholonomic:
            cos, sin = math.cos(position[2]), math.sin(position[2])
            along, rolling = ahead_x * cos + ahead_y * sin, velocity[0] * cos + velocity[1] * sin
            ahead_x, ahead_y = along * cos, along * sin
            velocity[0], velocity[1] = rolling * cos, rolling * sin
        distance = math.hypot(ahead_x, ahead_y)
        share = _speed(0, distance, dt_s) / distance if distance > 0 else 0.0
        change_x, change_y = share * ahead_x - velocity[0], share * ahead_y - velocity[1]
        change, most = math.hypot(change_x, change_y), ACCELERATIONS[0] * dt_s
        eased = min(1.0, most / change) if change > 0 else 0.0
        velocity[0] += eased * change_x
        velocity[1] += eased * change_y
        position[0] += velocity[0] * dt_s
        position[1] += velocity[1] * dt_s


def _speed(index: int, distance: float, dt_s: float) -> float:
    """Return how fast to go: so that it can stop in time, in steps of dt, and never beyond the target."""
    gain = ACCELERATIONS[index] * dt_s
    stopping = gain * (math.sqrt(0.25 + 2 * distance / (gain * dt_s)) - 0.5)
    return min(stopping, SPEEDS[index], distance / dt_s)
