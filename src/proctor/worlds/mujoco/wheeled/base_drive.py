"""The robot's base in the embedded world: by physics, or by arithmetic with equal bits where nothing is near.

Far from everything, physics only moves the base as its servos say. Conservative advancement decides that: a
disc with a gap of d to its nearest obstacle can go d anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import copysign, cos, hypot, nan, sin
from typing import Protocol

import mujoco
import numpy as np

from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.types import STEP_M, Pose2, Scan
from proctor.worlds.mujoco.wheeled.lidar import LaserScanner
from proctor.worlds.mujoco.wheeled.model import TIMESTEP_S
from proctor.worlds.mujoco.wheeled.world import World

EMPTY_SCAN = Scan(np.empty(0), 0.0, 0.0, 0.0, 0.0)
LOOK_AHEAD_M = STEP_M + 0.01
"""Gaps are measured up to this beyond the one that is kept: in open space, once in a move of the exam."""


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
    """A robot port (see `control.action_executor`) whose clock runs as fast as the physics can be computed.

    A shorter `scan_reach_m`, how far `scan` looks ahead, is faster.
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
        """Let simulated time pass: a whole number of physics steps. There is no news and so no alarm."""
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


def can_be_free(world: World) -> bool:
    """Tell whether the robot is all that moves in a world, and its scanner sees only what it can touch."""
    robot, model = world.robot, world.model
    scans_at_its_height = robot.ground_clearance_m <= robot.lidar.height_m <= robot.height_m
    # The lidar sees the meshes of a house, but the robot touches boxes around them.
    return model.nv == 3 and model.nmocap == 0 and world.house is None and scans_at_its_height


class NotFreeError(Exception):
    """Something is so near that only physics can tell what happens."""


class FreeBase:
    """The base of a world's robot where it touches nothing: its servos, integrated as MuJoCo does it.

    `try_start` takes over the world's state, `finish` changes it.
    """

    def __init__(self, world: World) -> None:
        self._world, self._spare = world, mujoco.MjData(world.model)
        model = world.model
        self._step_s = float(model.opt.timestep)
        body = world.body.body_id
        self._mass_kg, self._inertia_kgm2 = float(model.body_mass[body]), float(model.body_inertia[body, 2])
        self._gains: list[float] = model.actuator_gainprm[:, 0].tolist()
        self._max_forces: list[float] = model.actuator_forcerange[:, 1].tolist()

    def try_start(self, kept_gap_m: float) -> bool:
        """Take over the world's state if the robot is at rest and the gap around it is larger than this.

        From now on, `follow` refuses to come nearer to anything.
        """
        data = self._world.data
        self._velocity: list[float] = data.qvel.tolist()
        # On a robot that turns while it rolls on, forces act that cancel out but for rounding: left out here.
        if max(map(abs, self._velocity)) > 1e-9:
            return False
        self._x, self._y, self._yaw = data.qpos.tolist()
        self._command: Sequence[float] = data.ctrl.tolist()
        self._kept_gap_m = kept_gap_m
        self._room_m = self._measure_room_m(self._x, self._y)
        self.time_s = float(data.time)
        return self._room_m > 0

    def follow(self, speeds_mps: Sequence[float], angular_radps: float) -> bool:
        """Advance one time step at each of these speeds along the heading; NotFreeError if not free."""
        # What MuJoCo computes, and in its order, so that rounding errors are the same. That is why the moment
        # of inertia depends on the heading.
        step_s, time_s, room_m = self._step_s, self.time_s, self._room_m
        x, y, yaw, (vx, vy, omega), per_mass = self._x, self._y, self._yaw, self._velocity, 1 / self._mass_kg
        (gain_x, gain_y, gain_yaw), (max_x, max_y, max_yaw) = self._gains, self._max_forces
        last_yaw = nan
        for speed_mps in speeds_mps:
            if yaw != last_yaw:  # on a straight line it stays the same
                cos_yaw, sin_yaw, last_yaw = cos(yaw), sin(yaw), yaw
                half_cos, half_sin = cos(yaw * 0.5), sin(yaw * 0.5)
                upright = half_cos * half_cos + half_sin * half_sin  # not with **, which rounds otherwise
                per_inertia = 1 / (upright * (upright * self._inertia_kgm2))
            target_x, target_y = speed_mps * cos_yaw, speed_mps * sin_yaw
            fx = gain_x * target_x - gain_x * vx
            fy = gain_y * target_y - gain_y * vy
            torque = gain_yaw * angular_radps - gain_yaw * omega
            vx += step_s * ((fx if -max_x <= fx <= max_x else copysign(max_x, fx)) * per_mass)
            vy += step_s * ((fy if -max_y <= fy <= max_y else copysign(max_y, fy)) * per_mass)
            torque = torque if -max_yaw <= torque <= max_yaw else copysign(max_yaw, torque)
            omega += step_s * (torque * per_inertia)
            x += step_s * vx
            y += step_s * vy
            yaw += step_s * omega
            time_s += step_s
            room_m -= step_s * hypot(vx, vy)
            if room_m <= 0:
                room_m = self._measure_room_m(x, y)
                if room_m <= 0:
                    raise NotFreeError
        self._x, self._y, self._yaw, self.time_s, self._room_m = x, y, yaw, time_s, room_m
        self._velocity, self._command = [vx, vy, omega], (target_x, target_y, angular_radps)
        return False

    def finish(self) -> None:
        """Move the robot of the world to where it has come here."""
        self._world.set_state((self._x, self._y, self._yaw), self._velocity, self._command, self.time_s)

    def pose(self) -> Pose2:
        """Return the robot's pose."""
        return Pose2(self._x, self._y, wrap_angle(self._yaw))

    def measure_gap_m(self, x: float, y: float, *, reach_m: float) -> float:
        """Return the gap, at most `reach_m`, between the robot at this place in the world and all objects."""
        model, body, spare = self._world.model, self._world.body, self._spare
        spare.qpos[:2] = x, y
        margins = ((model.geom_margin, body.geom_id), (model.body_margin, body.body_id))
        try:
            for margin, index in margins:  # contacts are reported from this distance on
                margin[index] = reach_m
            mujoco.mj_kinematics(model, spare)
            mujoco.mj_collision(model, spare)
        finally:
            for margin, index in margins:
                margin[index] = 0.0
        return float(spare.contact.dist.min()) if spare.ncon else reach_m

    def _measure_room_m(self, x: float, y: float) -> float:
        """Return how far the robot may go from here, in any direction, and still keep its gap."""
        return self.measure_gap_m(x, y, reach_m=self._kept_gap_m + LOOK_AHEAD_M) - self._kept_gap_m
