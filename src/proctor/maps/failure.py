"""Why a navigation failed, in words that programs can rely on."""

from __future__ import annotations

import enum

from proctor.core.errors import ProctorError, UserError


class Reason(enum.StrEnum):
    """The `reason` of a failed navigation."""

    INVALID_GOAL = "invalid_goal"
    POSE_UNKNOWN = "pose_unknown"
    START_OUTSIDE_MAP = "start_outside_map"
    GOAL_OUTSIDE_MAP = "goal_outside_map"
    START_OCCUPIED = "start_occupied"
    GOAL_OCCUPIED = "goal_occupied"
    NO_FREE_SPACE = "no_free_space"  # the map has no cell where the robot fits
    NO_PATH = "no_path"
    PLANNING_TIMEOUT = "planning_timeout"
    INFEASIBLE_TRAJECTORY = "infeasible_trajectory"
    PLANNER_LOST = "planner_lost"  # the process that plans is gone
    TIMEOUT = "timeout"
    COLLISION = "collision"
    TRACKING_ERROR = "tracking_error"
    NOT_ACCEPTED = "not_accepted"  # the trajectory has ended, the goal checker sees no arrival
    BLOCKED = "blocked"  # something that was not on the map stays in the way
    NO_PROGRESS = "no_progress"
    CANCELLED = "cancelled"
    PLUGIN_FAILED = "plugin_failed"  # a planner, controller, checker or recovery raised an error


class NavigationFailure(ProctorError):
    """A path or a trajectory cannot be made: `reason` is for programs, the message for people."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class PluginFailure(NavigationFailure, UserError):
    """A plug-in of navigation raised an error, or returned what its contract does not allow."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.PLUGIN_FAILED, message)


def infeasible(message: str) -> NavigationFailure:
    """Return the failure of a path that cannot be driven as asked."""
    return NavigationFailure(Reason.INFEASIBLE_TRAJECTORY, message)
