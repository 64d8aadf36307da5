"""DTW of two long sequences of joint positions: ours in numpy against the C code of `dtaidistance`.

Run it with `python -m benchmarks.bench_dtw`.
"""

from __future__ import annotations

import math
import time
from functools import partial

import numpy as np
from dtaidistance import dtw_ndim

from benchmarks.rows import Row
from proctor.exams.dtw import dtw_distance

STEPS, JOINTS = 500, 10
REPEATS = 500


def bench() -> list[Row]:
    """Time both in turns on the same two sequences, after making sure that they find the same."""
    rng = np.random.default_rng(0)
    a, b = np.cumsum(rng.normal(0.0, 0.01, size=(2, STEPS, JOINTS)), axis=1)
    # By default it sums squares; with this inner distance it computes what we do.
    theirs = partial(dtw_ndim.distance_fast, a, b, inner_dist="euclidean")
    ours = partial(dtw_distance, a, b)
    if not math.isclose(ours(), theirs(), rel_tol=1e-9):
        raise AssertionError(f"DTW differs: ours {ours()}, theirs {theirs()}")
    times_s = {ours: math.inf, theirs: math.inf}
    for function in (ours, theirs) * REPEATS:
        started_s = time.perf_counter()
        function()
        times_s[function] = min(times_s[function], time.perf_counter() - started_s)
    return [Row(f"DTW {STEPS}x{JOINTS} (vs dtaidistance's C code)", times_s[ours], times_s[theirs], bar=1.5)]


if __name__ == "__main__":
    for row in bench():
        ratio = row.ours / row.theirs
        print(f"{row.name}  {row.ours:.6f} s  {row.theirs:.6f} s  {ratio:.3f}")
