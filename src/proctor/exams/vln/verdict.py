"""Why an episode ended as it did: one class, the step where it went wrong, and a sentence for people.

The first class that applies is taken; of looping, getting stuck and a wrong first turn, the
one that began first. `docs/report.md` lists and defines them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import distances_along, wrap_angle
from proctor.core.types import Action, Array
from proctor.exams.fault_words import counted, fault_verdict
from proctor.exams.results import EpisodeResult, GoalDistance, Verdict, distance_label
from proctor.exams.vln.episode import Episode

MOVED_M = 0.2  # a robot that never got this far from its start has not moved
STUCK_REACH_M, STUCK_STEPS, STUCK_SHARE = 0.5, 10, 0.5
"""Stuck: for its last 10 steps or more within 0.5 m, and half of its attempts to go forward were bumps."""
LOOP_GAP_M, LOOP_NEAR_M, LOOP_ANGLE_RAD, LOOP_AGAIN_M = 2.0, 0.4, math.radians(45), 2.0
"""Looped: 2 m or more driven within 0.4 m and 45° of where it had driven at least 2 m of path earlier."""
RETREAT_M = 0.5
"""An agent that stopped this much further from the goal than it had been did not just stop early."""

Direction = Literal["left", "right", "ahead", "back"]

OFF_PATH_M = 1.0  # further from the reference path than this is off it
LEAVING_M = 0.3  # up to here an agent that ends off the path had still been on it
LOOK_M = 0.75  # over how much of a path its direction is measured
TURN_RAD, BACK_RAD = math.radians(35), math.radians(150)
"""Less than the one is straight ahead, more than the other is back."""


class _Drive:
    """A failed episode, and what several classes of failures ask of it."""

    def __init__(self, episode: Episode | None, result: EpisodeResult) -> None:
        self.episode = episode
        self.result = result
        self.positions = np.array([(point.x, point.y) for point in result.trajectory])
        self.last = len(result.trajectory) - 1
        self.end = goal_distance(result)
        self.stopped = bool(result.actions) and result.actions[-1] == Action.STOP

    @cached_property
    def reference(self) -> Array | None:
        """The reference path as (N, 2); None if there is none, or one without a length."""
        if self.episode is None or not self.episode.reference_path or len(self.episode.reference_path) < 2:
            return None
        points = np.array([(point.x, point.y) for point in self.episode.reference_path])
        return points if np.ptp(points, axis=0).max() > 0 else None

    @cached_property
    def departure(self) -> PathDeparture | None:
        """Where it left the reference path for good."""
        if self.reference is None or not self.result.headings:
            return None
        return departure_from(self.reference, self.positions, self.result.headings)

    @cached_property
    def goal_distances_m(self) -> Array | None:
        """How far the goal was at each point, by the distance that the episode was judged by."""
        from proctor.exams.vln.goal_distances import goal_distances  # noqa: PLC0415  (maps need packages that agents do not)

        return None if self.episode is None else goal_distances(self.result, self.episode)


def verdict_of(episode: Episode | None, result: EpisodeResult) -> Verdict:
    """Find out why an episode ended as it did. The episode is None if its dataset is gone."""
    last = len(result.trajectory) - 1
    if result.error is not None:
        return fault_verdict(result.error, last)
    if result.success:
        bumps = f", with {counted(result.collision_count, 'bump')}" if result.collision_count else ""
        return Verdict("success", last, f"Stopped {goal_distance(result)}{bumps}.")
    drive = _Drive(episode, result)
    if float(np.linalg.norm(drive.positions - drive.positions[0], axis=1).max()) < MOVED_M:
        return Verdict("never_moved", last, _unmoved_sentence(drive))
    if result.metrics.get("oracle_success") == 1.0:
        return _passed(drive)
    found = [mistake for mistake in (_wrong_first_turn(drive), _loop(drive), _stuck(drive)) if mistake]
    return min(found, key=lambda mistake: mistake.step) if found else _ending(drive)


def goal_distance(result: EpisodeResult) -> GoalDistance:
    """Return how far from the goal it ended: the navigation error, or else the straight line."""
    straight_m = result.final_distance_to_goal
    error_m = result.metrics.get("navigation_error", straight_m)
    # Where the map shows no path from the last position, the navigation error is the straight line.
    is_straight = error_m == straight_m and not result.success
    return GoalDistance(error_m, distance_label("euclidean" if is_straight else result.distance))


def _unmoved_sentence(drive: _Drive) -> str:
    result = drive.result
    forward = result.actions.count(Action.FORWARD)
    end = "until its steps ran out" if result.failure_reason == "timeout" else "and never said STOP"
    end = "then said STOP" if drive.stopped else end
    if not result.actions or (len(result.actions) == 1 and drive.stopped):
        return "Said STOP at the start." if result.actions else "Did nothing."
    if forward == 0:
        return f"Never went forward: only turned, {end}."
    return f"Never left the start: {counted(forward, 'attempt')} to go forward led nowhere, {end}."


def _passed(drive: _Drive) -> Verdict:
    distances_m, end = drive.goal_distances_m, drive.end
    if distances_m is None:
        return Verdict("passed_goal", drive.last, f"Was at the goal but did not stop; ended {end}.")
    nearest = int(distances_m.argmin())
    near_m = min(float(distances_m[nearest]), end.metres)
    if nearest == drive.last or end.metres <= near_m + 0.05:
        when = "when the steps ran out" if drive.result.failure_reason == "timeout" else "at the end"
        text = f"Was {end} {when}, within the threshold, but never said STOP."
        return Verdict("passed_goal", drive.last, text)
    verb = "stopped" if drive.stopped else "ended"
    text = f"Came within {near_m:.1f} m of the goal after step {nearest} but did not stop there"
    return Verdict("passed_goal", nearest, f"{text}; {verb} {end}.")


def _wrong_first_turn(drive: _Drive) -> Verdict | None:
    departure = drive.departure
    if departure is None or not departure.at_first_turn or departure.took == departure.wanted:
        return None
    text = f"{_turn_clause(departure)}; ended {drive.end}."
    return Verdict("wrong_first_turn", departure.step, text)


def _turn_clause(departure: PathDeparture) -> str:
    words = {
        "left": ("Turned left", "goes left"),
        "right": ("Turned right", "goes right"),
        "ahead": ("Went straight on", "goes straight on"),
        "back": ("Turned back", "turns back"),
    }
    (took, _), (_, goes) = words[departure.took], words[departure.wanted]
    return f"{took} at step {max(departure.step, 1)} where the reference {goes}"


def _loop(drive: _Drive) -> Verdict | None:
    positions = drive.positions
    moves_m = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    along_m = distances_along(positions)
    yaws = np.asarray(drive.result.headings, dtype=float)[: len(positions)]
    if len(yaws) != len(positions) or along_m[-1] < LOOP_GAP_M:
        return None
    driven = np.flatnonzero(moves_m > 0.01) + 1  # turning on the spot covers no ground
    again = [_was_here(step, driven, positions, yaws, along_m) for step in driven.tolist()]
    repeated = driven[np.flatnonzero(again)]
    again_m = float(moves_m[repeated - 1].sum())
    if again_m < LOOP_AGAIN_M:
        return None
    first = int(repeated[0])
    text = f"Went in circles: from step {first} on it drove {again_m:.1f} m over ground it had covered before"
    return Verdict("looped", first, f"{text}; ended {drive.end}.")


def _was_here(step: int, driven: NDArray[np.intp], positions: Array, yaws: Array, along_m: Array) -> bool:
    """Tell whether the robot had been here LOOP_GAP_M or more of its path ago, with about this heading."""
    before = driven[: np.searchsorted(along_m[driven], along_m[step] - LOOP_GAP_M, side="right")]
    near = before[np.linalg.norm(positions[before] - positions[step], axis=1) <= LOOP_NEAR_M]
    turned = np.abs((yaws[near] - yaws[step] + math.pi) % math.tau - math.pi)
    return bool((turned <= LOOP_ANGLE_RAD).any())


def _stuck(drive: _Drive) -> Verdict | None:
    result, positions = drive.result, drive.positions
    last = drive.last - drive.stopped  # the last point before a STOP
    near = np.linalg.norm(positions[: last + 1] - positions[last], axis=1) <= STUCK_REACH_M
    begin = last + 1 - int(np.argmin(near[::-1])) if not near.all() else 0
    attempts = [k for k in range(begin + 1, last + 1) if result.actions[k - 1] == Action.FORWARD]
    bumps = sorted(set(result.collision_steps).intersection(attempts))
    if last - begin < STUCK_STEPS or not bumps or len(bumps) < STUCK_SHARE * len(attempts):
        return None
    tries = f"{len(bumps)} of its last {counted(len(attempts), 'attempt')} to go forward"
    text = f"Got stuck at step {bumps[0]}: {tries} were bumps"
    return Verdict("stuck", bumps[0], f"{text}; ended {drive.end}.")


def _ending(drive: _Drive) -> Verdict:
    """Name the episode by how it ended, for want of anything that went wrong before."""
    result, last, end = drive.result, drive.last, drive.end
    if result.failure_reason == "collision" and last in result.collision_steps:
        text = f"Bumped into something at step {last}, which ended the episode; it was {end}."
        return Verdict("collided", last, text)
    if not drive.stopped:
        kind = "timeout" if result.failure_reason == "timeout" else "no_stop"
        how = "ran out of steps after" if kind == "timeout" else "ended without STOP after step"
        text = f"{how} {last}, {end}."
    else:
        remark = _progress_remark(drive)
        if remark is not None:
            return Verdict("stopped_early", last, f"Stopped on the way{remark}, {end}.")
        kind, text = "stopped_far", f"stopped {end}."
    step, clause = _lost(drive)
    return Verdict(kind, step, f"{clause}; {text}" if clause else f"{text[0].upper()}{text[1:]}")


def _lost(drive: _Drive) -> tuple[int, str]:
    """Return the step from which on things got worse, and the clause about it."""
    departure = drive.departure
    if departure is not None:
        if departure.took != departure.wanted:
            return departure.step, _turn_clause(departure)
        return departure.step, f"Left the reference path at step {max(departure.step, 1)}"
    distances_m = drive.goal_distances_m
    if distances_m is None or drive.end.metres - float(distances_m.min()) <= RETREAT_M:
        return drive.last, ""
    nearest = int(distances_m.argmin())
    text = f"Was {distances_m[nearest]:.1f} m from the goal after step {nearest} and went away from it"
    return nearest, text


def _progress_remark(drive: _Drive) -> str | None:
    """Return a remark on how far an agent got that stopped on its path; None if it stopped elsewhere."""
    distances_m, reference = drive.goal_distances_m, drive.reference
    retreat_m = 0.0 if distances_m is None else float(distances_m[-1] - distances_m.min())
    if retreat_m > RETREAT_M:
        return None
    if reference is None:
        gained = distances_m is not None and distances_m[0] - distances_m[-1] > RETREAT_M
        return "" if gained else None
    off_m, along_m, length_m = nearest_on_path(reference, drive.positions[-1:])
    return f" after {along_m[0]:.1f} of {length_m:.1f} m" if off_m[0] <= OFF_PATH_M else None


class PathDeparture(NamedTuple):
    """Where a robot left the reference path and did not come back."""

    step: int  # the step of the turn that led away, or the last one on the path
    took: Direction
    wanted: Direction  # where the reference goes on from there
    at_first_turn: bool  # whether it happened no later than at the first turn of the reference


def nearest_on_path(path: Array, points: Array) -> tuple[Array, Array, float]:
    """Return how far (N, 2) points are off a path, how far along it they are, and its length; metres."""
    starts, segments = path[:-1], np.diff(path, axis=0)
    lengths_m = np.linalg.norm(segments, axis=1)
    before_m = np.concatenate([[0.0], np.cumsum(lengths_m)])
    offsets = points[:, None] - starts  # (N, segments, 2)
    shares = (offsets * segments).sum(axis=2) / np.maximum(lengths_m**2, 1e-12)
    shares = np.clip(shares, 0.0, 1.0)
    off_m = np.linalg.norm(offsets - shares[..., None] * segments, axis=2)
    nearest = off_m.argmin(axis=1)
    rows = np.arange(len(points))
    return (
        off_m[rows, nearest],
        before_m[nearest] + shares[rows, nearest] * lengths_m[nearest],
        float(before_m[-1]),
    )


def departure_from(path: Array, positions: Array, headings: Sequence[float]) -> PathDeparture | None:
    """Find where a robot left a path for good; None if it ended on the path or never was on it."""
    off_m, along_m, length_m = nearest_on_path(path, positions)
    on = np.flatnonzero(off_m <= OFF_PATH_M)
    if not len(on) or on[-1] == len(positions) - 1:
        return None
    close = np.flatnonzero(off_m[: on[-1] + 1] <= LEAVING_M)
    step = int(close[-1]) if len(close) else int(on[-1])
    at_m = float(along_m[step])
    start_yaw = headings[0]
    came = start_yaw if at_m < LOOK_M / 2 else _direction(path, at_m - LOOK_M, at_m)
    wanted = _turn_of(_direction(path, at_m, at_m + LOOK_M) - came) if at_m < length_m - 0.05 else "ahead"
    gone_m = np.linalg.norm(positions[step:] - positions[step], axis=1)
    ahead = positions[step + int(np.argmax(gone_m >= min(LOOK_M, gone_m.max())))] - positions[step]
    took = _turn_of(math.atan2(ahead[1], ahead[0]) - came)
    return PathDeparture(
        step=step if took == "ahead" else _turn_before(step, positions, headings),
        took=took,
        wanted=wanted,
        at_first_turn=at_m <= _first_turn_m(path, length_m, start_yaw) + LOOK_M,
    )


def _turn_before(step: int, positions: Array, headings: Sequence[float]) -> int:
    """Return the first of the turns that were made about where the robot stood after this step."""
    first = step
    for index in range(min(step, len(headings) - 1), 0, -1):
        if np.linalg.norm(positions[index] - positions[step]) > 2 * LEAVING_M:
            break
        if abs(wrap_angle(headings[index] - headings[index - 1])) > 0.05:
            first = index
    return first


def _first_turn_m(path: Array, length_m: float, start_yaw: float) -> float:
    """Return how far along a path its first turn is; its length if it goes straight on."""
    if _turn_of(_direction(path, 0.0, LOOK_M) - start_yaw) != "ahead":
        return 0.0
    for at_m in np.arange(LOOK_M, length_m - LOOK_M / 2, 0.1):
        came, goes = _direction(path, at_m - LOOK_M, at_m), _direction(path, at_m, at_m + LOOK_M)
        if _turn_of(goes - came) != "ahead":
            return float(at_m)
    return length_m


def _direction(path: Array, from_m: float, to_m: float) -> float:
    """Return the direction of the chord between two points of a path, as an angle in the world."""
    along_m = distances_along(path)
    ends = np.clip([from_m, to_m], 0.0, along_m[-1])
    (x0, x1), (y0, y1) = (np.interp(ends, along_m, path[:, axis]) for axis in (0, 1))
    return math.atan2(y1 - y0, x1 - x0)


def _turn_of(angle: float) -> Direction:
    angle = wrap_angle(angle)
    if abs(angle) < TURN_RAD:
        return "ahead"
    if abs(angle) > BACK_RAD:
        return "back"
    return "left" if angle > 0 else "right"
