"""What recording costs: the same run with pictures of 640x480, with and without it.

An episode's time ends when its files are complete. Rounds alternate, and each episode's best time counts.
"""

import tempfile
import time
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from benchmarks.rows import Row
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.runs import run as runs
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.recorder import RecordingConfig

HOUSES, EPISODES, ROUNDS = 2, 24, 4  # as many of a house as the whole exam has
RECORDERS = {"video": 1.15}
"""Each with its bar."""


def bench() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        dataset, numbers = Path(folder) / "episodes.json", count()
        save_dataset(_episodes(), dataset)
        rounds = [
            [
                episodes_s(dataset, Path(folder) / str(next(numbers)), recorder)
                for recorder in ("", *RECORDERS)
            ]
            for _ in range(ROUNDS)
        ]
    bare_s, *recorded_s = (sum(map(min, *times)) for times in zip(*rounds, strict=True))
    return [
        Row(f"a run with --record {name} (vs without)", each_s, bare_s, bar)
        for (name, bar), each_s in zip(RECORDERS.items(), recorded_s, strict=True)
    ]


def _episodes() -> list[Any]:
    """Return all episodes of a few houses."""
    episodes = load_dataset(suite_path("houses-v1")).episodes
    houses = list(dict.fromkeys(episode.scene_id for episode in episodes))[:HOUSES]
    return [episode for episode in episodes if episode.scene_id in houses]


def episodes_s(dataset: Path, out: Path, recorder: str) -> list[float]:
    """Return how long each episode of a run takes, with the writing of what came before it."""
    recording = RecordingConfig(recorders=(recorder,)) if recorder else None
    plan = plan_run(RunConfig(job=RunJob(policy="replay"), dataset=dataset, recording=recording), out)
    times_s = []
    report = runs.run(plan, lambda state: times_s.append(time.perf_counter()))
    if recorder:
        assert report.recorded is not None
        assert report.recorded.files == EPISODES
    return [end_s - start_s for start_s, end_s in pairwise(times_s)]
