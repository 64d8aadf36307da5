"""How much longer a run takes on Ray than in the local pool, with two workers each.

Only the time after the workers are ready counts. Both draw with no threads beside the worker's own.
"""

import os
import time

from benchmarks.rows import NotMeasured, Row
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.runs.attempts import Attempts
from proctor.runs.executors import Executor
from proctor.runs.job import RunJob
from proctor.runs.pool import WorkerPool

HOUSES, EPISODES_PER_HOUSE, ROUNDS = 6, 8, 3  # many: at the end, one worker waits for the other
THREADS = "LP_NUM_THREADS"
JOB = RunJob(env="embedded", policy="replay", task="vln", privileged=True)


def bench() -> list[Row | NotMeasured]:
    name = "two workers on Ray (vs in the local pool)"
    if len(os.sched_getaffinity(0)) < 2:
        return [NotMeasured(name, "there is one core", is_failure=False)]
    from proctor.runs.ray_executor import RayExecutor  # noqa: PLC0415  (Ray need not be there for the others)

    episodes = load_dataset(suite_path("houses-v1")).episodes
    scenes = list(dict.fromkeys(episode.scene_id for episode in episodes))[:HOUSES]
    chosen = [
        e for scene in scenes for e in [e for e in episodes if e.scene_id == scene][:EPISODES_PER_HOUSE]
    ]
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "0"
    try:
        pairs = [
            (run_s(RayExecutor(JOB, 2), chosen), run_s(WorkerPool(JOB, 2), chosen)) for _ in range(ROUNDS)
        ]
    finally:
        del os.environ[THREADS]
        if before is not None:
            os.environ[THREADS] = before
    ray_s, pool_s = (min(times) for times in zip(*pairs, strict=True))
    return [Row(name, ray_s, pool_s, 1.1)]


def run_s(executor: Executor, episodes) -> float:
    try:
        executor.check(episodes)
        executor.start()
        start_s = time.perf_counter()
        results = [done for done in executor.run(Attempts(episodes)) if done]
        passed_s = time.perf_counter() - start_s
    finally:
        executor.close()
    assert all(done.result.success for done in results)
    assert len(results) == len(episodes)
    return passed_s
