"""What sharing a run costs, with nobody to share it: the same run with leases and without, and their parts.

A run is not shared if its policy is given as an object; all else is the same. The parts are measured against
the bare calls of the system that they cannot do without.
"""

import os
import tempfile
import time
from itertools import count, pairwise
from pathlib import Path

import msgspec

from benchmarks.rows import Row
from proctor.core.registry import build
from proctor.runs import run as runs
from proctor.runs.examiner import Finished
from proctor.runs.job import RunJob
from proctor.runs.leases import Leases
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.sharing import SharedRun

EPISODES, ROUNDS, REPEATS = 12, 4, 200
RECORD = bytes(20_000)


def bench() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()
        rounds = [
            [
                episodes_s(Path(folder) / str(next(numbers)), is_shared=is_shared)
                for is_shared in (True, False)
            ]
            for _ in range(ROUNDS)
        ]
        shared_s, alone_s = (sum(map(min, *times)) for times in zip(*rounds, strict=True))
        claims = Path(folder) / "claims"
        records = Path(folder) / "records"
        return [
            Row("a run that others could join (vs one alone)", shared_s, alone_s, 1.03),
            Row("to claim an episode (vs an exclusive create)", *claim_s(claims), 4.0),
            Row("to publish a record (vs write, fsync, link)", *publish_s(records), 2.0),
        ]


def episodes_s(out: Path, *, is_shared: bool) -> list[float]:
    """Return how long each episode of a run takes, with the writing of what came before it."""
    job = RunJob(policy="replay")
    plan = plan_run(RunConfig(job=job, suite="houses-v1", episodes=EPISODES), out)
    policy = None if is_shared else build("policy", "replay", {}, plan.dataset.exam.baselines)
    times_s = []
    runs.run(plan, lambda state: times_s.append(time.perf_counter()), policy=policy)
    assert not (out / "work").exists()
    return [end_s - start_s for start_s, end_s in pairwise(times_s)]


def claim_s(folder: Path) -> tuple[float, float]:
    folder.mkdir()
    clock = folder.with_suffix(".clock")
    clock.write_text("{}")
    leases = Leases(folder, clock, 60.0)
    ours_s = median_s(lambda index: leases.claim(f"ep_{index}"))
    bare_s = median_s(lambda index: os.close(os.open(folder / f"bare_{index}", os.O_CREAT | os.O_EXCL)))
    leases.close()
    return ours_s, bare_s


def publish_s(out: Path) -> tuple[float, float]:
    out.mkdir()
    shared = SharedRun(out, 60.0)
    finished = [Finished(_Scored(episode_id=f"ep_{index}"), RECORD, b"") for index in range(REPEATS)]
    ours_s = median_s(lambda index: shared.publish(finished[index], is_again=False))
    bare_s = median_s(lambda index: publish_bare(out, f"bare_{index}"))
    shared.close()
    return ours_s, bare_s


def publish_bare(out: Path, name: str) -> None:
    draft = os.open(out / f".{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(draft, RECORD)
    os.fsync(draft)
    os.close(draft)
    os.link(out / f".{name}", out / name)
    folder = os.open(out, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    (out / f".{name}").unlink()


class _Scored(msgspec.Struct):
    episode_id: str
    is_scored: bool = True


def median_s(call) -> float:
    """Return the median time of a call."""
    times_s = []
    for index in range(REPEATS):
        start_s = time.perf_counter()
        call(index)
        times_s.append(time.perf_counter() - start_s)
    return sorted(times_s)[REPEATS // 2]
