"""How much sooner two workers finish than one, each drawing RGB-D pictures at 640x480.

Both draw with no threads beside the worker's own: with the product's own setting, one worker alone draws with
all cores. Only the time after the workers are ready counts.
"""

import os
import time

from benchmarks.rows import NotMeasured, Row
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.runs.attempts import Attempts
from proctor.runs.job import RunJob
from proctor.runs.pool import WorkerPool

HOUSES, EPISODES_PER_HOUSE, ROUNDS = 6, 8, 3  # many: at the end, one worker waits for the other
THREADS = "LP_NUM_THREADS"


def bench() -> list[Row | NotMeasured]:
    name = "a run with two workers (vs with one)"
    if len(os.sched_getaffinity(0)) < 2:
        return [NotMeasured(name, "there is one core", is_failure=False)]
    episodes = load_dataset(suite_path("houses-v1")).episodes
    scenes = list(dict.fromkeys(episode.scene_id for episode in episodes))[:HOUSES]
    chosen = [
        e for scene in scenes for e in [e for e in episodes if e.scene_id == scene][:EPISODES_PER_HOUSE]
    ]
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "0"
    try:
        pairs = [(run_s(chosen, 1), run_s(chosen, 2)) for _ in range(ROUNDS)]
    finally:
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before
    one_s, two_s = (min(times) for times in zip(*pairs, strict=True))
    return [Row(name, two_s, one_s, 1 / 1.8)]


def run_s(episodes, workers) -> float:
    pool = WorkerPool(RunJob(env="embedded", policy="replay", privileged=True), workers)
    pool.start()
    start_s = time.perf_counter()
    results = list(pool.run(Attempts(episodes)))
    passed_s = time.perf_counter() - start_s
    pool.close()
    assert all(done.result.success for done in results)
    return passed_s
