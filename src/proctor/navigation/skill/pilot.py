"""The course of a robot: follow it, watch that it stays free, and know where the next one can begin."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from proctor.core.geometry import path_length, wrap_angle
from proctor.core.types import Array, Pose2
from proctor.kernels.clearance import ClearanceField, least_clearance
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import MOVING_MPS, Path, RobotMotion, Trajectory
from proctor.navigation.plugins import Controller, calling
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.timing.moves import brake, turn
from proctor.robots.dynamics import Drive, Dynamics
from proctor.robots.robot import STILL, Robot

Purpose = Literal["goal", "stop", "recovery"]
SOON_S = 0.02  # in which a path hardly bends, but enough to be measured
SLOW_MPS = 0.15  # below, a robot stops before a new course: that is quicker than to curve into it
SLACK_M = 0.01  # a course that comes closer to something than when it was made by more is blocked
BUMP_RAD = np.radians([-45.0, -22.5, 0.0, 22.5, 45.0])


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """A trajectory under way."""

    trajectory: Trajectory
    begun_s: float  # when it begins, by the robot's clock
    purpose: Purpose
    path: Path | None = None  # what it leads along, if it leads to the goal

    @property
    def ends_s(self) -> float:
        """When the robot will be at its end."""
        return self.begun_s + self.trajectory.duration_s

    def motion_at(self, time_s: float, drive: Drive) -> RobotMotion:
        """Return where the robot is to be at a time, and how it moves there."""
        (x, y, yaw), (vx, vy, omega) = (part.tolist() for part in self.trajectory.at(time_s - self.begun_s))
        speed_mps = math.hypot(vx, vy)
        if speed_mps < MOVING_MPS:
            return RobotMotion(x, y, yaw, omega=omega)
        if drive == "differential":
            v = vx * math.cos(yaw) + vy * math.sin(yaw)
            return RobotMotion(x, y, yaw, v, omega, omega / v if abs(v) > MOVING_MPS else 0.0)
        direction = math.atan2(vy, vx)
        _, (soon_vx, soon_vy, _) = self.trajectory.at(time_s - self.begun_s + SOON_S)
        bend_rad = wrap_angle(math.atan2(soon_vy, soon_vx) - direction)
        curvature = bend_rad / (speed_mps * SOON_S) if math.hypot(soon_vx, soon_vy) > MOVING_MPS else 0.0
        return RobotMotion(x, y, yaw, speed_mps, omega, curvature, wrap_angle(direction - yaw))

    def end(self) -> RobotMotion:
        """Return the rest at its end."""
        x, y, yaw = self.trajectory.poses[-1].tolist()
        return RobotMotion(x, y, yaw)

    def braked(self, now_s: float, dynamics: Dynamics) -> Course:
        """Return the course that comes to rest along this one as soon as it can."""
        if now_s >= self.ends_s:
            return self
        trajectory = brake(self.trajectory, max(now_s - self.begun_s, 0.0), dynamics)
        return Course(trajectory=trajectory, begun_s=now_s, purpose="stop", path=self.path)

    def remaining_m(self, now_s: float) -> float:
        """Return how far it still goes."""
        return path_length(self._points_ahead(now_s))

    def block_ahead_m(self, field: ClearanceField, now_s: float, limit_m: float) -> float:
        """Return how far ahead it comes closer to something than a limit, infinite if it does not."""
        points = self._points_ahead(now_s)
        if least_clearance(field, points) > limit_m:
            return math.inf
        first = next(i for i in range(len(points)) if least_clearance(field, points[i : i + 1]) <= limit_m)
        return path_length(points[: first + 1])

    def _points_ahead(self, now_s: float) -> Array:
        return self.trajectory.remaining(max(now_s - self.begun_s, 0.0))


class Departure(NamedTuple):
    """Where and when a new course begins."""

    motion: RobotMotion
    begins_s: float  # not earlier than this

    @property
    def is_moving(self) -> bool:
        """Whether the course begins in motion, and so at that very moment."""
        return self.motion.v > 0

    @property
    def pose(self) -> Pose2:
        """Where it begins."""
        return Pose2(self.motion.x, self.motion.y, self.motion.yaw)

    def turn_to(self, yaw: float | None, dynamics: Dynamics) -> Trajectory:
        """Return the turn on the spot to a heading, or none if any will do."""
        return turn(self.pose, 0.0 if yaw is None else wrap_angle(yaw - self.motion.yaw), dynamics)


class Pilot:
    """Tells the controller what to follow."""

    def __init__(self, robot: Robot, controller: Controller, now_s: Callable[[], float]) -> None:
        self.robot, self._controller, self.now_s = robot, controller, now_s
        self.course: Course | None = None

    @property
    def dynamics(self) -> Dynamics:
        """What the robot can do."""
        return self.robot.spec.dynamics

    def velocity(self) -> Array:
        """Return [vx, vy, omega] in the robot's frame."""
        return np.array(self.robot.velocity())

    def motion(self) -> RobotMotion:
        """Return how the robot is to move at this moment; at rest, somewhere, if it has no course."""
        if self.course is None:
            return RobotMotion(0.0, 0.0, 0.0)
        return self.course.motion_at(self.now_s(), self.dynamics.drive)

    def tracking_error_m(self, pose: Pose2) -> float:
        """Return how far a pose is from where the robot should be."""
        target = self.target()
        return 0.0 if target is None else math.dist((pose.x, pose.y), target[:2])

    def target(self) -> list[float] | None:
        """Return where the robot is to be now, [x, y, yaw], if it has a course."""
        if self.course is None:
            return None
        pose: list[float] = self.course.trajectory.at(self.now_s() - self.course.begun_s)[0].tolist()
        return pose

    def follow(self, course: Course) -> None:
        """Take a course in place of the present one."""
        self.course = course
        with calling(self._controller):
            self._controller.set_reference_trajectory(course.trajectory, course.begun_s)

    def control(self) -> None:
        """Let the controller command the robot, if there is a course."""
        if self.course is not None:
            with calling(self._controller):
                self._controller.clock_callback(self.now_s())

    def brake(self) -> None:
        """Come to rest along the present course as soon as the limits allow."""
        if self.course is not None and self.course.purpose != "stop":
            self.follow(self.course.braked(self.now_s(), self.dynamics))

    def stop(self) -> None:
        """Stand still at once, whatever the controller does."""
        self.course = None
        try:
            with calling(self._controller):
                self._controller.stop()
        finally:
            if any(self.robot.commanded):
                self.robot.command(STILL)

    def departure(self, lead_s: float) -> Departure:
        """Return where a course can begin that will be known in a while, and see to it that it can."""
        now_s = self.now_s()
        if self.course is None or now_s >= self.course.ends_s:
            pose = self.robot.pose()
            return Departure(RobotMotion(pose.x, pose.y, pose.yaw), now_s)
        motion = self.course.motion_at(now_s + lead_s, self.dynamics.drive)
        if motion.v >= SLOW_MPS:
            return Departure(motion, now_s + lead_s)
        self.brake()
        return Departure(self.course.end(), self.course.ends_s)


class Sight(enum.Enum):
    """What the lookout sees."""

    CLEAR = enum.auto()
    TOUCHED = enum.auto()  # the robot has run into something
    BLOCKED = enum.auto()  # something is on the course, far enough to plan around it without stopping
    BLOCKED_NEAR = enum.auto()  # something is on the course, and the robot must brake now


class Lookout:
    """Compares the rest of the course with the newest map at each tick."""

    def __init__(self, pilot: Pilot, world_map: LiveMap, params: NavigationParams) -> None:
        self._pilot, self._map, self._params = pilot, world_map, params
        self._touching = False
        self._bumps_world = np.zeros((0, 3))
        self._reminded_s = 0.0

    def mark_bump(self, direction_rad: float) -> None:
        """Put on the map what the robot has bumped into, in a direction from its heading."""
        pose = self._pilot.robot.pose()
        angles = pose.yaw + direction_rad + BUMP_RAD
        reach_m = self._params.radius_m + 0.05  # beyond the hull, so that it does not cover the robot itself
        x, y = pose.x + reach_m * np.cos(angles), pose.y + reach_m * np.sin(angles)
        bump_world = np.stack([x, y, np.full_like(x, 0.2)], axis=1)
        self._bumps_world = np.concatenate([self._bumps_world, bump_world])
        self._remind()

    def _remind(self) -> None:
        self._reminded_s = self._pilot.now_s()
        self._map.mark_points(self._bumps_world, self._reminded_s)

    def begin(self) -> None:
        """Begin anew. Contacts that exist already are not collisions."""
        self._touching = self._pilot.robot.in_contact()
        self._bumps_world = np.zeros((0, 3))

    def _has_bumped(self) -> bool:
        """Tell whether the robot has just run into something; contacts while it stands do not count."""
        if not self._pilot.robot.in_contact():
            self._touching = False
        elif not self._touching and abs(self._pilot.motion().v) > 0.02:
            self._touching = True
            return True
        return False

    def look(self) -> Sight:
        """Return the most urgent of what there is."""
        pilot, course = self._pilot, self._pilot.course
        now_s = pilot.now_s()
        if self._has_bumped():
            return Sight.TOUCHED
        if len(self._bumps_world) and now_s - self._reminded_s > 1.0:  # sensors do not see it: mark it again
            self._remind()
        if course is None or course.purpose == "stop" or now_s >= course.ends_s:
            return Sight.CLEAR
        room_m = self._params.radius_m if course.path is None else course.path.clearance_m
        limit_m = min(room_m, self._params.radius_m) - SLACK_M
        ahead_m = course.block_ahead_m(self._map.field(now_s), now_s, limit_m)
        if math.isinf(ahead_m) or (course.purpose == "recovery" and ahead_m == 0):
            return Sight.CLEAR
        stopping_m = course.braked(now_s, pilot.dynamics).remaining_m(now_s)
        near_m = stopping_m + 0.3 * abs(pilot.motion().v)  # seconds from seeing something to braking
        return Sight.BLOCKED if ahead_m > near_m else Sight.BLOCKED_NEAR
