"""What the motion executor needs of a robot, be it simulated in process or behind ROS 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from proctor.core.types import Pose2, Scan


class RobotPort(Protocol):
    """A robot with odometry, a scan and a velocity input, and the clock that governs it.

    No call blocks for ever: a port whose robot, topic or clock falls silent raises SimulationError after a
    deadline in real time, naming what is silent.
    """

    def odometry(self) -> Pose2:
        """Return the newest pose in the odometry frame."""

    def timed_odometry(self) -> tuple[float, Pose2]:
        """Return the newest pose in the odometry frame, and the robot's time when it was measured."""

    def scan(self) -> Scan:
        """Return the newest scan; a sector that covers what lies ahead is enough.

        That of a robot without a scanner has no beams.
        """

    def in_contact(self) -> bool:
        """Tell whether the robot has touched anything but the floor since the last command."""

    def command(self, linear_mps: float, angular_radps: float) -> None:
        """Drive at this velocity until the next command."""

    def now_s(self) -> float:
        """Return the time of the clock that governs the robot: simulation time in a simulation."""

    def wait(self, duration_s: float, alarm: Callable[[], bool] | None = None) -> None:
        """Let this much of the robot's time pass; the robot does as it was last told.

        A port that hears of news in between asks for an alarm after each, and if there is one returns early.
        """
