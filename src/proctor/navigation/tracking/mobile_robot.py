"""What navigation needs of a robot, be it simulated in process or behind ROS 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from proctor.core.types import Array


class MobileRobot(Protocol):
    """A mobile base that takes velocities.

    Poses are in the world frame; velocities are in the robot's own frame, x ahead and y to the left.
    """

    target_linear_velocity: Array
    """[vx, vy, 0], what the base is to do until it is told otherwise."""
    target_angular_velocity: Array
    """[0, 0, omega]."""

    def get_world_pose(self) -> tuple[Array, Array]:
        """Return the position [x, y, z] and the quaternion [qx, qy, qz, qw].

        Raises:
            SimulationError: The pose is not known.
        """

    def get_velocity(self) -> Array:
        """Return [vx, vy, omega] as measured."""

    def get_dynamics_constraints(self) -> Mapping[str, Any]:
        """Return the limits: `v_max`, `omega_max`, `a_max`, `alpha_max`, and `drive`."""

    def is_collision_detected(self) -> bool:
        """Tell whether the robot has touched anything but the floor since the last tick."""
