"""How episodes are shared out among worker processes, and what those inherit."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from running import run

from proctor.core.errors import ProctorError
from proctor.core.interfaces import Policy
from proctor.core.types import Vector3
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs import pool
from proctor.runs.attempts import Attempts
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.pool import WorkerPool, worker_environ
from proctor.worlds.mock import MockEnv

TESTS = Path(__file__).parent


class KilledWhenBuilt(MockEnv):
    """Is killed while it is built, as often as a folder holds files."""

    def __init__(self, kills):
        super().__init__()
        if multiprocessing.parent_process() is not None:  # not the one that checks the episodes
            for file in Path(kills).iterdir():
                with suppress(FileNotFoundError):  # taken by the other worker
                    file.unlink()
                    os.kill(os.getpid(), signal.SIGKILL)


class Teller(Policy):
    """Writes into a file what its process knows."""

    def __init__(self, file):
        names = ("PROCTOR_TEST_WORD", "LP_NUM_THREADS")
        Path(file).write_text(" ".join(os.environ.get(name, "-") for name in names))

    def act(self, observation):
        return 0


class Gambler(Policy):
    """Writes down the first number that NumPy draws for it."""

    def __init__(self, folder):
        drawn = str(np.random.rand())  # noqa: NPY002  (as agents do)
        (Path(folder) / str(os.getpid())).write_text(drawn)

    def act(self, observation):
        return 0


class Looker(Policy):
    """Its actions depend on every pixel that it sees."""

    def reset(self, episode_info):
        self.steps = 0

    def act(self, observation):
        self.steps += 1
        seen = zlib.crc32(observation["rgb"].tobytes() + observation["depth"].tobytes())
        return 0 if self.steps > 30 else 1 + seen % 3


class Patricide(Policy):
    """Kills the server that its process is a copy of, and dies in the second episode."""

    def __init__(self):
        self.episodes = 0

    def reset(self, episode_info):
        self.episodes += 1

    def act(self, observation):
        os.kill(os.getppid(), signal.SIGKILL)
        if self.episodes == 2:
            os._exit(3)
        return 0


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)


def attempts_of(**counts):
    return Attempts(
        [
            Episode(episode_id=f"{scene}{k}", scene_id=scene)
            for k in range(4)
            for scene in counts
            if k < counts[scene]
        ]
    )


def start_and_close(job):
    """Let two workers build what the job names, and end."""
    workers = WorkerPool(job, 2)
    workers.start()
    workers.close()


def take(attempts, workers):
    return [attempts.take(worker).episode_id for worker in workers]


def test_a_worker_stays_in_its_scene_and_then_begins_one_that_nobody_has():
    attempts = attempts_of(a=3, b=2, c=2)
    assert take(attempts, [0, 1, 0, 1, 1, 0, 1]) == ["a0", "b0", "a1", "b1", "c0", "a2", "c1"]
    assert attempts.wait_s() is None


def test_workers_share_a_scene_when_no_other_is_left_and_help_where_most_is_to_do():
    attempts = attempts_of(a=1, b=3, c=4)
    assert take(attempts, [0, 1, 2, 0, 0, 1]) == ["a0", "b0", "c0", "c1", "c2", "b1"]
    attempts = attempts_of(only=4)
    assert take(attempts, [0, 1, 1, 0]) == ["only0", "only1", "only2", "only3"]


@pytest.mark.parametrize(
    ("cores", "workers", "threads"), [(8, 2, "4"), (8, 5, "0"), (2, 2, "0"), (2, 9, "0")]
)
def test_workers_share_the_cores_for_drawing(cores, workers, threads, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)
    assert worker_environ(workers)["LP_NUM_THREADS"] == threads
    monkeypatch.setenv("LP_NUM_THREADS", "3")
    assert worker_environ(workers)["LP_NUM_THREADS"] == "3"


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_workers_have_the_environment_of_now_however_they_are_started(platform, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)
    for word in ("first", "second"):
        monkeypatch.setenv("PROCTOR_TEST_WORD", word)
        job = RunJob(
            env="mock", policy="test_workers:Teller", policy_options={"file": str(tmp_path / "told")}
        )
        start_and_close(job)
        threads = worker_environ(2)["LP_NUM_THREADS"]
        assert (tmp_path / "told").read_text() == f"{word} {threads}"


def test_what_workers_are_copies_of_has_not_loaded_opengl():
    modules = ", ".join([pool.__name__, *VlnExam.worker_modules])
    code = f"import sys, {modules}; print(sorted({{'mujoco', 'OpenGL', 'scipy'}} & {{*sys.modules}}))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "['scipy']"


def test_an_agent_that_kills_what_its_process_is_a_copy_of_harms_nobody_else():
    episodes = [
        Episode(episode_id=str(k), scene_id="scene", goal_position=Vector3(9, 0, 0)) for k in range(4)
    ]
    workers = WorkerPool(RunJob(env="mock", policy="test_workers:Patricide"), 1)
    workers.start()
    reasons = [done.result.failure_reason for done in workers.run(Attempts(episodes))]
    assert reasons == ["stopped_far", "policy_lost"] * 2
    assert workers.close() == []


def test_random_numbers_of_numpy_differ_between_workers(tmp_path):
    job = RunJob(env="mock", policy="test_workers:Gambler", policy_options={"folder": str(tmp_path)})
    for _ in range(2):
        start_and_close(job)
    drawn = [file.read_text() for file in tmp_path.iterdir()]
    assert len(drawn) == len(set(drawn)) == 4


def test_pictures_and_results_are_those_of_one_process(tmp_path):
    recorded = []
    for workers in (1, 3):
        job = RunJob(policy="test_workers:Looker", env_options={"width": 64, "height": 48})
        out = tmp_path / str(workers)
        run(RunConfig(job=job, suite="houses-v1", episodes=5, workers=workers), out, lambda _: None)
        recorded.append((out / "results.json").read_bytes())
    assert recorded[0] == recorded[1]
    steps = [len(set(episode["actions"])) for episode in json.loads(recorded[0])["episodes"]]
    assert min(steps) > 1


def pool_of_killed(tmp_path, kills):
    """Return a pool of two whose workers are killed so many times while they are built."""
    (tmp_path / "kills").mkdir()
    for index in range(kills):
        (tmp_path / "kills" / str(index)).touch()
    options = {"kills": str(tmp_path / "kills")}
    return WorkerPool(RunJob(env="test_workers:KilledWhenBuilt", policy="forward", env_options=options), 2)


@pytest.mark.parametrize("kills", [1, 3])
def test_workers_that_are_killed_while_they_are_built_are_replaced(tmp_path, kills):
    workers = pool_of_killed(tmp_path, kills)
    workers.start()
    episodes = [
        Episode(episode_id=f"ep_{index}", scene_id="s", goal_position=Vector3(9, 0, 0)) for index in range(4)
    ]
    done = list(workers.run(Attempts(episodes)))
    workers.close()
    assert not list((tmp_path / "kills").iterdir())
    assert [finished.result.error for finished in done] == [None] * 4


def test_workers_that_are_always_killed_while_they_are_built_end_the_run(tmp_path):
    workers = pool_of_killed(tmp_path, 20)
    workers.start()
    with pytest.raises(ProctorError, match="3 workers died while they were built, one after the other"):
        list(workers.run(Attempts([Episode(scene_id="s", goal_position=Vector3(9, 0, 0))])))
    workers.close()
