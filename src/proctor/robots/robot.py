"""The contract of a robot on wheels: all that drives one, the four actions and `navigate_to`, drives this."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from proctor.core.types import Pose2, Scan
from proctor.robots.dynamics import Dynamics
from proctor.robots.spec import RobotSpec


class Twist(NamedTuple):
    """A velocity in the robot's own frame: x ahead, y to the left, in m/s and rad/s."""

    vx: float = 0.0
    vy: float = 0.0
    omega: float = 0.0

    def limited(self, limits: Dynamics) -> Twist:
        """Return it, or as much of it as the speed limits allow; ValueError if it is not finite."""
        if not all(map(math.isfinite, self)):
            raise ValueError(f"commanded a velocity that is not finite: {self}")
        slower = limits.v_max / max(math.hypot(self.vx, self.vy), limits.v_max)
        omega = min(max(self.omega, -limits.omega_max), limits.omega_max)
        if slower > 1 - 1e-9 and abs(self.omega - omega) < 1e-9:  # at a limit, but for rounding
            return self
        return Twist(self.vx * slower, self.vy * slower, omega)


STILL = Twist()
NO_SCAN = Scan(np.empty(0), 0.0, 0.0, 0.0, 0.0)
"""Of a robot without a scanner."""


class Robot(Protocol):
    """A base with a scan and a velocity input, and the clock that governs it.

    No call blocks for ever: a robot, topic or clock that falls silent raises SimulationError after a deadline
    in real time, naming what is silent.
    """

    @property
    def spec(self) -> RobotSpec:
        """Its size, limits and sensors."""

    @property
    def commanded(self) -> Twist:
        """The newest command, whoever gave it."""

    def pose(self) -> Pose2:
        """Return where it is now, in the world; SimulationError if that is not known."""

    def odometry(self) -> tuple[float, Pose2]:
        """Return the robot's time of the newest measurement, and the pose then in the odometry frame."""

    def velocity(self) -> Twist:
        """Return its velocity as measured."""

    def scan(self) -> Scan:
        """Return the newest scan; a sector ahead is enough. Without a scanner it has no beams."""

    def scanned_s(self) -> float:
        """Return the robot's time of the newest scan; infinity without a scanner."""

    def in_contact(self) -> bool:
        """Tell whether it has touched anything but the floor since the last command."""

    def command(self, twist: Twist) -> None:
        """Drive at this velocity until the next command. How hard it speeds up is up to the base."""

    def now_s(self) -> float:
        """Return the time of the clock that governs it: simulation time in a simulation."""

    def wait(self, duration_s: float, until: Callable[[], bool] | None = None) -> None:
        """Let this much of its time pass, or less if `until`, asked after all news, is true."""


class LimitedRobot:
    """A robot as a controller gets it: it is never commanded to be faster than its spec's limits.

    They bound what `navigate_to` asks of a base. The actions of an exam have speeds of their own.
    All else is read and set on the robot itself, except names that begin with `_`.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while it is copied, there is no `_robot` yet
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        return getattr(self._robot, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._robot, name, value)

    def command(self, twist: Twist) -> None:
        """Drive at this velocity, or as near to it as the limits allow; ValueError if it is not finite."""
        self._robot.command(Twist(*twist).limited(self._robot.spec.dynamics))
