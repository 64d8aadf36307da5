"""What is asked of the planner, and what it answers."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from proctor.core.errors import UserError
from proctor.navigation.failure import NavigationFailure
from proctor.navigation.path import Path
from proctor.navigation.planning.planner import MARGIN_M
from proctor.navigation.timing.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics
from proctor.robots.wheeled import WheeledRobot

TimingMethod: TypeAlias = Literal["fast", "toppra"]
"""`fast` is compiled; `toppra` is the package of that name."""


class Motion(msgspec.Struct, frozen=True):
    """Where the robot is in the world, and how it moves there."""

    x: float
    y: float
    yaw: float
    v: float = 0.0
    """Metres per second; negative if backwards."""
    omega: float = 0.0
    """Radians per second to the left."""
    curvature: float = 0.0
    """Of the path it is on, 1 / metres to the left; with `v`, what a new path must begin with."""
    sideways: float = 0.0
    """Radians to the left of its heading, in which it moves: a holonomic base need not go where it looks."""

    @property
    def direction(self) -> float:
        """Where its path leads, in the world; backwards along it if `v` is negative."""
        return self.yaw + self.sideways


class PathRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask for a path.

    Raises:
        UserError: A number is not finite, or a radius, margin or timeout is out of range.
    """

    start: Motion
    goal_xy: tuple[float, float]
    planner: str = "grid"
    radius_m: float = WheeledRobot().radius_m
    margin_m: float = MARGIN_M
    """What the path keeps beyond the radius, where there is room."""
    dynamics: Dynamics = Dynamics()
    timeout_s: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check_finite("start", *msgspec.structs.astuple(self.start))
        _check_finite("goal", *self.goal_xy)
        _check_finite("radius, margin and timeout", self.radius_m, self.margin_m, self.timeout_s)
        if self.radius_m < 0 or self.margin_m < 0 or self.timeout_s <= 0:
            found = f"{self.radius_m}, {self.margin_m} and {self.timeout_s}"
            raise UserError(f"expected radius and margin of 0 or more and a timeout above 0, found {found}")


class TrajectoryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Ask when to be where along a path.

    Raises:
        UserError: A number is not finite.
    """

    path: Path
    start: Motion
    goal_yaw: float | None = None
    dynamics: Dynamics = Dynamics()
    timing: TimingMethod = "fast"

    def __post_init__(self) -> None:
        _check_finite("start", *msgspec.structs.astuple(self.start))
        _check_finite("goal", self.goal_yaw or 0.0)


class Reply(NamedTuple):
    """The answer to one request."""

    id: int
    result: Path | Trajectory | NavigationFailure
    took_s: float = 0.0
    """Wall time that a trajectory took; a path has its own times."""


def _check_finite(what: str, *numbers: float) -> None:
    if not all(map(math.isfinite, numbers)):
        raise UserError(f"expected finite numbers for {what}, found {list(numbers)}")
