"""What other packages can replace about a navigation: the contracts of its plug-ins, as in nav2_core.

A plug-in is a class that inherits one of these contracts. It has a name by an entry point of the group that
its contract names, or is given as `module:Class` or `file.py:Class`. Proctor's own are found the same way.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from proctor.core.errors import SimulationError, failed_at
from proctor.core.options import checked_options
from proctor.core.registry import load
from proctor.core.types import Array, Pose2
from proctor.kernels.clearance import ClearanceField
from proctor.maps.failure import NavigationFailure, PluginFailure
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import Trajectory
from proctor.navigation.skill.goal import NavigationGoal
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import Robot, Twist

PluginKind = Literal["planner", "controller", "goal_checker", "progress_checker", "recovery"]


class PluginOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a plug-in: inherit it, and add fields with defaults and units in their names."""


class Plugin(ABC):  # noqa: B024 - the contracts below have abstract methods
    """What all contracts share: options that have been checked."""

    options_type: ClassVar[type[PluginOptions]] = PluginOptions
    title = "plug-in"  # for people, such as `controller 'mpc'`; `make_plugin` sets it

    def __init__(self, options: Any = None) -> None:
        self.options: Any = self.options_type() if options is None else options


class PathQuery(NamedTuple):
    """Where to go on a map, in metres of the world frame. A robot fits at both ends."""

    field: ClearanceField  # for each cell, how far the next obstacle is
    start_xy: Array
    goal_xy: Array
    radius_m: float
    margin_m: float  # to be kept beyond the radius, except near both ends
    deadline_s: float  # of time.monotonic()
    seed: int
    cancelled: Callable[[], bool] | None

    @property
    def left_s(self) -> float:
        """How much time is left; 0 or less if none is."""
        return self.deadline_s - time.monotonic()


class FoundPath(NamedTuple):
    """The corners of a path, straight lines between them."""

    points: Array  # (N, 2), world; the first is the start, the last the goal
    optimum_gap: float | None = None  # 0 if no path that keeps the margin is shorter; None if not known


class PathPlanner(Plugin):
    """Finds paths; entry-point group `proctor.planners`. It is made once in the planner process, and kept."""

    package: ClassVar[str] = ""  # what must be installed for it, if it is optional

    @abstractmethod
    def find_path(self, query: PathQuery) -> FoundPath | None:
        """Return a path that keeps radius and margin, or None: less margin, or none, is then asked for.

        What is found is made smooth and as quick to drive as it can be, between the same obstacles.
        Raises NavigationFailure with PLANNING_TIMEOUT or CANCELLED.
        """


class ControlReport(NamedTuple):
    """What the controller did in its latest tick, for monitoring."""

    time_s: float
    command: Twist
    pose: Array  # [x, y, yaw] as measured, the yaw unwrapped as the reference's is
    target: Array  # [x, y, yaw] of the reference
    position_error_m: float
    heading_error_rad: float
    cross_track_error_m: float  # across the reference's motion, or its heading while it stands
    fallback: bool  # the optimiser failed, and the plain feedback law made the command
    resting: bool  # the reference is at its end and the robot near enough: it stands
    solve_time_s: float


class Controller(Plugin):
    """Keeps a robot on its trajectory; entry-point group `proctor.controllers`.

    Its commands are cut down to the speeds of the robot's spec; to keep the accelerations is its own task.
    `now_s` is the robot's clock, `field` returns the newest clearance field, or None to ignore obstacles,
    and `period_s` is the time between two ticks.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        now_s: Callable[[], float],
        field: Callable[[], ClearanceField | None],
        radius_m: float,
        period_s: float,
        options: Any = None,
    ) -> None:
        super().__init__(options)
        self.robot, self.now_s, self.field = robot, now_s, field
        self.radius_m, self.period_s = radius_m, period_s
        self.last: ControlReport | None = None  # the latest report; None before one and after `stop`

    @abstractmethod
    def set_reference_trajectory(self, trajectory: Trajectory, start_time_s: float) -> None:
        """Follow a trajectory as if it had begun at a time of the clock, in place of any other."""

    @abstractmethod
    def clock_callback(self, time_s: float) -> None:
        """Command the robot's velocity; called at every tick. Without a trajectory it leaves it alone.

        Raises SimulationError if the robot's pose is not known.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stand still, and forget the trajectory."""


class GoalChecker(Plugin):
    """Decides on arrival; entry-point group `proctor.goal_checkers`. One is made for each goal."""

    @abstractmethod
    def has_arrived(self, goal: NavigationGoal, pose: Pose2, velocity: Array, overtime_s: float) -> bool:
        """Tell whether a robot has arrived; asked at each tick of a course to the goal.

        `velocity` is [vx, vy, omega] in the robot's frame. `overtime_s` is how long ago the trajectory has
        ended, negative before that; a robot that has not arrived 2 s after it plans anew, and at last fails
        with NOT_ACCEPTED.
        """


class ProgressChecker(Plugin):
    """Notices a robot that makes no progress; entry-point group `proctor.progress_checkers`.

    One is made for each goal.
    """

    @abstractmethod
    def restart(self) -> None:
        """Begin to watch anew: the robot has another course."""

    @abstractmethod
    def find_problem(self, pose: Pose2, now_s: float) -> str | None:
        """Take note of a pose; return what is wrong, such as `no progress in 10 s`, or None."""


class RecoverySituation(NamedTuple):
    """Where a robot stands that finds no way on."""

    pose: Pose2
    field: ClearanceField
    live_map: LiveMap  # what it has seen can be cleared
    radius_m: float
    dynamics: Dynamics


class Recovery(Plugin):
    """Something to try where there is no way on; entry-point group `proctor.recoveries`."""

    message: ClassVar[str]  # for people, while it is tried: `Backing out`

    @abstractmethod
    def trajectory(self, situation: RecoverySituation) -> Trajectory:
        """Return how to move from there; afterwards the path is planned anew."""


def plugin_options(kind: PluginKind, name: str, given: Mapping[str, Any]) -> PluginOptions:
    """Return the options of a plug-in, checked; UserError if it has no such option."""
    options_type: type[PluginOptions] = load(kind, name).options_type
    return checked_options(options_type, given, _title(kind, name))


def make_plugin(kind: PluginKind, name: str, given: Mapping[str, Any], *parts: Any, **more: Any) -> Any:
    """Make a plug-in by its name, with its options and with what its contract's constructor takes."""
    made, title = load(kind, name), _title(kind, name)
    options = plugin_options(kind, name, given)
    with calling(made, title):
        plugin = made(*parts, options=options, **more)
        plugin.title = title
    return plugin


def _title(kind: PluginKind, name: str) -> str:
    return f"{kind.replace('_', ' ')} '{name}'"


@contextmanager
def calling(plugin: Plugin | type[Plugin], title: str = "") -> Iterator[None]:
    """Turn an error of a plug-in's code into a PluginFailure that names the plug-in, the error and its line.

    What its contract lets it raise, NavigationFailure and SimulationError, is left as it is.
    """
    try:
        yield
    except (NavigationFailure, SimulationError):
        raise
    except (Exception, SystemExit) as error:  # a plug-in's exit would look like the end of the command
        file = getattr(sys.modules.get(plugin.__module__), "__file__", None)
        raise PluginFailure(f"the {title or plugin.title} {failed_at(error, file)}") from error


def check_returned(plugin: Plugin, value: Any, wanted: type | tuple[type, ...], expected: str) -> None:
    """Raise PluginFailure if a plug-in has returned something else than what its contract says."""
    if not isinstance(value, wanted):
        raise PluginFailure(f"the {plugin.title} returned {value!r:.80}; expected {expected}")
