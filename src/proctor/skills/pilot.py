"""Keeps a robot on its course, and knows where the next one can begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.navigation.process.requests import Motion
from proctor.navigation.timing.moves import turn
from proctor.navigation.timing.trajectory import Trajectory
from proctor.navigation.tracking.mobile_robot import MobileRobot
from proctor.navigation.tracking.mpc import MpcController, pose_of
from proctor.robots.dynamics import Dynamics
from proctor.skills.course import Course

SLOW_MPS = 0.15
"""Below this, a robot comes to rest before it takes another course: that is quicker than to curve into it."""


class Departure(NamedTuple):
    """Where and when a new course begins."""

    motion: Motion
    begins_s: float
    """Not earlier than this."""

    @property
    def is_moving(self) -> bool:
        """Whether the course begins in motion, and so at that very moment."""
        return self.motion.v > 0

    def distance_m(self, xy: tuple[float, float]) -> float:
        """Return how far it is to a place."""
        return math.dist((self.motion.x, self.motion.y), xy)

    def turn_to(self, yaw: float | None, dynamics: Dynamics) -> Trajectory:
        """Return the turn on the spot to a heading, or none if any will do."""
        x, y, from_yaw = self.motion.x, self.motion.y, self.motion.yaw
        return turn(Pose2(x, y, from_yaw), 0.0 if yaw is None else wrap_angle(yaw - from_yaw), dynamics)


class Pilot:
    """The one that tells the controller what to follow.

    Args:
        robot: What is driven.
        controller: Tracks the trajectories.
        now_s: The robot's clock.
    """

    def __init__(self, robot: MobileRobot, controller: MpcController, now_s: Callable[[], float]) -> None:
        self._robot, self._controller, self.now_s = robot, controller, now_s
        self.course: Course | None = None

    @property
    def dynamics(self) -> Dynamics:
        """What the robot can do."""
        return Dynamics.of(self._robot.get_dynamics_constraints())

    def pose(self) -> Pose2:
        """Return where the robot is.

        Raises:
            SimulationError: Its pose is not known or not a pose.
        """
        return Pose2(*pose_of(self._robot.get_world_pose()).tolist())

    def velocity(self) -> Array:
        """Return [vx, vy, omega] in the robot's frame."""
        return self._robot.get_velocity()

    def is_touching(self) -> bool:
        """Tell whether the robot touches anything."""
        return self._robot.is_collision_detected()

    def course_speed_mps(self) -> float:
        """Return how fast the robot is to go at this moment, ahead or back."""
        return 0.0 if self.course is None else abs(self._motion_at(self.course, self.now_s()).v)

    def direction_rad(self) -> float:
        """Return the direction in which the course leads at this moment, from the robot's heading."""
        motion = Motion(0.0, 0.0, 0.0) if self.course is None else self._motion_at(self.course, self.now_s())
        return motion.sideways if motion.v >= 0 else math.pi

    def tracking_error_m(self) -> float:
        """Return how far the robot is from where it should be."""
        report = self._controller.last
        return 0.0 if report is None or self.course is None else report.position_error_m

    def follow(self, course: Course) -> None:
        """Take a course in place of the present one."""
        self.course = course
        self._controller.set_reference_trajectory(course.trajectory, course.begun_s)

    def brake(self) -> None:
        """Come to rest along the present course as soon as the limits allow."""
        if self.course is not None and self.course.purpose != "stop":
            self.follow(self.course.braked(self.now_s(), self.dynamics))

    def stop(self) -> None:
        """Stand still at once."""
        self.course = None
        self._controller.stop()

    def departure(self, lead_s: float) -> Departure:
        """Return where a course can begin that will be known in a while, and see to it that it can."""
        now_s = self.now_s()
        if self.course is None or now_s >= self.course.ends_s:
            pose = self.pose()
            return Departure(Motion(pose.x, pose.y, pose.yaw), now_s)
        motion = self._motion_at(self.course, now_s + lead_s)
        if motion.v >= SLOW_MPS:
            return Departure(motion, now_s + lead_s)
        self.brake()
        return Departure(self.course.end(), self.course.ends_s)

    def _motion_at(self, course: Course, time_s: float) -> Motion:
        return course.motion_at(time_s, self.dynamics.drive)
