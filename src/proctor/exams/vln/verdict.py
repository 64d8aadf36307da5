"""Why an episode ended as it did: one class, the step where it went wrong, and a sentence for people.

Of the classes below the first that applies is taken; of looping, getting stuck and a wrong first turn, the
one that began first. `docs/report.md` has the same definitions for readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import distances_along
from proctor.core.types import Action, Array
from proctor.exams.distance_labels import GoalDistance
from proctor.exams.fault_words import fault_class
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.reference import OFF_PATH_M, Departure, departure_from, nearest_on_path

Kind = Literal[
    "success",
    "never_moved",
    "passed_goal",
    "wrong_first_turn",
    "looped",
    "stuck",
    "collided",
    "stopped_early",
    "stopped_far",
    "timeout",
    "no_stop",
    "agent_fault",
    "evaluator_fault",
    "unavailable",
    "unknown_fault",
]

MOVED_M = 0.2
"""A robot that never got this far from its start has not moved."""
STUCK_REACH_M, STUCK_STEPS, STUCK_SHARE = 0.5, 10, 0.5
"""Stuck: for its last 10 steps or more within 0.5 m, and half of its attempts to go forward were bumps."""
LOOP_GAP_M, LOOP_NEAR_M, LOOP_ANGLE_RAD, LOOP_AGAIN_M = 2.0, 0.4, math.radians(45), 2.0
"""Looped: 2 m or more driven within 0.4 m and 45° of where it had driven at least 2 m of way earlier."""
RETREAT_M = 0.5
"""An agent that stopped this much further from the goal than it had been did not just stop early."""


class Diagnosis(NamedTuple):
    """What became of an episode."""

    kind: Kind
    step: int
    """Where it went wrong, as a number of steps done: the index into the trajectory."""
    sentence: str


def diagnose(
    result: EpisodeResult,
    episode: Episode | None,
    *,
    goal_distances_m: Sequence[float] | Array | None = None,
) -> Diagnosis:
    """Find out why an episode ended as it did.

    Args:
        result: Its record.
        episode: What was asked; None if the dataset is gone.
        goal_distances_m: How far the goal was at each point of the trajectory, by the distance that the
            episode was judged by; None if that is not known.
    """
    last = len(result.trajectory) - 1
    if result.error is not None:
        return _fault(result.error, last)
    end = result.goal_distance
    if result.success:
        bumps = f", with {_count(result.collision_count, 'bump')}" if result.collision_count else ""
        return Diagnosis("success", last, f"Stopped {end}{bumps}.")
    positions = np.array([(point.x, point.y) for point in result.trajectory])
    if float(np.linalg.norm(positions - positions[0], axis=1).max()) < MOVED_M:
        return Diagnosis("never_moved", last, _unmoved_sentence(result))
    distances_m = None if goal_distances_m is None else np.asarray(goal_distances_m, dtype=float)
    if result.metrics.get("oracle_success") == 1.0:
        return _passed(result, distances_m, last, end)
    reference = _reference_of(episode)
    departure = None
    if reference is not None and result.headings:
        departure = departure_from(reference, positions, result.headings)
    candidates = [
        _wrong_first_turn(departure, end),
        _loop(positions, result.headings, end),
        _stuck(result, positions, end),
    ]
    found = [candidate for candidate in candidates if candidate is not None]
    if found:
        return min(found, key=lambda diagnosis: diagnosis.step)
    return _ending(result, episode, positions, distances_m, departure)


def _fault(fault: Fault, last: int) -> Diagnosis:
    kind, text = fault_class(fault, last)
    return Diagnosis(kind, last, text)


def _unmoved_sentence(result: EpisodeResult) -> str:
    forward = result.actions.count(Action.FORWARD)
    end = "until its steps ran out" if result.failure_reason == "timeout" else "and never said STOP"
    end = "then said STOP" if _stopped(result) else end
    if not result.actions or (len(result.actions) == 1 and _stopped(result)):
        return "Said STOP at the start." if result.actions else "Did nothing."
    if forward == 0:
        return f"Never went forward: only turned, {end}."
    return f"Never left the start: {_count(forward, 'attempt')} to go forward led nowhere, {end}."


def _passed(result: EpisodeResult, distances_m: Array | None, last: int, end: GoalDistance) -> Diagnosis:
    if distances_m is None:
        return Diagnosis("passed_goal", last, f"Was at the goal but did not stop; ended {end}.")
    nearest = int(distances_m.argmin())
    near_m = min(float(distances_m[nearest]), end.metres)
    if nearest == last or end.metres <= near_m + 0.05:
        when = "when the steps ran out" if result.failure_reason == "timeout" else "at the end"
        return Diagnosis("passed_goal", last, f"Was {end} {when}, within the threshold, but never said STOP.")
    verb = "stopped" if _stopped(result) else "ended"
    text = f"Came within {near_m:.1f} m of the goal after step {nearest} but did not stop there"
    return Diagnosis("passed_goal", nearest, f"{text}; {verb} {end}.")


def _wrong_first_turn(departure: Departure | None, end: GoalDistance) -> Diagnosis | None:
    if departure is None or not departure.at_first_turn or departure.took == departure.wanted:
        return None
    text = f"{_turn_clause(departure)}; ended {end}."
    return Diagnosis("wrong_first_turn", departure.step, text)


def _turn_clause(departure: Departure) -> str:
    took = {
        "left": "Turned left",
        "right": "Turned right",
        "ahead": "Went straight on",
        "back": "Turned back",
    }
    goes = {"left": "goes left", "right": "goes right", "ahead": "goes straight on", "back": "turns back"}
    step = max(departure.step, 1)
    return f"{took[departure.took]} at step {step} where the reference {goes[departure.wanted]}"


def _loop(positions: Array, headings: Sequence[float], end: GoalDistance) -> Diagnosis | None:
    moves_m = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    way_m = distances_along(positions)
    yaws = np.asarray(headings, dtype=float)[: len(positions)]
    if len(yaws) != len(positions) or way_m[-1] < LOOP_GAP_M:
        return None
    driven = np.flatnonzero(moves_m > 0.01) + 1  # turning on the spot covers no ground
    again = [_was_here(step, driven, positions, yaws, way_m) for step in driven.tolist()]
    repeated = driven[np.flatnonzero(again)]
    again_m = float(moves_m[repeated - 1].sum())
    if again_m < LOOP_AGAIN_M:
        return None
    first = int(repeated[0])
    text = f"Went in circles: from step {first} on it drove {again_m:.1f} m over ground it had covered before"
    return Diagnosis("looped", first, f"{text}; ended {end}.")


def _was_here(step: int, driven: NDArray[np.intp], positions: Array, yaws: Array, way_m: Array) -> bool:
    """Tell whether the robot had been here at least LOOP_GAP_M of way ago, looking the same way."""
    before = driven[: np.searchsorted(way_m[driven], way_m[step] - LOOP_GAP_M, side="right")]
    near = before[np.linalg.norm(positions[before] - positions[step], axis=1) <= LOOP_NEAR_M]
    turned = np.abs((yaws[near] - yaws[step] + math.pi) % math.tau - math.pi)
    return bool((turned <= LOOP_ANGLE_RAD).any())


def _stuck(result: EpisodeResult, positions: Array, end: GoalDistance) -> Diagnosis | None:
    last = len(positions) - (2 if _stopped(result) else 1)  # the last point before a STOP
    near = np.linalg.norm(positions[: last + 1] - positions[last], axis=1) <= STUCK_REACH_M
    begin = last + 1 - int(np.argmin(near[::-1])) if not near.all() else 0
    attempts = [k for k in range(begin + 1, last + 1) if result.actions[k - 1] == Action.FORWARD]
    bumps = sorted(set(result.collision_steps).intersection(attempts))
    if last - begin < STUCK_STEPS or not bumps or len(bumps) < STUCK_SHARE * len(attempts):
        return None
    tries = f"{len(bumps)} of its last {_count(len(attempts), 'attempt')} to go forward"
    text = f"Got stuck at step {bumps[0]}: {tries} were bumps"
    return Diagnosis("stuck", bumps[0], f"{text}; ended {end}.")


def _ending(
    result: EpisodeResult,
    episode: Episode | None,
    positions: Array,
    distances_m: Array | None,
    departure: Departure | None,
) -> Diagnosis:
    """Name the episode by how it ended, for want of anything that went wrong before."""
    last, end = len(positions) - 1, result.goal_distance
    step, clause = _lost(departure, distances_m, end.metres, last)
    if result.failure_reason == "collision" and last in result.collision_steps:
        text = f"Bumped into something at step {last}, which ended the episode; it was {end}."
        return Diagnosis("collided", last, text)
    if not _stopped(result):
        kind: Kind = "timeout" if result.failure_reason == "timeout" else "no_stop"
        how = "ran out of steps after" if kind == "timeout" else "ended without STOP after step"
        text = f"{how} {last}, {end}."
    else:
        on_the_way = _on_the_way(episode, positions, distances_m)
        if on_the_way is not None:
            return Diagnosis("stopped_early", last, f"Stopped on the way{on_the_way}, {end}.")
        kind, text = "stopped_far", f"stopped {end}."
    return Diagnosis(kind, step, f"{clause}; {text}" if clause else f"{text[0].upper()}{text[1:]}")


def _lost(
    departure: Departure | None, distances_m: Array | None, error_m: float, last: int
) -> tuple[int, str]:
    """Return the step from which on things got worse, and the clause about it."""
    if departure is not None:
        if departure.took != departure.wanted:
            return departure.step, _turn_clause(departure)
        return departure.step, f"Left the reference path at step {max(departure.step, 1)}"
    if distances_m is not None and error_m - float(distances_m.min()) > RETREAT_M:
        nearest = int(distances_m.argmin())
        return (
            nearest,
            f"Was {distances_m[nearest]:.1f} m from the goal after step {nearest} and went away from it",
        )
    return last, ""


def _on_the_way(episode: Episode | None, positions: Array, distances_m: Array | None) -> str | None:
    """Return a remark on how far an agent got that stopped on its way; None if it stopped elsewhere."""
    retreat_m = 0.0 if distances_m is None else float(distances_m[-1] - distances_m.min())
    if retreat_m > RETREAT_M:
        return None
    reference = _reference_of(episode)
    if reference is None:
        gained = distances_m is not None and distances_m[0] - distances_m[-1] > RETREAT_M
        return "" if gained else None
    off_m, along_m, length_m = nearest_on_path(reference, positions[-1:])
    return f" after {along_m[0]:.1f} of {length_m:.1f} m" if off_m[0] <= OFF_PATH_M else None


def _reference_of(episode: Episode | None) -> Array | None:
    if episode is None or not episode.reference_path or len(episode.reference_path) < 2:
        return None
    points = np.array([(point.x, point.y) for point in episode.reference_path])
    return points if np.ptp(points, axis=0).max() > 0 else None


def _stopped(result: EpisodeResult) -> bool:
    return bool(result.actions) and result.actions[-1] == Action.STOP


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
