"""The controller that keeps a robot on its trajectory: model predictive, one solve each tick."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from proctor.core.errors import SimulationError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Array
from proctor.navigation.clearance import ClearanceField
from proctor.navigation.mobile_robot import MobileRobot
from proctor.navigation.tracking_law import follow
from proctor.navigation.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics

STAGE_S = 0.05
PERIOD_S = 1 / 60
Command = tuple[float, float, float]


class ControlReport(NamedTuple):
    """What the controller did in its latest tick, for monitoring."""

    time_s: float
    command: Command
    """[vx, vy, omega] in the robot's frame."""
    target: Array
    """[x, y, yaw] of the reference."""
    position_error_m: float
    heading_error_rad: float
    cross_track_error_m: float
    """Left of the reference's heading is positive."""
    fallback: bool
    """The optimiser failed, and the plain feedback law made the command."""
    solve_time_s: float


class MpcController:
    """Tracks a reference trajectory and sets the robot's target velocity.

    Args:
        robot: What is driven.
        now_s: The clock, of the simulation if there is one.
        field: Gives the newest clearance field, or None for no regard to obstacles.
        radius_m: The robot's.
        horizon_s: How far it looks ahead, in stages of 0.05 s.
        period_s: Between two ticks; a command is the velocity to have at the next one.
        on_command: Is told each tick's report.
    """

    def __init__(
        self,
        robot: MobileRobot,
        *,
        now_s: Callable[[], float],
        field: Callable[[], ClearanceField | None] = lambda: None,
        radius_m: float = 0.17,
        horizon_s: float = 1.5,
        period_s: float = PERIOD_S,
        on_command: Callable[[ControlReport], None] | None = None,
    ) -> None:
        self._robot, self._now_s, self._field, self._radius_m = robot, now_s, field, radius_m
        self._period_s, self._on_command = period_s, on_command
        self.mpc_horizon = horizon_s
        self._reference: Trajectory | None = None
        self._start_s = 0.0
        self.last: ControlReport | None = None

    def set_reference_trajectory(
        self, trajectory: Trajectory | Iterable[Any], start_time_s: float | None = None
    ) -> None:
        """Follow a trajectory from now on, or as if it had begun at a time of the clock."""
        self._reference = Trajectory.of(trajectory)
        self._start_s = self._now_s() if start_time_s is None else start_time_s

    def clear_reference_trajectory(self) -> None:
        """Forget the reference; the robot keeps the velocity it was told last."""
        self._reference = None

    def has_reference_trajectory(self) -> bool:
        """Tell whether there is one."""
        return self._reference is not None

    def get_trajectory_segment(self, t: float, horizon: float | None = None) -> Trajectory:
        """Return the reference from a time of the clock on, its own times from 0."""
        if self._reference is None:
            raise SimulationError("there is no reference trajectory")
        stages = max(1, round((self.mpc_horizon if horizon is None else horizon) / STAGE_S))
        times_s = np.arange(stages + 1) * STAGE_S
        rows = self._reference.sampled(t - self._start_s + times_s)
        return Trajectory(times_s, rows[:, :3], rows[:, 3:])

    def solve(
        self,
        current_state: tuple[Any, ArrayLike],
        reference: Trajectory | Iterable[Any],
        constraints: Dynamics | Mapping[str, Any],
    ) -> Command:
        """Return the velocity (vx, vy, omega) in the robot's frame to have at the next tick."""
        pose, velocity = current_state
        row = Trajectory.of(reference).sampled(np.zeros(1))[0]
        here = np.asarray(pose, dtype=float)
        here[2] = row[2] + wrap_angle(here[2] - row[2])
        vx, vy, omega = follow(here, np.asarray(velocity), row, Dynamics.of(constraints), self._period_s)
        return float(vx), float(vy), float(omega)

    def control_loop(self) -> None:
        """Make one command, unless there is no reference."""
        if self._reference is None:
            return
        began = time.perf_counter()
        now_s = self._now_s()
        position, quaternion = self._robot.get_world_pose()
        x, y, z, w = quaternion
        yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        pose = np.array([position[0], position[1], yaw])
        if not np.isfinite(pose).all():
            self.stop()
            raise SimulationError(f"the robot's pose is {pose.tolist()}: not finite")
        segment = self.get_trajectory_segment(now_s)
        velocity = np.array([*self._robot.target_linear_velocity[:2], self._robot.target_angular_velocity[2]])
        command = self.solve((pose, velocity), segment, self._robot.get_dynamics_constraints())
        self._robot.target_linear_velocity = np.array([command[0], command[1], 0.0])
        self._robot.target_angular_velocity = np.array([0.0, 0.0, command[2]])
        target = segment.poses[0]
        off = pose[:2] - target[:2]
        across = float(-math.sin(target[2]) * off[0] + math.cos(target[2]) * off[1])
        self.last = ControlReport(
            now_s, command, target, math.hypot(*off), wrap_angle(yaw - target[2]), across,
            True, time.perf_counter() - began,
        )  # fmt: skip
        if self._on_command is not None:
            self._on_command(self.last)

    def clock_callback(self, time_s: float) -> None:
        """Do one tick of control; to be called at every tick of the clock."""
        self.control_loop()

    def stop(self) -> None:
        """Stand still, and forget the reference."""
        self.clear_reference_trajectory()
        self._robot.target_linear_velocity = np.zeros(3)
        self._robot.target_angular_velocity = np.zeros(3)
