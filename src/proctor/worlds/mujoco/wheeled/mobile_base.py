"""The robot of a world as navigation drives it: velocities in, poses and contacts out, at 60 Hz."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from proctor.core.types import Array, Pose2
from proctor.robots.dynamics import Dynamics
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody
from proctor.worlds.mujoco.wheeled.world import World

TICK_S = 1 / 60
STEPS_PER_TICK = 2
TIMESTEP_S = TICK_S / STEPS_PER_TICK
"""A world that is driven like this has this time step."""


class MobileBase:
    """The base of a world's robot (see `navigation.mobile_robot`), differential or holonomic.

    The world's time step is TIMESTEP_S. `dynamics` are the limits that the base reports; its motors are
    stronger.
    """

    def __init__(self, world: World, dynamics: Dynamics | None = None, body: RobotBody | None = None) -> None:
        self._world, self._body = world, body or world.body
        self.dynamics = dynamics or Dynamics()
        self._max_change_mps = world.robot.drive_force_n / world.robot.mass_kg * TIMESTEP_S
        self.target_linear_velocity = np.zeros(3)
        self.target_angular_velocity = np.zeros(3)
        self._velocity_mps = np.zeros(2)
        self._touched: str | None = None

    def get_world_pose(self) -> tuple[Array, Array]:
        """Return the position [x, y, z] and the quaternion [qx, qy, qz, qw]."""
        pose = self._body.pose()
        half = pose.yaw / 2
        position = np.array([pose.x, pose.y, self._world.floor_z])
        return position, np.array([0.0, 0.0, math.sin(half), math.cos(half)])

    def pose(self) -> Pose2:
        """Return the pose on the floor."""
        return self._body.pose()

    def get_velocity(self) -> Array:
        """Return [vx, vy, omega] in the robot's frame."""
        vx, vy, omega = self._body.velocity_world
        cos, sin = math.cos(self._body.yaw), math.sin(self._body.yaw)
        return np.array([cos * vx + sin * vy, cos * vy - sin * vx, omega])

    def get_dynamics_constraints(self) -> dict[str, Any]:
        """Return the limits by name."""
        return msgspec.structs.asdict(self.dynamics)

    def is_collision_detected(self) -> bool:
        """Tell whether the robot has touched anything but the floor in the last tick."""
        return self._touched is not None

    @property
    def touched(self) -> str | None:
        """What the robot has touched in the last tick."""
        return self._touched

    def advance(self) -> None:
        """Let one tick pass with the base at its target velocities."""
        advance_together(self._world, [self])

    def rest(self) -> None:
        """Stand still at once and ask for nothing: the robot was put elsewhere."""
        self.target_linear_velocity[:], self.target_angular_velocity[:] = 0.0, 0.0
        self._velocity_mps[:] = 0.0
        self._touched = None

    def steer(self) -> None:
        """Set the servos for the next step of the physics."""
        ahead_mps, left_mps = self.target_linear_velocity[:2]
        if self.dynamics.drive == "differential":
            left_mps = 0.0
        # Accelerated no harder than the drive can, else its x and y servos would bend the path.
        change_mps = np.array([ahead_mps, left_mps]) - self._velocity_mps
        size_mps = float(np.hypot(*change_mps))
        if size_mps > self._max_change_mps:
            change_mps *= self._max_change_mps / size_mps
        self._velocity_mps += change_mps
        cos, sin = math.cos(self._body.yaw), math.sin(self._body.yaw)
        vx, vy = self._velocity_mps
        self._body.drive((cos * vx - sin * vy, sin * vx + cos * vy, float(self.target_angular_velocity[2])))

    def feel(self, *, anew: bool) -> None:
        """Notice what is touched after a step, on top of what was touched before unless `anew`."""
        self._touched = (None if anew else self._touched) or self._body.touched()


def advance_together(world: World, bases: Sequence[MobileBase]) -> None:
    """Let one tick pass with all bases of a world at their target velocities."""
    for step in range(STEPS_PER_TICK):
        for base in bases:
            base.steer()
        world.advance()
        for base in bases:
            base.feel(anew=step == 0)
