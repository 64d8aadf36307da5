"""The evaluator's own share of a step: everything in the loop that is neither env nor policy.

What is done once per scene, loading it and drawing its map, is not counted on either side.
"""

from benchmarks.rows import Row
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.runs.examiner import Examiner
from proctor.runs.job import RunJob

HOUSES = 4


def bench() -> list[Row]:
    episodes = load_dataset(suite_path("houses-v1")).episodes
    houses = list(dict.fromkeys(episode.scene_id for episode in episodes))[:HOUSES]
    examiner = Examiner.of(RunJob(env="embedded", policy="replay", privileged=True))
    results = []
    for house in houses:
        warm_up, *others = [episode for episode in episodes if episode.scene_id == house]
        examiner.examine(warm_up)
        results += [examiner.examine(episode).result for episode in others]
    examiner.close()
    steps = sum(result.steps for result in results)
    own_s = sum(result.timing.evaluator_s for result in results)
    others_s = sum(result.timing.env_s + result.timing.policy_s for result in results)
    # The exact distances to a goal take 22 to 35 ms per episode, 0.5 ms a step. The share was 0.065 on one
    # day and 0.088 on another, on which the machine drew pictures faster.
    return [Row("evaluator's share of a step (vs env and policy)", own_s / steps, others_s / steps, 0.1)]
