"""Whole runs by name: resuming, workers, being killed at any moment."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import trimesh
from running import run

from proctor.core.errors import InvalidFile, ProctorError, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Vector3
from proctor.exams.datasets import load_dataset, save_dataset
from proctor.exams.vln.episode import Episode
from proctor.runs import pool
from proctor.runs.attempts import Attempts
from proctor.runs.folder import RunFolder
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.pool import WorkerPool
from proctor.worlds.mock import MockEnv

TESTS = Path(__file__).parent


class SlowSteps(MockEnv):
    """A mock world whose steps take real work, so that a run can be killed in the middle of one."""

    def step(self, action):
        sum(range(20_000))
        return super().step(action)


class Moody(Policy):
    """Raises in one episode, answers nonsense in another, dies in a third."""

    def reset(self, episode_info):
        self.episode_id = f"ep_{episode_info.instruction.rstrip('.').split()[-1]}"
        self.calls = 0

    def act(self, observation):
        self.calls += 1
        if self.episode_id == "ep_1":
            raise RuntimeError("bad mood")
        if self.episode_id == "ep_2":
            return 17
        return 1 if self.calls < 4 else 0


class Deadly(Moody):
    """Takes its whole process down in one episode."""

    def act(self, observation):
        if self.episode_id == "ep_3":
            os._exit(3)
        return super().act(observation)


class DeadlyWorld(MockEnv):
    """Takes its whole process down in one episode."""

    def reset(self, episode):
        if episode.episode_id == "ep_3":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reset(episode)


class Frozen(Moody):
    """Never answers in one episode."""

    def act(self, observation):
        if self.episode_id == "ep_3":
            threading.Event().wait()
        return super().act(observation)


class Parting(Moody):
    """Takes its time to close, and leaves a file when it is done."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def close(self):
        subprocess.run([sys.executable, "-c", "print()"], check=True, stdout=subprocess.DEVNULL)
        (self.folder / str(os.getpid())).touch()


class Mortal(MockEnv):
    """Dies after each episode that it has finished."""

    def step(self, action):
        outcome = super().step(action)
        if outcome[2]:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return outcome


class FaultyOnce(MockEnv):
    """Breaks in the episode ep_2 as long as a file says so."""

    def __init__(self, switch):
        super().__init__()
        self.switch = Path(switch)

    def reset(self, episode):
        if episode.episode_id == "ep_2" and self.switch.exists():
            raise OSError("the renderer crashed")
        return super().reset(episode)


class NeverBuilt(MockEnv):
    """Cannot be made."""

    def __init__(self):
        raise UserError("this env cannot be made here")


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(
            episode_id=f"ep_{index}",
            scene_id=f"scene_{index % 3}",
            goal_position=Vector3(0.75 + index % 2, 0, 0),
            instruction=f"Go there, number {index}.",
            max_steps=30,
            reference_path=[Vector3(0.25 * i, 0, 0) for i in range(4)],
        )
        for index in range(12)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def execute(dataset, out, *, workers=1, **job):
    job = {"env": "mock", "policy": "random"} | job
    seen = []
    report = run(RunConfig(job=RunJob(**job), dataset=dataset, workers=workers), out, seen.append)
    return report, seen


def test_progress_is_told_from_the_start_to_the_end(dataset, tmp_path):
    seen = []
    sizes = []
    run(
        RunConfig(job=RunJob(env="mock", policy="random"), dataset=dataset),
        tmp_path / "run",
        lambda state: (seen.append(state), sizes.append(len(state.finished))),
    )
    assert sizes == list(range(13))
    assert all(state.total == 12 for state in seen)


def test_the_same_call_again_does_nothing_and_gives_the_same(dataset, tmp_path):
    first, _ = execute(dataset, tmp_path / "run")
    written = (tmp_path / "run" / "results.json").read_bytes()
    again, seen = execute(dataset, tmp_path / "run")
    assert (first.done_before, again.done_before) == (0, 12)
    assert len(seen) == 1
    assert (tmp_path / "run" / "results.json").read_bytes() == written


def test_results_do_not_depend_on_the_number_of_workers(dataset, tmp_path):
    for workers in (1, 3):
        execute(dataset, tmp_path / str(workers), workers=workers)
    one, three = ((tmp_path / str(n) / "results.json").read_bytes() for n in (1, 3))
    assert one == three
    assert json.loads(one)["summary"]["total_episodes"] == 12


def test_another_seed_gives_other_actions(dataset, tmp_path):
    first, _ = execute(dataset, tmp_path / "a", seed=0)
    other, _ = execute(dataset, tmp_path / "b", seed=1)
    assert [e.actions for e in first.results.episodes] != [e.actions for e in other.results.episodes]


@pytest.mark.parametrize("workers", [1, 2])
def test_agent_faults_count_against_the_agent_and_are_not_retried(dataset, tmp_path, workers):
    report, _ = execute(dataset, tmp_path / "run", policy="test_run:Moody", workers=workers)
    summary = report.results.summary
    assert summary.error_counts == {"agent": 2, "evaluator": 0}
    assert summary.failure_reasons["policy_exception"] == 1
    assert summary.failure_reasons["invalid_action"] == 1
    assert summary.success_count == 5
    assert summary.success_rate == pytest.approx(5 / 12)
    assert summary.metrics["success"].n == 12
    again, _ = execute(dataset, tmp_path / "run", policy="test_run:Moody", workers=workers)
    assert again.done_before == 12


def test_evaluator_faults_are_left_out_and_retried_on_resume(dataset, tmp_path):
    switch = tmp_path / "broken"
    switch.touch()
    options = {"switch": str(switch)}
    report, _ = execute(dataset, tmp_path / "run", env="test_run:FaultyOnce", env_options=options)
    summary = report.results.summary
    assert summary.error_counts == {"agent": 0, "evaluator": 1}
    assert summary.metrics["success"].n == 11
    assert summary.success_rate_bounds.high - summary.success_rate_bounds.low == pytest.approx(1 / 12)
    switch.unlink()
    again, _ = execute(dataset, tmp_path / "run", env="test_run:FaultyOnce", env_options=options)
    assert again.done_before == 11
    assert again.results.summary.error_counts == {"agent": 0, "evaluator": 0}
    assert [e.episode_id for e in again.results.episodes] == [f"ep_{i}" for i in range(12)]


def test_a_worker_that_dies_costs_its_episode_only(dataset, tmp_path):
    report, _ = execute(dataset, tmp_path / "run", policy="test_run:Deadly", workers=2)
    by_id = {episode.episode_id: episode for episode in report.results.episodes}
    assert by_id["ep_3"].error.kind == "policy_lost"
    assert by_id["ep_3"].error.side == "agent"
    assert "exit code 3" in by_id["ep_3"].error.message
    assert by_id["ep_3"].metrics["success"] == 0.0
    assert report.results.summary.error_counts == {"agent": 3, "evaluator": 0}
    assert report.results.summary.metrics["success"].n == 12


def test_a_world_that_takes_its_process_down_is_the_evaluators_fault(dataset, tmp_path):
    report, _ = execute(dataset, tmp_path / "run", env="test_run:DeadlyWorld", workers=2)
    by_id = {episode.episode_id: episode for episode in report.results.episodes}
    assert (by_id["ep_3"].error.side, by_id["ep_3"].error.kind) == ("evaluator", "worker_killed")
    assert report.results.summary.error_counts == {"agent": 0, "evaluator": 1}


def test_a_policy_that_never_answers_loses_its_episode(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "TURN_DEADLINE_S", 2.0)
    report, _ = execute(dataset, tmp_path / "run", policy="test_run:Frozen", workers=2)
    by_id = {episode.episode_id: episode for episode in report.results.episodes}
    assert by_id["ep_3"].error.kind == "policy_lost"
    assert "no answer in time" in by_id["ep_3"].error.message
    assert report.results.summary.error_counts == {"agent": 3, "evaluator": 0}


class Lingering(Policy):
    """Tells its process id and never answers."""

    def __init__(self, folder):
        (Path(folder) / str(os.getpid())).touch()

    def act(self, observation):
        threading.Event().wait()


def is_alive(process_id):
    stat = Path(f"/proc/{process_id}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


def test_workers_do_not_outlive_a_parent_that_was_killed(dataset, tmp_path):
    pids = tmp_path / "pids"
    pids.mkdir()
    command = [
        *(
            sys.executable,
            "-m",
            "proctor.cli",
            "run",
            "--dataset",
            str(dataset),
            "--env",
            "mock",
            "--workers",
            "2",
        ),
        *(
            "--policy",
            "test_run:Lingering",
            "--policy-option",
            f"folder={pids}",
            "--out",
            str(tmp_path / "run"),
        ),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 60
    while not (tmp_path / "run" / "manifest.json").exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    process.kill()
    process.wait()
    workers = [int(item.name) for item in pids.iterdir()]
    assert len(workers) == 2
    while any(map(is_alive, workers)) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not any(map(is_alive, workers))


def test_an_edited_policy_is_another_run(dataset, tmp_path, monkeypatch):
    source = (
        "from proctor.core.interfaces import Policy\n"
        "class Agent(Policy):\n"
        "    def act(self, observation): return 0\n"
    )
    (tmp_path / "edited_agent.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    execute(dataset, tmp_path / "run", policy="edited_agent:Agent")
    assert execute(dataset, tmp_path / "run", policy="edited_agent:Agent")[0].done_before == 12
    (tmp_path / "edited_agent.py").write_text(source + "# better\n")
    with pytest.raises(UserError, match="holds a different run: its policy_sha256"):
        execute(dataset, tmp_path / "run", policy="edited_agent:Agent")


def test_a_replaced_mesh_is_another_run(tmp_path):
    (tmp_path / "scenes").mkdir()
    mesh = {"name": "box", "asset_path": "box.stl", "translate": [9, 9, 0]}
    (tmp_path / "scenes" / "s.json").write_text(json.dumps({"scene_name": "s", "objects": [mesh]}))
    trimesh.creation.box((1, 1, 1)).export(tmp_path / "scenes" / "box.stl")
    save_dataset(
        [Episode(scene_id="s", max_steps=2, goal_position=Vector3(1, 0, 0))], tmp_path / "episodes.json"
    )
    execute(tmp_path / "episodes.json", tmp_path / "run")
    trimesh.creation.box((1, 1, 2)).export(tmp_path / "scenes" / "box.stl")
    with pytest.raises(UserError, match="holds a different run: its scenes_sha256"):
        execute(tmp_path / "episodes.json", tmp_path / "run")


def test_policies_in_workers_are_closed_in_good_order_and_may_start_processes(dataset, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    options = {"folder": str(closed)}
    execute(dataset, tmp_path / "run", policy="test_run:Parting", policy_options=options, workers=2)
    assert len(list(closed.iterdir())) == 2


def test_a_worker_that_dies_while_it_is_idle_is_replaced(dataset, tmp_path):
    workers = WorkerPool(RunJob(env="test_run:Mortal", policy="random"), 1)
    workers.start()
    first, second = load_dataset(dataset).select(count=2)
    (done,) = workers.run(Attempts([first]))
    workers._workers[0]._process.join()
    (again,) = workers.run(Attempts([second]))
    workers.close()
    assert (done.result.status, again.result.status) == ("failure", "failure")


def test_a_worker_that_cannot_be_built_ends_the_run_with_its_reason(dataset, tmp_path):
    with pytest.raises(UserError, match="this env cannot be made here"):
        execute(dataset, tmp_path / "run", env="test_run:NeverBuilt", workers=2)


def test_killed_at_three_random_moments_and_resumed_the_results_are_those_of_a_quiet_run(dataset, tmp_path):
    kill_and_resume(dataset, tmp_path, kills=3, workers=1)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_ten_random_moments_the_results_are_still_those_of_a_quiet_run(dataset, tmp_path, workers):
    kill_and_resume(dataset, tmp_path, kills=10, workers=workers)


def kill_and_resume(dataset, tmp_path, *, kills, workers):
    """Kill a run again and again, let it finish, and compare it with one that nobody disturbed."""
    quiet = execute(dataset, tmp_path / "quiet", env="test_run:SlowSteps")[0]
    killed = tmp_path / "killed"
    command = [
        *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--workers", str(workers)),
        *("--policy", "random", "--env", "test_run:SlowSteps", "--out", str(killed)),
    ]
    journal = killed / "episodes.jsonl"
    moments = random.Random(0)
    done = 0
    while done < kills:
        grown = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # A random moment, counted in journal bytes rather than seconds, so that each try gets further.
        target = grown + moments.randrange(1, 12000 // kills)
        while process.poll() is None and (journal.stat().st_size if journal.exists() else 0) < target:
            time.sleep(moments.uniform(0.001, 0.02))
        done += process.poll() is None
        process.kill()
        process.wait()
        if process.returncode == 0:  # finished before it was killed often enough: once more from the start
            shutil.rmtree(killed)
        if moments.random() < 0.5 and journal.exists():  # what a kill in the middle of a write leaves
            os.truncate(journal, max(0, journal.stat().st_size - moments.randrange(1, 50)))
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0
    assert (killed / "results.json").read_bytes() == (tmp_path / "quiet" / "results.json").read_bytes()
    assert quiet.results.total_episodes == 12
    run = RunFolder.open(killed)
    assert all(run.trace(result.episode_id).steps == result.steps for result in run.episodes)


def test_nothing_is_written_when_the_request_is_wrong(dataset, tmp_path):
    out = tmp_path / "run"
    with pytest.raises(UserError, match="unknown policy"):
        execute(dataset, out, policy="orcale")
    with pytest.raises(UserError, match="unknown env"):
        execute(dataset, out, env="mok")
    with pytest.raises(InvalidFile, match=r"episodes\[0\]\.scene_config_path: missing, and there is no"):
        execute(dataset, out, env="embedded")
    with pytest.raises(ProctorError, match="at least 1 worker"):
        execute(dataset, out, workers=0)
    assert not out.exists()
