"""Metrics of vision-and-language navigation, as VLN-CE computes them.

The arithmetic is in pure functions that are finite on degenerate input; the classes feed them from
an episode. A task's distance may be a path search, so they ask for it only when it can matter.
docs/metrics.md has the formulas.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.core.geometry import distance, path_length
from proctor.core.interfaces import Metric, MetricTask
from proctor.core.types import Action, Array, Info, Vector3
from proctor.exams.dtw import IncrementalDtw
from proctor.exams.vln.episode import Episode

DEFINITION = "vln-ce"
"""Whose definitions these are. Results carry it: elsewhere the same names mean other things."""

STRICT_THRESHOLD_M = 0.2


def spl(*, success: bool, shortest_m: float, travelled_m: float) -> float:
    """Return success weighted by path length.

    Where the shortest path has no length, only an agent that did not move scores 1.
    """
    if not success:
        return 0.0
    longer_m = max(shortest_m, travelled_m)
    return shortest_m / longer_m if longer_m > 0 else 1.0


def ndtw(dtw_m: float, *, reference_points: int, threshold_m: float) -> float:
    """Return the DTW distance normalised to (0, 1], 1 for the reference itself."""
    return math.exp(-dtw_m / (reference_points * threshold_m))


def cls_score(nearest_m: Array, *, travelled_m: float, reference_m: float, threshold_m: float) -> float:
    """Return coverage weighted by length score.

    Where neither the reference nor the agent's path has a length, it is the coverage alone.

    Args:
        nearest_m: For each point of the reference, how near the agent came to it.
        travelled_m: Length of the agent's path.
        reference_m: Length of the reference.
        threshold_m: Distance at which coverage has fallen to 1/e.
    """
    coverage = float(np.exp(-nearest_m / threshold_m).mean())
    expected_m = coverage * reference_m
    denominator_m = expected_m + abs(expected_m - travelled_m)
    length_score = expected_m / denominator_m if denominator_m > 0 else 1.0
    return coverage * length_score


class NavigationError(Metric):
    """Distance from the last position to the goal, in metres; Euclidean where there is no way."""

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at the start position."""
        self._task = task
        self._goal = episode.goal
        self._position = episode.start_position

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._position = state["position"]

    def get_metric(self) -> float:
        """Return the distance in metres."""
        way_m = self._task.distance_m(self._position, self._goal)
        return way_m if math.isfinite(way_m) else distance(self._position, self._goal)


class Success(Metric):
    """Whether the agent said STOP nearer to the goal than the threshold.

    Args:
        threshold_m: Metres; the task's threshold for the episode if missing.
    """

    is_rate = True

    def __init__(self, threshold_m: float | None = None) -> None:
        self._fixed_threshold_m = threshold_m

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin without a STOP."""
        self._task = task
        self._goal = episode.goal
        self._stopped_at: Vector3 | None = None
        fixed_m = self._fixed_threshold_m
        self._threshold_m = task.success_threshold_m(episode) if fixed_m is None else fixed_m

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._stopped_at = state["position"] if state["action"] == Action.STOP else None

    def get_metric(self) -> float:
        """Return 1 or 0."""
        if self._stopped_at is None:
            return 0.0
        return float(self._task.distance_m(self._stopped_at, self._goal) < self._threshold_m)


class StrictSuccess(Metric):
    """Success within 0.2 m, whatever the episode's threshold."""

    is_rate = True

    def __init__(self) -> None:
        self._success = Success(threshold_m=STRICT_THRESHOLD_M)

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin without a STOP."""
        self._success.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._success.update(state)

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return self._success.get_metric()


class OracleSuccess(Metric):
    """Whether the agent was ever nearer to the goal than the threshold, the start included."""

    is_rate = True

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin with the start position."""
        self._task = task
        self._goal = episode.goal
        self._threshold_m = task.success_threshold_m(episode)
        self._position: Vector3 | None = None
        self._reached = False
        self._visit(episode.start_position)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._visit(state["position"])

    def get_metric(self) -> float:
        """Return 1 or 0."""
        return float(self._reached)

    def _visit(self, position: Vector3) -> None:
        if self._reached or position == self._position:
            return
        self._position = position
        # No path is shorter than the straight line, so most positions need no path search.
        if distance(position, self._goal) < self._threshold_m:
            self._reached = self._task.distance_m(position, self._goal) < self._threshold_m


class PathLength(Metric):
    """Length of the agent's path in metres, from position to position in straight lines."""

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at the start position."""
        self._position = episode.start_position
        self._length_m = 0.0

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        position: Vector3 = state["position"]
        self._length_m += distance(self._position, position)
        self._position = position

    def get_metric(self) -> float:
        """Return the length in metres."""
        return self._length_m


class Spl(Metric):
    """Success weighted by path length."""

    def __init__(self) -> None:
        self._success = Success()
        self._length = PathLength()

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at the start position."""
        self._task = task
        self._episode = episode
        self._success.reset(episode, task)
        self._length.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._success.update(state)
        self._length.update(state)

    def get_metric(self) -> float:
        """Return a value from 0 to 1."""
        if not self._success.get_metric():
            return 0.0
        shortest_m = self._task.shortest_path_m(self._episode)
        return spl(success=True, shortest_m=shortest_m, travelled_m=self._length.get_metric())


class Ndtw(Metric):
    """Normalised dynamic time warping between the agent's path and the reference path."""

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin with the start position."""
        self._threshold_m = task.success_threshold_m(episode)
        self._reference = _reference_points(episode)
        self._dtw = IncrementalDtw(len(self._reference))
        self._position = episode.start_position
        self._unread = [episode.start_position]

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        # Turning on the spot is no movement: a position that repeats counts once.
        if state["position"] != self._position:
            self._position = state["position"]
            self._unread.append(self._position)

    def get_metric(self) -> float:
        """Return a value from 0 to 1, NaN without a reference path."""
        if not len(self._reference):
            return math.nan
        for costs in _distances(self._unread, self._reference):
            self._dtw.add(costs)
        self._unread.clear()
        return ndtw(self._dtw.distance, reference_points=len(self._reference), threshold_m=self._threshold_m)


class Sdtw(Metric):
    """Success times nDTW."""

    def __init__(self) -> None:
        self._success = Success()
        self._ndtw = Ndtw()

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin with the start position."""
        self._success.reset(episode, task)
        self._ndtw.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._success.update(state)
        self._ndtw.update(state)

    def get_metric(self) -> float:
        """Return a value from 0 to 1, NaN without a reference path."""
        return self._success.get_metric() * self._ndtw.get_metric()


class Cls(Metric):
    """Coverage weighted by length score: how much of the reference was visited, at what length."""

    def __init__(self) -> None:
        self._length = PathLength()

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin with the start position."""
        self._threshold_m = task.success_threshold_m(episode)
        self._length.reset(episode, task)
        self._reference = _reference_points(episode)
        self._nearest_m = np.full(len(self._reference), np.inf)
        self._unread = [episode.start_position]

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._length.update(state)
        self._unread.append(state["position"])

    def get_metric(self) -> float:
        """Return a value from 0 to 1, NaN without a reference path."""
        if not len(self._reference):
            return math.nan
        nearest_m = _distances(self._unread, self._reference).min(axis=0, initial=np.inf)
        self._nearest_m = np.minimum(self._nearest_m, nearest_m)
        self._unread.clear()
        return cls_score(
            self._nearest_m,
            travelled_m=self._length.get_metric(),
            reference_m=path_length(self._reference),
            threshold_m=self._threshold_m,
        )


class Steps(Metric):
    """How many actions the agent took, STOP included."""

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at 0."""
        self._count = 0

    def update(self, state: Info) -> None:
        """Count a step."""
        self._count += 1

    def get_metric(self) -> float:
        """Return the count."""
        return float(self._count)


class Collisions(Metric):
    """In how many steps the robot collided."""

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at 0."""
        self._count = 0

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._count += bool(state["collision"])

    def get_metric(self) -> float:
        """Return the count."""
        return float(self._count)


class CollisionRate(Metric):
    """The share of steps in which the robot collided; 0 before the first step."""

    def __init__(self) -> None:
        self._collisions = Collisions()
        self._steps = Steps()

    def reset(self, episode: Episode, task: MetricTask) -> None:
        """Begin at 0."""
        self._collisions.reset(episode, task)
        self._steps.reset(episode, task)

    def update(self, state: Info) -> None:
        """Take in the state after a step."""
        self._collisions.update(state)
        self._steps.update(state)

    def get_metric(self) -> float:
        """Return a value from 0 to 1."""
        return self._collisions.get_metric() / max(self._steps.get_metric(), 1.0)


def _reference_points(episode: Episode) -> Array:
    """Return the reference path as (N, 3); N is 0 where the episode has none."""
    points = [(point.x, point.y, point.z) for point in episode.reference_path or ()]
    return np.array(points, dtype=float).reshape(-1, 3)


def _distances(positions: list[Vector3], points: Array) -> Array:
    """Return the distances of T positions from N points as (T, N)."""
    rows = np.array([(position.x, position.y, position.z) for position in positions]).reshape(-1, 1, 3)
    return np.asarray(np.linalg.norm(points - rows, axis=2))
