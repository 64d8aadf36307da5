"""The robot's base in the embedded world: takes velocities, gives odometry, feels contacts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.types import Pose2, Scan
from proctor.sim.lidar import LaserScanner
from proctor.sim.model import TIMESTEP_S
from proctor.sim.world import World

EMPTY_SCAN = Scan(np.empty(0), 0.0, 0.0, 0.0, 0.0)


class Plant(Protocol):
    """What a drive moves: a `World`, or a model of its robot."""

    @property
    def time_s(self) -> float:
        """Simulated seconds since the reset."""

    def pose(self) -> Pose2:
        """Return the robot's pose."""

    def follow(self, speeds_mps: Sequence[float], angular_radps: float, /) -> bool:
        """Advance one time step at each of these speeds along the heading; tell if anything was touched."""


class BaseDrive:
    """A robot port (see `control.robot_port`) whose clock runs as fast as the physics can be computed.

    Args:
        world: The world, whose robot is driven.
        scanner: The robot's scanner.
        scan_reach_m: How far `scan` looks ahead; less is faster.
    """

    def __init__(self, world: World, scanner: LaserScanner, *, scan_reach_m: float) -> None:
        self._world = world
        self._plant: Plant = world
        self._scanner = scanner
        self._scan_reach_m = scan_reach_m
        self._max_change_mps = world.robot.drive_force_n / world.robot.mass_kg * TIMESTEP_S
        self.reset()

    def reset(self) -> None:
        """Stand still and make the present pose the origin of the odometry. Follows `World.reset`."""
        self._origin = self._world.pose()
        self._velocity = (0.0, 0.0)
        self._speed_mps = 0.0
        self._in_contact = False

    @contextmanager
    def driving(self, plant: Plant) -> Iterator[None]:
        """Drive a model of the robot instead, which is far from everything: the scan is empty meanwhile.

        If the block raises, the drive is as it was before.
        """
        before = self._velocity, self._speed_mps, self._in_contact
        self._plant = plant
        try:
            yield
        except BaseException:
            self._velocity, self._speed_mps, self._in_contact = before
            raise
        finally:
            self._plant = self._world

    def odometry(self) -> Pose2:
        """Return the pose in the frame of the pose at reset. Wheels do not slip here, so it has no error."""
        moved = pose_into(self._origin, self._plant.pose())
        return Pose2(moved.x, moved.y, wrap_angle(moved.yaw))

    def timed_odometry(self) -> tuple[float, Pose2]:
        """Return the pose in the frame of the pose at reset, and the simulated time."""
        return self.now_s(), self.odometry()

    def scan(self) -> Scan:
        """Return what the scanner sees ahead."""
        if self._plant is not self._world:
            return EMPTY_SCAN
        return self._scanner.scan_ahead(self._scan_reach_m)

    def in_contact(self) -> bool:
        """Tell whether the robot has touched anything but the floor since the last command."""
        return self._in_contact

    def command(self, linear_mps: float, angular_radps: float) -> None:
        """Drive at this velocity until the next command."""
        self._velocity = (linear_mps, angular_radps)
        self._in_contact = False

    def now_s(self) -> float:
        """Return the simulated time."""
        return self._plant.time_s

    def wait(self, duration_s: float, alarm: Callable[[], bool] | None = None) -> None:
        """Let this much simulated time pass. There is no news in between, and so no alarm.

        Raises:
            ValueError: The duration is not a whole number of physics steps.
        """
        del alarm
        steps = round(duration_s / TIMESTEP_S)
        if steps < 1 or not math.isclose(steps * TIMESTEP_S, duration_s):
            raise ValueError(f"{duration_s} s is not a multiple of the physics step, {TIMESTEP_S} s")
        linear_mps, angular_radps = self._velocity
        speeds_mps = [linear_mps] * steps
        for index in range(steps):
            # Accelerated no harder than the drive can, else its x and y servos would bend the path.
            if self._speed_mps == linear_mps:
                break
            change_mps = linear_mps - self._speed_mps
            self._speed_mps += max(-self._max_change_mps, min(self._max_change_mps, change_mps))
            speeds_mps[index] = self._speed_mps
        self._in_contact |= self._plant.follow(speeds_mps, angular_radps)
