"""What a pick-and-place episode leaves behind beyond what all exams keep."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from proctor.core.types import Vector3
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.stages import criteria_of, initial_position, stages_of
from proctor.exams.pick_place.state import Phase, PickPlaceTrace, Point
from proctor.exams.results import EpisodeResult

DIGITS = 6  # of what is only told, a micrometre and a microradian are enough
STAGES = ("reached", "grasped", "lifted", "placed", "released")


class PickPlaceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a pick-and-place episode leaves behind beyond its numbers; lists begin before the first step."""

    object_path: list[Point]
    """Where the target object was, in the world."""
    base_path: list[Point]
    """x, y and heading of the robot's base, in the world."""
    gripper: list[float]
    """How far one fingertip was from closed, metres."""
    phases: list[Phase]
    held: list[bool]
    """Whether both fingers had hold of the object."""
    stages: dict[str, int | None]
    """The step, counted from 1, in which `reached`, `grasped`, `lifted`, `placed`, `released` first held."""
    target: Point | None
    """Where the object should go."""


class PickPlaceResult(EpisodeResult, frozen=True, kw_only=True):
    """One finished episode.

    `trajectory` is the path of the hand, `headings` are the base's, `final_distance_to_goal` is the object's.
    """

    pick_place: PickPlaceRecord | UnsetType = UNSET


def record_of(episode: PickAndPlaceEpisode, trace: PickPlaceTrace, distance: Any = None) -> dict[str, Any]:
    """Return the fields of the result that only this exam fills. The paths may be empty."""
    del distance
    states, last = trace.states, trace.states[-1] if trace.states else None
    base = [_rounded((state.position[0], state.position[1], state.yaw)) for state in states]
    bumps = [step for step, state in enumerate(states) if state.collision]
    stages = stages_of(trace.after_steps(), criteria_of(episode))
    target = last.target_position if last is not None else None
    return {
        "trajectory": [Vector3(*_rounded(state.ee_position)) for state in states],
        "headings": [yaw for _, _, yaw in base],
        "collision_steps": bumps,
        "collision_count": len(bumps),
        "final_distance_to_goal": _start_distance_m(episode) if last is None else last.target_distance or 0.0,
        "distance": "euclidean",
        "pick_place": PickPlaceRecord(
            object_path=[_rounded(state.object_position) for state in states],
            base_path=base,
            gripper=[round(state.gripper_state, DIGITS) for state in states],
            phases=[state.phase for state in states],
            held=[state.object_grasped for state in states],
            stages={name: getattr(stages, name) for name in STAGES},
            target=None if target is None else _rounded(target),
        ),
    }


def record_problems(result: EpisodeResult) -> Iterator[tuple[str, str]]:
    """Yield what no run could have written: lists of another length than the trajectory."""
    record = getattr(result, "pick_place", UNSET)
    if not isinstance(record, PickPlaceRecord) or result.error is not None:
        return
    points = len(result.trajectory)
    for name in ("object_path", "base_path", "gripper", "phases", "held"):
        found = len(getattr(record, name))
        if found != points:
            expected = f"expected {points}, one for each point of the trajectory"
            yield f"pick_place.{name}", f"{expected}, found {found}"
    for name, step in record.stages.items():
        if step is not None and not 0 <= step < points:
            yield f"pick_place.stages.{name}", f"expected a step up to {points - 1}, found {step}"


def _start_distance_m(episode: PickAndPlaceEpisode) -> float:
    """Return how far the object is from its target in an episode of which nothing else is known."""
    start, location = initial_position(episode), episode.task_goal.target_location
    if location is None:
        return 0.0
    places = {item.name: item.position for item in episode.scene_objects}
    goal = location.position or places.get(str(location.object_name))
    return math.dist(start, goal) if start and goal else 0.0


def _rounded(point: Point) -> Point:
    x, y, z = point
    return round(x, DIGITS), round(y, DIGITS), round(z, DIGITS)
