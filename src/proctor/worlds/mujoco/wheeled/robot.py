"""A robot of a MuJoCo world and its scanner, moved by physics, or by a model of its base with equal bits.

Far from everything, physics only moves the base as its servos say. Conservative advancement decides that: a
disc with a gap of d to its nearest obstacle can go d anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import copysign, cos, hypot, nan, sin

import mujoco
import numpy as np

from proctor.core.geometry import pose_into, wrap_angle
from proctor.core.types import SECTOR_RAD, STEP_M, Array, Pose2, Scan
from proctor.robots.robot import NO_SCAN, STILL, Twist
from proctor.robots.spec import RobotSpec
from proctor.worlds.mujoco.contacts import Group
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


LOOK_AHEAD_M = STEP_M + 0.01
"""Gaps are measured up to this beyond the one that is kept: in open space, once in a move of the exam."""


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

    def follow(self, speeds_mps: Sequence[float], angular_radps: float) -> None:
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

    def scanned_s(self) -> float:
        """Return the simulated time: a scan is of now."""
        return self.now_s()

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
