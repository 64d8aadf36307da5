"""nDTW after every step of an episode: our incremental exact DTW against `fastdtw` run anew each step.

Run it with `python -m benchmarks.bench_ndtw`.
"""

from __future__ import annotations

import math
import time

import numpy as np
from fastdtw import fastdtw

from benchmarks.rows import Row
from proctor.core.types import Array
from proctor.exams.dtw import IncrementalDtw
from proctor.exams.vln.metrics import normalised_dtw

MOVES = 200
REFERENCE_POINTS = 27
THRESHOLD_M = 3.0
REPEATS = 3


def _random_walk(points: int, rng: np.random.Generator) -> Array:
    """Return a path of 25 cm moves whose heading drifts."""
    headings = np.cumsum(rng.normal(0.0, 0.3, size=points))
    steps = 0.25 * np.column_stack([np.cos(headings), np.sin(headings), np.zeros(points)])
    return np.cumsum(steps, axis=0)


def _incremental(path: Array, reference: Array) -> list[float]:
    dtw, values = IncrementalDtw(len(reference)), []
    for position in path:
        dtw.add(np.linalg.norm(reference - position, axis=1))
        values.append(_ndtw(dtw.distance))
    return values


def _recomputed(path: Array, reference: Array) -> list[float]:
    # math.dist is the fastest 3-D Euclidean distance that fastdtw takes.
    return [
        _ndtw(fastdtw(path[:taken], reference, radius=1, dist=math.dist)[0])
        for taken in range(1, len(path) + 1)
    ]


def _ndtw(dtw_m: float) -> float:
    return normalised_dtw(dtw_m, reference_points=REFERENCE_POINTS, threshold_m=THRESHOLD_M)


def bench() -> list[Row]:
    """Time both on one episode."""
    rng = np.random.default_rng(0)
    path, reference = _random_walk(MOVES + 1, rng), _random_walk(REFERENCE_POINTS, rng)
    times_s: dict[str, float] = {}
    for function in (_incremental, _recomputed) * REPEATS:
        started_s = time.perf_counter()
        function(path, reference)
        spent_s = time.perf_counter() - started_s
        times_s[function.__name__] = min(times_s.get(function.__name__, math.inf), spent_s)
    name = f"nDTW at each of {MOVES} moves, |R|={REFERENCE_POINTS}, vs fastdtw"
    return [Row(name, times_s["_incremental"], times_s["_recomputed"], bar=1 / 20)]


if __name__ == "__main__":
    for row in bench():
        ratio = row.ours / row.theirs
        print(f"{row.name}  {row.ours:.4f} s  {row.theirs:.4f} s  {ratio:.4f}")
