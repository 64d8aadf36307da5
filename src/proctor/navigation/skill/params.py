"""What can be set about a navigation."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from proctor.core.errors import UserError
from proctor.navigation.planner import MARGIN_M, planner_name
from proctor.navigation.process.requests import TimingMethod
from proctor.robots.wheeled import WheeledRobot

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e4)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1000)]


class NavigationParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a robot navigates. Lengths in metres, times in seconds of the robot's clock."""

    planner: str = "grid"
    timing: TimingMethod = "fast"
    radius_m: Positive = WheeledRobot().radius_m
    margin_m: Annotated[float, msgspec.Meta(ge=0, le=10)] = MARGIN_M  # beyond the radius, where there is room
    position_tolerance_m: Positive = 0.1
    yaw_tolerance_rad: Positive = 0.05  # counts only if a heading is asked for
    tracking_error_m: Positive = 0.3  # further from its target, the robot stops and plans anew
    max_replans: Count = 3  # collisions, tracking errors, or times without progress, each
    max_detours: Count = 20  # new plans around obstacles without a metre of progress
    max_recoveries: Count = 6
    progress_m: Positive = 0.1
    progress_time_s: Positive = 10.0  # a robot that has not moved `progress_m` in this time makes no progress
    planning_timeout_s: Positive = 5.0  # wall time that one plan may take
    path_ticks: Annotated[int, msgspec.Meta(ge=0, le=600)] = 6
    trajectory_ticks: Annotated[int, msgspec.Meta(ge=0, le=600)] = 3
    """So many ticks after it was asked for, a path or a trajectory is taken: in a stepped world exactly then,
    whatever the machine's speed, else as soon after as it comes."""
    lead_s: Positive = 0.15  # when a course planned in motion begins; the ticks must fit in
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0  # for planners that sample

    def checked(self) -> NavigationParams:
        """Return the same if they are valid: msgspec does not check what is made by hand."""
        planner_name(self.planner)
        try:
            return msgspec.convert(msgspec.structs.asdict(self), NavigationParams)
        except msgspec.ValidationError as error:
            raise UserError(f"navigation params: {error}") from None
