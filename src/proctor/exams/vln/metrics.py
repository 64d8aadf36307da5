"""Metrics of vision-and-language navigation, as VLN-CE computes them, as pure functions of a trace.

They are finite on degenerate input. A distance may be a path search, so it is asked for only where it can
matter. docs/metrics.md has the formulas.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from proctor.core.geometry import distance as straight_m
from proctor.core.geometry import path_length
from proctor.core.types import Action, Array, Vector3
from proctor.exams.driving import DrivingTrace
from proctor.exams.dtw import IncrementalDtw
from proctor.exams.exam import Metric
from proctor.exams.path_distance import PathDistance
from proctor.exams.vln.episode import Episode

DEFINITION = "vln-ce"
"""Whose definitions these are. Results carry it: elsewhere the same names mean other things."""


Positions = tuple[Vector3, ...]


def success(
    episode: Episode, trace: DrivingTrace, distance: PathDistance, threshold_m: float | None = None
) -> float:
    """Return 1 for a STOP nearer to the goal than `threshold_m`, by default the episode's, else 0."""
    if not trace.actions or trace.actions[-1] != Action.STOP:
        return 0.0
    near_m = distance.success_threshold_m if threshold_m is None else threshold_m
    return float(distance(trace.states[-1].position, episode.goal) < near_m)


def oracle_success(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return 1 if any position, the start included, was nearer to the goal than the threshold, else 0."""
    near_m = distance.success_threshold_m
    # No path is shorter than the straight line, so most positions need no path search.
    candidates = dict.fromkeys(p for p in _positions(trace) if straight_m(p, episode.goal) < near_m)
    return float(any(distance(position, episode.goal) < near_m for position in candidates))


def navigation_error(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return the distance from the last position to the goal, in metres; Euclidean where there is no path."""
    last = trace.states[-1].position
    path_m = distance(last, episode.goal)
    return path_m if math.isfinite(path_m) else straight_m(last, episode.goal)


def spl(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return success weighted by path length; if the shortest has none, not to move scores 1."""
    if not success(episode, trace, distance):
        return 0.0
    shortest_m = distance.shortest_path_m
    longer_m = max(shortest_m, _length_m(_positions(trace)))
    return shortest_m / longer_m if longer_m > 0 else 1.0


def ndtw(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return the DTW distance to the reference path normalised to (0, 1]; NaN without a reference path."""
    if not episode.reference_path:
        return math.nan
    return _ndtw(_positions(trace), tuple(episode.reference_path), distance.success_threshold_m)


def cls(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return coverage weighted by length score; NaN without a reference path."""
    if not episode.reference_path:
        return math.nan
    positions, reference = _positions(trace), _rows(tuple(episode.reference_path))
    return cls_score(
        _distances(positions, reference).min(axis=0),
        travelled_m=_length_m(positions),
        reference_m=path_length(reference),
        threshold_m=distance.success_threshold_m,
    )


def collisions(episode: Episode, trace: DrivingTrace, distance: PathDistance) -> float:
    """Return in how many steps the robot collided."""
    return float(sum(state.collision for state in trace.after_steps()))


def cls_score(nearest_m: Array, *, travelled_m: float, reference_m: float, threshold_m: float) -> float:
    """Return coverage weighted by length score; the coverage alone if neither path has a length.

    `nearest_m` is how near the agent came to each point of the reference. At `threshold_m` coverage has
    fallen to 1/e.
    """
    coverage = float(np.exp(-nearest_m / threshold_m).mean())
    expected_m = coverage * reference_m
    denominator_m = expected_m + abs(expected_m - travelled_m)
    length_score = expected_m / denominator_m if denominator_m > 0 else 1.0
    return coverage * length_score


def normalised_dtw(dtw_m: float, *, reference_points: int, threshold_m: float) -> float:
    """Return a DTW distance normalised to (0, 1], 1 for the reference itself."""
    return math.exp(-dtw_m / (reference_points * threshold_m))


@lru_cache(maxsize=1)  # asked for twice in a row: SDTW is a multiple of nDTW
def _ndtw(positions: Positions, reference: Positions, threshold_m: float) -> float:
    # Turning on the spot is not a movement: a position that repeats counts once.
    moved = positions[:1] + tuple(b for a, b in pairwise(positions) if a != b)
    dtw = IncrementalDtw(len(reference))
    for costs in _distances(moved, _rows(reference)):
        dtw.add(costs)
    return normalised_dtw(dtw.distance, reference_points=len(reference), threshold_m=threshold_m)


def _positions(trace: DrivingTrace) -> Positions:
    return tuple(state.position for state in trace.states)


def _length_m(positions: Positions) -> float:
    length_m = 0.0
    for a, b in pairwise(positions):  # sum() of floats rounds otherwise from Python 3.12 on
        length_m += straight_m(a, b)
    return length_m


def _rows(points: Positions) -> Array:
    return np.array([(point.x, point.y, point.z) for point in points], dtype=float)


def _distances(positions: Positions, points: Array) -> Array:
    """Return the distances of T positions from N points as (T, N)."""
    return np.asarray(np.linalg.norm(points - _rows(positions)[:, None], axis=2))


_score = partial(Metric, better="up", is_score=True)
_rate = partial(_score, unit="%", digits=0, is_rate=True, in_table=True)
_count = partial(Metric, digits=1, better="down")

METRICS = (
    _rate("success", success, "SR", "Stopped nearer to the goal than the episode's threshold."),
    _rate("success_at_0.2m", partial(success, threshold_m=0.2), "0.2 m", "Stopped within 0.2 m of the goal."),
    _score("spl", spl, "SPL", "Success weighted by path length.", in_table=True),
    _score("ndtw", ndtw, "nDTW", "How well the path follows the reference path.", in_table=True),
    _rate("oracle_success", oracle_success, "OSR", "Was ever nearer to the goal than the threshold."),
    _count(
        *("navigation_error", navigation_error, "NE", "Distance from the last position to the goal."),
        unit="m",
        in_table=True,
    ),
    _count("collisions", collisions, "Bumps", "Steps in which the robot collided.", in_table=True),
    _score("sdtw", lambda *given: success(*given) * ndtw(*given), "SDTW", "Success times nDTW."),
    _score("cls", cls, "CLS", "Coverage of the reference path weighted by length."),
    Metric(
        *("path_length", lambda episode, trace, distance: _length_m(_positions(trace)), "Path"),
        *("Length of the path that was driven.", "m", 1),
    ),
    Metric("steps", lambda e, trace, d: float(trace.steps), "Steps", "Actions, STOP included.", digits=0),
    _count(
        *("collision_rate", lambda e, trace, d: collisions(e, trace, d) / max(trace.steps, 1), "Bump rate"),
        "Share of steps with a collision.",
        unit="%",
    ),
)
"""All facts about each metric; tables, reports and comparisons ask here."""
