"""How far a pick-and-place attempt came: which stages it went through, and its progress in each phase."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from proctor.exams.pick_place.state import PHASES, PickPlaceState, Point
from proctor.robots.stretch import GRIPPER_OPEN_M

CLOSED_BELOW_M = 0.01  # a gripper is closed below this, unless the state knows the width of what it closes on
REACHED_M = 0.05  # a hand that is this near to the object has reached it
REACH_FROM_M = 0.5  # at this distance from the object, reaching has made no progress yet
OBJECT_Z_M = 0.8  # where an object stands of which neither the state nor the episode says it


class TaskCriteria(NamedTuple):
    """What an episode asks for."""

    lift_height_m: float = 0.1
    place_tolerance_m: float = 0.05
    initial_z_m: float = OBJECT_Z_M  # where the object stands at first, unless the state knows better
    target: Point | None = None
    """Where the object belongs, unless the state knows better; None if the episode names no point."""
    needs_place: bool = True  # whether the object has a place to go: else lifting is the whole task


class Stages(NamedTuple):
    """The steps, counted from 1, in which each stage was first there; None where it never was."""

    reached: int | None = None  # the hand was at the object
    grasped: int | None = None
    lifted: int | None = None  # once grasped, the object was as high as it should be lifted
    above_target: int | None = None  # once lifted, the object was above its target or in it
    placed: int | None = None  # once lifted, the object was in its target
    released: int | None = None  # once placed, nothing held the object


def criteria_of(episode: Any, usual: TaskCriteria | None = None) -> TaskCriteria:
    """Return what an episode asks for, whose parts may be dicts; `usual` holds where it does not say it."""
    usual = usual or TaskCriteria()
    asked, initial = episode.task_goal["success_criteria"], initial_position(episode)
    location = episode.task_goal.get("target_location")
    return TaskCriteria(
        lift_height_m=asked.get("lift_height", usual.lift_height_m),
        place_tolerance_m=asked.get("place_tolerance", usual.place_tolerance_m),
        initial_z_m=usual.initial_z_m if initial is None else float(initial[2]),
        target=None if location is None else location.get("position"),
        needs_place=location is not None,
    )


def initial_position(episode: Any) -> Any:
    """Return where the target object stands at first: as the goal says, else as the scene does, else None."""
    target = episode.task_goal.get("target_object")
    if target is None:
        return None
    own = target.get("initial_position")
    if own is not None:
        return own
    places = (item["position"] for item in episode.scene_objects if item["name"] == target["name"])
    return next(places, None)


def stages_of(states: Iterable[PickPlaceState], criteria: TaskCriteria) -> Stages:
    """Return the stages of an attempt, given the states after each of its steps."""
    stages = Stages()
    for step, state in enumerate(states, 1):
        stages = next_stages(stages, step, state, criteria)
    return stages


def next_stages(before: Stages, step: int, state: PickPlaceState, criteria: TaskCriteria) -> Stages:
    """Return the stages after one more step. No stage can be skipped."""

    def first(known: int | None, *, now: bool) -> int | None:
        return step if known is None and now else known

    grasped = first(before.grasped, now=_is_grasped(state))
    is_high = _raised_m(state, criteria) > criteria.lift_height_m
    lifted = first(before.lifted, now=grasped is not None and is_high)
    can_be_placed = lifted is not None and criteria.needs_place
    is_placed = can_be_placed and _is_in_target(state, criteria)
    placed = first(before.placed, now=is_placed)
    is_above = is_placed or (can_be_placed and _is_above(state, criteria))
    is_free = not state.object_grasped if state.object_released is None else state.object_released
    return Stages(
        reached=first(before.reached, now=state.phase != PHASES[0]),
        grasped=grasped,
        lifted=lifted,
        above_target=first(before.above_target, now=is_above),
        placed=placed,
        released=first(before.released, now=placed is not None and is_free),
    )


def is_complete(stages: Stages, criteria: TaskCriteria) -> bool:
    """Whether the object was grasped, lifted and, where there is a target, then in it."""
    return stages.lifted is not None and (stages.placed is not None or not criteria.needs_place)


def hand_distance_m(state: PickPlaceState) -> float:
    """Return how far the hand is from the object."""
    center = state.object_position if state.object_center is None else state.object_center
    return math.dist(state.ee_position, center)


def target_distance_m(state: PickPlaceState, criteria: TaskCriteria) -> float:
    """Return how far the object is from where it belongs; infinite where that is not known."""
    if state.target_distance is not None:
        return state.target_distance
    target = _target(state, criteria)
    return math.inf if target is None else math.dist(state.object_position, target)


def _target(state: PickPlaceState, criteria: TaskCriteria) -> Point | None:
    return criteria.target if state.target_position is None else state.target_position


def _is_grasped(state: PickPlaceState) -> bool:
    """Whether the object is held and the gripper has closed on it."""
    known_m = state.gripper_closed_below
    return state.object_grasped and state.gripper_state < (CLOSED_BELOW_M if known_m is None else known_m)


def _raised_m(state: PickPlaceState, criteria: TaskCriteria) -> float:
    known_m = state.initial_object_z
    return state.object_position[2] - (criteria.initial_z_m if known_m is None else known_m)


def _is_in_target(state: PickPlaceState, criteria: TaskCriteria) -> bool:
    if state.object_in_target is not None:
        return state.object_in_target
    return target_distance_m(state, criteria) < criteria.place_tolerance_m


def _is_above(state: PickPlaceState, criteria: TaskCriteria) -> bool:
    target = _target(state, criteria)
    return target is not None and (
        math.dist(state.object_position[:2], target[:2]) < criteria.place_tolerance_m
    )


def completion_of(state: PickPlaceState, criteria: TaskCriteria) -> float:
    """Return how far the whole task has come: (finished phases + progress in this one) / 4."""
    if state.success:
        return 1.0
    return (PHASES.index(state.phase) + phase_progress(state, criteria)) / len(PHASES)


def phase_progress(state: PickPlaceState, criteria: TaskCriteria) -> float:
    """Return how far the present phase has come, from 0 to 1.

    Of reaching that is how near the hand is to the object; of grasping, how far the gripper has closed on it;
    of lifting, the height as a part of what is asked for; of placing, 0 at the tolerance, 1 at the target.
    """
    if state.phase == "reach":
        return _clamp(1.0 - hand_distance_m(state) / REACH_FROM_M)
    if state.phase == "grasp":
        closed_below_m = state.gripper_closed_below or 0.0
        return _ratio(GRIPPER_OPEN_M - state.gripper_state, GRIPPER_OPEN_M - closed_below_m)
    if state.phase == "lift":
        known_m = state.target_lift_height
        wanted_m = criteria.lift_height_m if known_m is None else known_m
        return _ratio(_raised_m(state, criteria), wanted_m)
    if not criteria.needs_place and state.target_position is None:
        return 1.0
    known_m = state.place_tolerance
    tolerance_m = criteria.place_tolerance_m if known_m is None else known_m
    return _ratio(tolerance_m - target_distance_m(state, criteria), tolerance_m)


def _ratio(part: float, whole: float) -> float:
    """Return a part as a number from 0 to 1, 0 if it is NaN; of nothing, any part is all of it."""
    if whole <= 0:
        return float(part > 0)
    return _clamp(part / whole)


def _clamp(value: float) -> float:
    return max(0.0, min(1.0, value)) if not math.isnan(value) else 0.0
