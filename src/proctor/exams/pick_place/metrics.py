"""The metrics of pick-and-place: pure functions of a trace. docs/metrics.md explains them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

from proctor.exams.exam import Metric
from proctor.exams.pick_place.similarity import trace_similarity
from proctor.exams.pick_place.stages import (
    completion_of,
    criteria_of,
    initial_position,
    is_complete,
    stages_of,
    target_distance_m,
)
from proctor.exams.pick_place.state import PickPlaceState, PickPlaceTrace

DROP_M = 0.05  # an object that falls further than this has been dropped
States: TypeAlias = Sequence[PickPlaceState]
Score: TypeAlias = Callable[[Any, PickPlaceTrace, Any], float]


def _of_states(score: Callable[[States], float]) -> Score:
    """Make a score of a function that needs no more than the states after each step."""
    return lambda episode, trace, distance: float(score(trace.after_steps()))


def _of_episode(score: Callable[[Any, States], float]) -> Score:
    return lambda episode, trace, distance: score(episode, trace.after_steps())


def _success_any_step(episode: Any, states: States) -> float:
    criteria = criteria_of(episode)
    return float(is_complete(stages_of(states, criteria), criteria))


def _completion_rate(episode: Any, states: States) -> float:
    criteria = criteria_of(episode)
    return max((completion_of(state, criteria) for state in states), default=0.0)


def _similarity(name: Any) -> Score:
    return lambda episode, trace, distance: trace_similarity(name, episode, trace)


def _stage(name: str, episode: Any, states: States) -> float:
    """Return whether a stage was ever there; NaN for placing where the object has no place to go."""
    criteria = criteria_of(episode)
    if name == "placed" and not criteria.needs_place:
        return math.nan
    return float(getattr(stages_of(states, criteria), name) is not None)


def _time_to_success_s(states: States) -> float:
    time_s = next((state.time_s for state in states if state.success), None)
    return math.nan if time_s is None else round(time_s, 6)  # clocks add up small errors


def _drops(states: States) -> float:
    count, held_z_m = 0, None
    for state in states:
        z_m = state.object_position[2]
        if state.object_grasped:
            held_z_m = z_m
        elif held_z_m is not None:
            fell = held_z_m - z_m > DROP_M
            count += fell
            if fell or state.object_supported:
                held_z_m = None
    return float(count)


def _touches(name: str, states: States) -> int:
    return sum(state.touched.get(name, False) for state in states)


def _hand_path_m(states: States) -> float:
    length_m = 0.0
    for before, after in pairwise(states):
        # Not sum(), which rounds in another way from Python 3.12 on.
        length_m += math.dist(before.ee_position, after.ee_position)
    return length_m


def _object_displacement_m(episode: Any, states: States) -> float:
    if not states:
        return 0.0
    start = initial_position(episode) or states[0].object_position
    for state in states:
        start = state.initial_object_position or start
    return math.dist(start, states[-1].object_position)


def _final_distance_m(episode: Any, states: States) -> float:
    criteria, start = criteria_of(episode), initial_position(episode)
    if states:
        distance_m = target_distance_m(states[-1], criteria)
        return distance_m if math.isfinite(distance_m) else math.nan
    return math.nan if start is None or criteria.target is None else math.dist(start, criteria.target)


_share = partial(Metric, unit="%", digits=0, better="up", is_score=True)
_count = partial(Metric, digits=1, better="down")

METRICS = (
    _share(
        *("success", _of_states(lambda states: bool(states) and states[-1].success), "SR"),
        "At the end grasped, lifted and, where there is a target, placed, let go and at rest.",
        is_rate=True,
        in_table=True,
    ),
    _share(
        *("success_any_step", _of_episode(_success_any_step), "Any"),
        "Grasped, lifted and at the target in any step.",
        is_rate=True,
        in_table=True,
    ),
    _share(
        *("completion_rate", _of_episode(_completion_rate), "Done"),
        "How far through reach, grasp, lift and place.",
        in_table=True,
    ),
    Metric(
        *("trajectory_similarity", _similarity("qpos"), "Simil", "Joint path and reference, 1 is equal."),
        better="up",
        in_table=True,
    ),
    Metric(
        *("ee_similarity", _similarity("ee_pose"), "Hand simil"),
        "Poses of the hand and reference, 1 is equal.",
        better="up",
    ),
    *(
        _share(name, _of_episode(partial(_stage, name)), name.capitalize(), text, is_rate=True)
        for name, text in (
            ("reached", "The hand ever was at the object."),
            ("grasped", "The object ever was in the closed gripper."),
            ("lifted", "The object ever was as high as it should be lifted."),
            ("placed", "The object ever was at its target."),
        )
    ),
    Metric(
        *("time_to_success_s", _of_states(_time_to_success_s), "Time"),
        "Simulated time until the task was done.",
        unit="s",
        digits=1,
        better="down",
    ),
    _count("drops", _of_states(_drops), "Drops", "How often the object was lost and fell.", in_table=True),
    *(
        _count(name, _of_states(partial(_touches, touched)), label, text)
        for name, touched, label, text in (
            ("table_collisions", "furniture", "Table bumps", "Steps in which the robot touched furniture."),
            ("object_collisions", "objects", "Object bumps", "Steps in which it touched another object."),
            ("self_collisions", "self", "Self bumps", "Steps in which it touched itself."),
        )
    ),
    Metric("hand_path_m", _of_states(_hand_path_m), "Hand path", "Length of the hand's path.", "m"),
    Metric(
        *("clamped_commands", _of_states(lambda states: sum(bool(s.clamped) for s in states)), "Clamped"),
        "Steps with a command beyond a joint's limits.",
        digits=1,
    ),
    Metric(
        *("object_displacement_m", _of_episode(_object_displacement_m), "Moved"),
        *("How far the object is from where it stood.", "m"),
    ),
    Metric(
        *("final_distance_m", _of_episode(_final_distance_m), "Off target"),
        "How far the object is from its target.",
        unit="cm",
        digits=1,
        better="down",
    ),
    Metric("steps", _of_states(len), "Steps", "Actions of the agent.", digits=0, in_table=True),
)
