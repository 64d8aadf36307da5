"""The states of a skill, and what leads from one to another."""

from __future__ import annotations

import enum


class State(enum.StrEnum):
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


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.IDLE, Event.REQUESTED): State.INITIALIZING,
    (State.INITIALIZING, Event.REQUESTED): State.INITIALIZING,
    (State.INITIALIZING, Event.LOCATED): State.PATH_PLANNING,
    (State.INITIALIZING, Event.FAILED): State.FAILED,
    (State.PATH_PLANNING, Event.REQUESTED): State.INITIALIZING,
    (State.PATH_PLANNING, Event.PATH_FOUND): State.TRAJECTORY_GENERATION,
    (State.PATH_PLANNING, Event.REPLAN): State.PATH_PLANNING,
    (State.PATH_PLANNING, Event.FAILED): State.FAILED,
    (State.TRAJECTORY_GENERATION, Event.REQUESTED): State.INITIALIZING,
    (State.TRAJECTORY_GENERATION, Event.TIMED): State.EXECUTING,
    (State.TRAJECTORY_GENERATION, Event.REPLAN): State.PATH_PLANNING,
    (State.TRAJECTORY_GENERATION, Event.FAILED): State.FAILED,
    (State.EXECUTING, Event.REQUESTED): State.INITIALIZING,
    (State.EXECUTING, Event.REPLAN): State.PATH_PLANNING,
    (State.EXECUTING, Event.ARRIVED): State.SUCCEEDED,
    (State.EXECUTING, Event.FAILED): State.FAILED,
    (State.SUCCEEDED, Event.REPORTED): State.IDLE,
    (State.FAILED, Event.REPORTED): State.IDLE,
}
"""All that can happen. What is not here is a mistake of the program."""

TERMINAL = (State.SUCCEEDED, State.FAILED)
OVER = (State.IDLE, *TERMINAL)  # nothing is under way
