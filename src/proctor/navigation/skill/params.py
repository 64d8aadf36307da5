"""What can be set about a navigation."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, cast

import msgspec

from proctor.core.errors import UserError, did_you_mean
from proctor.navigation.planner import MARGIN_M, planner_name
from proctor.navigation.plugins import Controller, make_plugin, plugin_options
from proctor.navigation.process.plan import TimingMethod
from proctor.navigation.skill.checkers import Positive
from proctor.robots.robot import LimitedRobot, Robot
from proctor.robots.spec import standard_robot

Options: TypeAlias = dict[str, Any]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1000)]


class NavigationParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a robot navigates. Lengths in metres, times in seconds of the robot's clock."""

    planner: str = "grid"
    planner_options: Options = {}
    controller: str = "mpc"
    controller_options: Options = {}
    goal_checker: str = "at_rest"
    goal_checker_options: Options = {}
    progress_checker: str = "movement"
    progress_checker_options: Options = {}
    recoveries: tuple[str, ...] = ("clear", "wait", "turn", "back_out")  # tried in turn
    recovery_options: dict[str, Options] = {}  # by the recovery's name
    timing: TimingMethod = "fast"
    radius_m: Positive = standard_robot().radius_m
    margin_m: Annotated[float, msgspec.Meta(ge=0, le=10)] = MARGIN_M  # beyond the radius, where there is room
    tracking_error_m: Positive = 0.3  # further from its target, the robot stops and plans anew
    max_replans: Count = 3  # collisions, tracking errors, or times without progress, each
    max_detours: Count = 20  # new plans around obstacles without a metre of progress
    max_recoveries: Count = 6
    planning_timeout_s: Positive = 5.0  # wall time that one plan may take
    path_ticks: Annotated[int, msgspec.Meta(ge=0, le=600)] = 6
    trajectory_ticks: Annotated[int, msgspec.Meta(ge=0, le=600)] = 3
    """So many ticks after it was asked for, a path or a trajectory is taken: in a stepped world exactly then,
    whatever the machine's speed, else as soon after as it comes."""
    lead_s: Positive = 0.15  # when a course planned in motion begins; the ticks must fit in
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0  # for planners that sample

    def checked(self) -> NavigationParams:
        """Return the same if they are valid: msgspec does not check what is made by hand."""
        try:
            params = msgspec.convert(msgspec.structs.asdict(self), NavigationParams)
        except msgspec.ValidationError as error:
            raise UserError(f"navigation params: {error}") from None
        plugin_options("planner", planner_name(params.planner), params.planner_options)
        for kind in ("controller", "goal_checker", "progress_checker"):
            plugin_options(kind, getattr(params, kind), getattr(params, f"{kind}_options"))
        for name in params.recoveries:
            plugin_options("recovery", name, params.recovery_options.get(name, {}))
        for name in params.recovery_options:
            if name not in params.recoveries:
                hint = did_you_mean(name, params.recoveries)
                raise UserError(f"navigation params: options for a recovery '{name}' that is not tried{hint}")
        return params

    def make_controller(self, robot: Robot, **parts: Any) -> Controller:
        """Make the controller; `parts` are those of its contract: `now_s`, `field` and `period_s`."""
        given, limited = self.controller_options, LimitedRobot(robot)
        made = make_plugin("controller", self.controller, given, limited, radius_m=self.radius_m, **parts)
        return cast(Controller, made)
