"""The states of a skill, what leads from one to another, and what a tick returns."""

from __future__ import annotations

import enum
from typing import Any

Result = dict[str, Any]  # `status` is processing, succeeded or failed; `message` is for people


class SkillState(enum.StrEnum):
    """Where a navigation stands."""

    IDLE = "IDLE"
    INITIALIZING = "INITIALIZING"
    PATH_PLANNING = "PATH_PLANNING"
    TRAJECTORY_GENERATION = "TRAJECTORY_GENERATION"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class Event(enum.StrEnum):
    """What happens to a navigation."""

    REQUESTED = "requested"  # a goal has come; while another one is pursued, it takes its place
    LOCATED = "located"  # the robot's pose is known, and the goal makes sense
    PATH_FOUND = "path found"
    TIMED = "timed"  # the path has become a trajectory
    REPLAN = "replan"  # the way on must be found anew: a collision, a tracking error, something on the path
    ARRIVED = "arrived"
    FAILED = "failed"  # it cannot go on, took too long, or was cancelled
    REPORTED = "reported"  # the result has been returned


TRANSITIONS: dict[tuple[SkillState, Event], SkillState] = {
    (SkillState.IDLE, Event.REQUESTED): SkillState.INITIALIZING,
    (SkillState.INITIALIZING, Event.REQUESTED): SkillState.INITIALIZING,
    (SkillState.INITIALIZING, Event.LOCATED): SkillState.PATH_PLANNING,
    (SkillState.INITIALIZING, Event.FAILED): SkillState.FAILED,
    (SkillState.PATH_PLANNING, Event.REQUESTED): SkillState.INITIALIZING,
    (SkillState.PATH_PLANNING, Event.PATH_FOUND): SkillState.TRAJECTORY_GENERATION,
    (SkillState.PATH_PLANNING, Event.REPLAN): SkillState.PATH_PLANNING,
    (SkillState.PATH_PLANNING, Event.FAILED): SkillState.FAILED,
    (SkillState.TRAJECTORY_GENERATION, Event.REQUESTED): SkillState.INITIALIZING,
    (SkillState.TRAJECTORY_GENERATION, Event.TIMED): SkillState.EXECUTING,
    (SkillState.TRAJECTORY_GENERATION, Event.REPLAN): SkillState.PATH_PLANNING,
    (SkillState.TRAJECTORY_GENERATION, Event.FAILED): SkillState.FAILED,
    (SkillState.EXECUTING, Event.REQUESTED): SkillState.INITIALIZING,
    (SkillState.EXECUTING, Event.REPLAN): SkillState.PATH_PLANNING,
    (SkillState.EXECUTING, Event.ARRIVED): SkillState.SUCCEEDED,
    (SkillState.EXECUTING, Event.FAILED): SkillState.FAILED,
    (SkillState.SUCCEEDED, Event.REPORTED): SkillState.IDLE,
    (SkillState.FAILED, Event.REPORTED): SkillState.IDLE,
}
"""All that can happen. What is not here is a mistake of the program."""

TERMINAL = (SkillState.SUCCEEDED, SkillState.FAILED)
OVER = (SkillState.IDLE, *TERMINAL)  # nothing is under way
