"""The evaluator's own share of a step: everything in the loop that is neither env nor policy."""

from benchmarks.rows import Row
from proctor.episodes.datasets import load_dataset
from proctor.evaluation.executors import Examiner, Job
from proctor.registry import suite_folder

EPISODES = 4


def bench() -> list[Row]:
    examiner = Examiner.of(Job(env="embedded", policy="replay"))
    episodes = load_dataset(suite_folder("houses-v1")).select(count=EPISODES + 1)
    try:
        examiner.examine(episodes[0])  # imports and caches
        results = [examiner.examine(episode) for episode in episodes[1:]]
    finally:
        examiner.close()
    steps = sum(result.steps for result in results)
    own_s = sum(result.timing.evaluator_s for result in results)
    env_s = sum(result.timing.env_s + result.timing.policy_s for result in results)
    return [Row("evaluator's share of a step (vs env and policy)", own_s / steps, env_s / steps, 0.02)]
