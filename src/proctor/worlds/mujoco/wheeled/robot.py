"""A robot of a MuJoCo world, moved by physics, or by a model of its base with equal bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import mujoco
import numpy as np

from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.types import SECTOR_RAD, Array, Pose2, Scan
from proctor.robots.robot import NO_SCAN, STILL, Twist
from proctor.robots.spec import RobotSpec
from proctor.worlds.mujoco.contacts import Group
from proctor.worlds.mujoco.wheeled.free_base import FreeBase
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody
from proctor.worlds.mujoco.wheeled.world import World

TICK_S = 1 / 60
STEPS_PER_TICK = 2
TICK_STEP_S = TICK_S / STEPS_PER_TICK
"""The time step of a world whose robots are driven at 60 Hz."""


class LaserScanner:
    """The scanner of a robot (by default the world's first): at its centre, blind to the robot itself."""

    def __init__(self, world: World, body: RobotBody | None = None) -> None:
        self._world, self._body = world, body or world.body
        self._spec = world.robot.lidar
        angles: Array = self._spec.angle_min + self._spec.angle_increment * np.arange(float(self._spec.beams))
        ahead = np.flatnonzero(np.abs(angles) <= SECTOR_RAD + 1e-9)
        self._all, self._ahead = angles, angles[ahead]
        self._groups = np.zeros(6, np.uint8)
        self._groups[[Group.SCANNED, Group.DRAWN_AND_SCANNED]] = 1

    def scan(self) -> Scan:
        """Return a full turn."""
        return self._cast(self._all, self._spec.range_max_m)

    def scan_ahead(self, reach_m: float) -> Scan:
        """Return the beams within 30° of straight ahead, blind beyond `reach_m` and so cheap."""
        return self._cast(self._ahead, reach_m)

    def _cast(self, angles: Array, reach_m: float) -> Scan:
        world, count = self._world, len(angles)
        pose = self._body.pose()
        directions = np.zeros((count, 3))
        np.cos(angles + pose.yaw, out=directions[:, 0])
        np.sin(angles + pose.yaw, out=directions[:, 1])
        origin = np.array([pose.x, pose.y, world.floor_z + self._spec.height_m])
        geoms, ranges = np.empty(count, np.int32), np.empty(count)
        mujoco.mj_multiRay(
            world.model,
            world.data,
            origin,
            directions.ravel(),
            self._groups,
            True,  # noqa: FBT003  (MuJoCo's functions take no keywords here: include static geoms)
            self._body.body_id,
            geoms,
            ranges,
            None,
            count,
            reach_m,
        )
        ranges[(ranges < 0) | (ranges > reach_m)] = np.inf
        return Scan(
            ranges,
            float(angles[0]),
            self._spec.angle_increment,
            self._spec.range_min_m,
            self._spec.range_max_m,
        )


class MujocoRobot:
    """A `Robot` whose clock runs as fast as the physics can be computed. By default the world's first.

    A `scan_reach_m` limits `scan` to a sector ahead and to that range, which is faster. The odometry begins
    where the robot stood when this was made, or at the last `reset`.
    """

    def __init__(
        self, world: World, body: RobotBody | None = None, *, scan_reach_m: float | None = None
    ) -> None:
        self._world, self._body = world, body or world.body
        self._model: FreeBase | None = None
        self.scanner = LaserScanner(world, self._body)
        self._scan_reach_m = scan_reach_m
        self._step_s = float(world.model.opt.timestep)
        self._is_holonomic = self.spec.dynamics.drive == "holonomic"
        self._max_change_mps = self.spec.drive_force_n / self.spec.mass_kg * self._step_s
        self.reset()

    @property
    def spec(self) -> RobotSpec:
        """Size, limits and sensors. Its motors are stronger than the limits."""
        return self._world.robot

    def reset(self) -> None:
        """Stand still: the robot was put where it is, and its odometry begins here."""
        self._origin = self._body.pose()
        self.rest()

    def rest(self) -> None:
        """Stand still at once and ask for nothing: the robot was put elsewhere."""
        self.commanded = STILL
        self._vx = self._vy = 0.0
        self._touched: str | None = None

    @contextmanager
    def driving(self, model: FreeBase) -> Iterator[None]:
        """Drive a model of the robot instead, which is far from everything: the scan is empty meanwhile.

        If the block raises, the robot is as it was before.
        """
        before = self.commanded, self._vx, self._vy, self._touched
        self._model = model
        try:
            yield
        except BaseException:
            self.commanded, self._vx, self._vy, self._touched = before
            raise
        finally:
            self._model = None

    def pose(self) -> Pose2:
        """Return the true pose in the world."""
        return self._body.pose() if self._model is None else self._model.pose()

    def odometry(self) -> tuple[float, Pose2]:
        """Return the simulated time and the pose from the origin. Wheels do not slip: it has no error."""
        moved = pose_into(self._origin, self.pose())
        return self.now_s(), Pose2(moved.x, moved.y, wrap_angle(moved.yaw))

    def velocity(self) -> Twist:
        """Return the true velocity."""
        vx, vy, omega = self._body.velocity_world.tolist()
        cos, sin = math.cos(self._body.yaw), math.sin(self._body.yaw)
        return Twist(cos * vx + sin * vy, cos * vy - sin * vx, omega)

    def scan(self) -> Scan:
        """Return what the scanner sees."""
        if self._model is not None:
            return NO_SCAN
        reach_m = self._scan_reach_m
        return self.scanner.scan() if reach_m is None else self.scanner.scan_ahead(reach_m)

    def in_contact(self) -> bool:
        """Tell whether the robot has touched anything but the floor since the last command."""
        return self._touched is not None

    @property
    def touched(self) -> str | None:
        """What the robot has touched since the last command."""
        return self._touched

    def command(self, twist: Twist) -> None:
        """Drive at this velocity until the next command; a differential drive leaves `vy` out."""
        self.commanded = twist
        self._touched = None

    def now_s(self) -> float:
        """Return the simulated time."""
        return self._world.time_s if self._model is None else self._model.time_s

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Let simulated time pass: whole steps of the physics. There is no news, so `until` is not asked."""
        del until
        steps = round(duration_s / self._step_s)
        if steps < 1 or not math.isclose(steps * self._step_s, duration_s):
            raise ValueError(f"{duration_s} s is not a multiple of the physics step, {self._step_s} s")
        if self._model is None:
            advance_together(self._world, [self], steps)
            return
        speeds_mps: list[float] = []
        while len(speeds_mps) < steps and self._vx != self.commanded.vx:
            self._accelerate()
            speeds_mps.append(self._vx)
        speeds_mps += [self._vx] * (steps - len(speeds_mps))
        self._model.follow(speeds_mps, self.commanded.omega)

    def steer(self) -> None:
        """Set the servos for the next step of the physics."""
        self._accelerate()
        cos, sin = math.cos(self._body.yaw), math.sin(self._body.yaw)
        vx, vy = self._vx, self._vy
        self._body.drive((cos * vx - sin * vy, sin * vx + cos * vy, self.commanded.omega))

    def feel(self) -> None:
        """Notice what is touched after a step of the physics: a touch may be short."""
        self._touched = self._touched or self._body.touched()

    def _accelerate(self) -> None:
        """Come nearer to the commanded velocity, no harder than the drive can.

        Else its x and y servos would bend the path.
        """
        most_mps = self._max_change_mps
        ahead_mps = self.commanded.vx - self._vx
        left_mps = self.commanded.vy - self._vy if self._is_holonomic else 0.0
        if left_mps:
            size_mps = math.hypot(ahead_mps, left_mps)
            share = min(1.0, most_mps / size_mps)
            self._vx += share * ahead_mps
            self._vy += share * left_mps
        elif ahead_mps:
            self._vx += max(-most_mps, min(most_mps, ahead_mps))


def advance_together(world: World, robots: Sequence[MujocoRobot], steps: int = STEPS_PER_TICK) -> None:
    """Let steps of the physics pass with all robots of a world at their commanded velocities."""
    for _ in range(steps):
        for robot in robots:
            robot.steer()
        world.advance()
        for robot in robots:
            robot.feel()
