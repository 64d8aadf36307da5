"""nDTW after every step of an episode: our incremental exact DTW against `fastdtw` run anew each step.

Run it with `python -m benchmarks.bench_ndtw`.
"""

from __future__ import annotations

import math
import time

import numpy as np
from fastdtw import fastdtw

from benchmarks.rows import Row
from proctor.core.geometry import distance
from proctor.core.types import Action, Vector3
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.metrics import Ndtw, ndtw

MOVES = 200
REFERENCE_POINTS = 27
THRESHOLD_M = 3.0
REPEATS = 3


class _Task:
    def distance_m(self, a: Vector3, b: Vector3) -> float:
        return distance(a, b)

    def shortest_path_m(self, episode: Episode) -> float:
        return distance(episode.start_position, episode.goal)

    def success_threshold_m(self, episode: Episode) -> float:
        return THRESHOLD_M


def _random_walk(points: int, rng: np.random.Generator) -> list[Vector3]:
    """Return a path of 25 cm moves whose heading drifts."""
    headings = np.cumsum(rng.normal(0.0, 0.3, size=points))
    steps = 0.25 * np.column_stack([np.cos(headings), np.sin(headings), np.zeros(points)])
    return [Vector3(*map(float, row)) for row in np.cumsum(steps, axis=0)]


def _incremental(path: list[Vector3], episode: Episode) -> list[float]:
    metric = Ndtw()
    metric.reset(episode, _Task())
    values = []
    for position in path[1:]:
        metric.update({"position": position, "action": Action.FORWARD, "collision": False})
        values.append(metric.get_metric())
    return values


def _recomputed(path: list[Vector3], episode: Episode) -> list[float]:
    reference = [(p.x, p.y, p.z) for p in episode.reference_path or ()]
    locations = [(path[0].x, path[0].y, path[0].z)]
    values = []
    for position in path[1:]:
        locations.append((position.x, position.y, position.z))
        # math.dist is the fastest 3-D Euclidean distance that fastdtw takes.
        dtw_m, _ = fastdtw(locations, reference, radius=1, dist=math.dist)
        values.append(ndtw(dtw_m, reference_points=len(reference), threshold_m=THRESHOLD_M))
    return values


def bench() -> list[Row]:
    """Time both on one episode."""
    rng = np.random.default_rng(0)
    path = _random_walk(MOVES + 1, rng)
    reference = _random_walk(REFERENCE_POINTS, rng)
    episode = Episode(start_position=path[0], reference_path=reference)
    times_s: dict[str, float] = {}
    for function in (_incremental, _recomputed) * REPEATS:
        started_s = time.perf_counter()
        function(path, episode)
        spent_s = time.perf_counter() - started_s
        times_s[function.__name__] = min(times_s.get(function.__name__, math.inf), spent_s)
    name = f"nDTW at each of {MOVES} moves, |R|={REFERENCE_POINTS}, vs fastdtw"
    return [Row(name, times_s["_incremental"], times_s["_recomputed"], bar=1 / 20)]


if __name__ == "__main__":
    for row in bench():
        ratio = row.ours / row.theirs
        print(f"{row.name}  {row.ours:.4f} s  {row.theirs:.4f} s  {ratio:.4f}")
