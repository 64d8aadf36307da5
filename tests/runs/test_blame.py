"""Whose fault it is: bad numbers of an env, policies that fork or are killed, `close` that raises."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from running import examine, finished, run

from proctor.cli import main
from proctor.core.errors import AgentFault, EvaluatorError, SimulationError
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.results import EpisodeResult
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.runs import pool
from proctor.runs.grade import encode_result
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.pool import WorkerPool
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator

TESTS = Path(__file__).parent
IDS = [f"ep_{index}" for index in range(4)]
BAD_INFOS = {
    "yaw": math.nan,
    "position": Vector3(1e308, 0.0, 0.0),
    "collision": np.zeros(2, bool),
}


class Walker(Policy):
    """Walks four steps and stops."""

    def reset(self, episode_info):
        self.episode_id, self.calls = episode_info.instruction.rstrip("."), 0

    def act(self, observation):
        self.calls += 1
        return 1 if self.calls < 4 else 0


class BadInfo(MockEnv):
    """Reports a value that cannot be used in one episode, as long as a file says which."""

    def __init__(self, switch):
        super().__init__()
        self.switch = Path(switch)

    def reset(self, episode):
        self.episode_id = episode.episode_id
        return super().reset(episode)

    def step(self, action):
        observation, reward, done, info = super().step(action)
        if self.episode_id == "ep_1" and self.switch.exists():
            field = self.switch.read_text()
            info = info | {field: BAD_INFOS[field]}
        return observation, reward, done, info


class NumpyInfo(MockEnv):
    """Reports numbers of numpy."""

    def step(self, action):
        observation, reward, done, info = super().step(action)
        position = info["position"]
        info = info | {
            "position": Vector3(*(np.float64(position[axis]) for axis in "xyz")),
            "yaw": np.float64(info["yaw"]),
            "collision": np.bool_(info["collision"]),
        }
        return observation, reward, np.bool_(done), info


class Killed(Walker):
    """Is killed in one episode as a system kills a process for its memory, as long as a file says so."""

    def __init__(self, switch):
        self.switch = Path(switch)

    def act(self, observation):
        if self.episode_id == "ep_1" and self.switch.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().act(observation)


class Forking(Walker):
    """Makes a copy of its process that returns, and one that raises, and waits for them to end."""

    def act(self, observation):
        for copies in range(2 if self.calls == 1 else 0):
            child = os.fork()
            if child == 0 and copies == 1:
                sys.exit(0)
            if child == 0:
                break
            os.waitpid(child, 0)
        return super().act(observation)


class Impostor(Walker):
    """Sends the result of another episode over the pipe of its worker."""

    def act(self, observation):
        if self.episode_id == "ep_1" and self.calls == 1:
            frame = sys._getframe()
            while frame.f_code.co_name != "_work":
                frame = frame.f_back
            result = examine(MockEnv(), Walker(), episode("ep_0"))
            connection = frame.f_locals["connection"]
            connection.send_bytes(msgspec.json.encode(result))
            connection.send_bytes(b"")
        return super().act(observation)


class HalfSent(Walker):
    """Writes the beginning of a message into the pipe of its worker, and hangs."""

    def act(self, observation):
        if self.episode_id == "ep_1":
            frame = sys._getframe()
            while frame.f_code.co_name != "_work":
                frame = frame.f_back
            os.write(frame.f_locals["connection"].fileno(), (4096).to_bytes(4, "big") + b"{")
            time.sleep(600)
        return super().act(observation)


class Promoted(Walker):
    """Makes its class privileged once a run has begun."""

    truths = 0

    def reset(self, episode_info):
        super().reset(episode_info)
        Promoted.truths += episode_info.episode is not None
        Promoted.privileged = True

    def act(self, observation):
        Promoted.truths += TRUTH in observation
        return super().act(observation)


class Unclosable(Walker):
    """Cannot be closed."""

    def close(self):
        raise SystemExit("the policy will not close")


class UnclosableWorld(MockEnv):
    """Cannot be closed."""

    def close(self):
        raise RuntimeError("the engine will not close")


def episode(name):
    return Episode(episode_id=name, goal_position=Vector3(0.75, 0, 0), instruction=f"{name}.", max_steps=6)


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    save_dataset([episode(name) for name in IDS], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def execute(dataset, out, *, workers=1, **job):
    names = {"env": "mock", "policy": "test_blame:Walker"}
    config = RunConfig(job=RunJob(**(names | job)), dataset=dataset, workers=workers)
    return run(config, out, lambda state: None)


def by_id(report):
    return {each.episode_id: each for each in report.results.episodes}


@pytest.mark.parametrize(("field", "workers"), [("yaw", 1), ("yaw", 2), ("position", 1), ("collision", 1)])
def test_a_number_that_cannot_be_used_costs_its_episode_only_and_is_named(dataset, tmp_path, field, workers):
    switch, out = tmp_path / "bad", tmp_path / "run"
    switch.write_text(field)
    options = {"env": "test_blame:BadInfo", "env_options": {"switch": str(switch)}, "workers": workers}
    results = by_id(execute(dataset, out, **options))
    fault = results["ep_1"].error
    assert (fault.side, fault.kind) == ("evaluator", "env_exception")
    assert fault.message.startswith(f"info['{field}']: expected")
    assert [results[name].success for name in IDS] == [True, False, True, True]
    assert list(finished(out)) == IDS or workers == 2
    switch.unlink()
    again = execute(dataset, out, **options)
    assert (again.done_before, again.results.success_count) == (3, 4)


@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_of_numpy_in_an_info_are_numbers(dataset, tmp_path, workers):
    execute(dataset, tmp_path / "plain")
    execute(dataset, tmp_path / "numpy", env="test_blame:NumpyInfo", workers=workers)
    plain, other = ((tmp_path / name / "results.json").read_bytes() for name in ("plain", "numpy"))
    assert plain == other


@pytest.mark.parametrize(
    ("field", "value"),
    [("ee_position", [0.0, math.inf, 0.0]), ("gripper_state", math.nan), ("phase", "fly"), ("yaw", None)],
)
def test_pick_and_place_names_what_it_cannot_measure(field, value):
    info = {
        **{"position": [0, 0, 0], "yaw": 0.0, "ee_position": [0, 0, 0], "object_position": [0, 0, 0]},
        **{"gripper_state": 0.0, "collision": False, "object_grasped": False, "phase": "reach"},
        **{"target_distance": None, "target_position": None},
    }
    exam = PickPlaceExam()
    exam.state(info)
    with pytest.raises(SimulationError, match=rf"info\['{field}'\]: expected"):
        exam.state(info | {field: value})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"headings": [0.0, math.nan]}, r"headings\[1\]: expected a finite number, found nan"),
        ({"metrics": {"mine": np.float32(1)}}, r"metrics\.mine: expected a plain number.* numpy\.float32"),
        ({"final_distance_to_goal": 1e308}, "final_distance_to_goal: expected a number within"),
        ({"status": "odd"}, r"Invalid enum value 'odd' - at `\$\.status`"),
    ],
)
def test_a_record_that_no_journal_can_hold_is_refused(change, place):
    result = examine(MockEnv(), Walker(), episode("ep"))
    encode_result(VlnExam(), result)
    with pytest.raises(EvaluatorError, match=place):
        encode_result(VlnExam(), msgspec.structs.replace(result, **change))


def test_an_episode_whose_record_cannot_be_written_leaves_its_fault_alone():
    class Odd(VlnExam):
        def record(self, episode, trace, distance):
            return super().record(episode, trace, distance) | (
                {"headings": [math.nan]} if trace.steps else {}
            )

    result = examine(MockEnv(), Walker(), episode("ep"), Odd())
    assert result.is_evaluator_fault
    assert "headings[0]: expected a finite number" in result.error.message
    assert (result.metrics, result.actions, len(result.trajectory)) == ({}, [], 1)
    assert msgspec.json.decode(msgspec.json.encode(result), type=EpisodeResult) == result


@pytest.mark.parametrize("value", [math.nan, None, "false", np.zeros(2, bool)], ids=str)
def test_a_collision_that_is_neither_true_nor_false_is_not_counted_as_one(value):
    class Odd(MockEnv):
        def step(self, action):
            observation, reward, done, info = super().step(action)
            return observation, reward, done, info | {"collision": value}

    result = examine(Odd(), Walker(), episode("ep"))
    assert (result.error.side, result.error.kind) == ("evaluator", "env_exception")
    assert result.error.message.startswith("info['collision']: expected true or false, found")


class Careless(AgentFault):
    """Does not call the constructor of its base."""

    def __init__(self):
        pass


class Unreadable(Exception):
    """Raises whenever an attribute is read."""

    def __getattribute__(self, name):
        raise RuntimeError(name)


@pytest.mark.parametrize(("error", "kind"), [(Careless, "agent_fault"), (Unreadable, "policy_exception")])
def test_an_error_that_cannot_be_read_is_still_the_policys_fault(error, kind):
    class Raising(Walker):
        def act(self, observation):
            raise error

    result = examine(MockEnv(), Raising(), episode("ep"))
    assert (result.error.side, result.error.kind) == ("agent", kind)
    assert error.__name__ in result.error.message + result.error.traceback


@pytest.mark.parametrize("method", ["reset", "step"])
def test_an_env_that_returns_no_observation_is_not_the_agents_fault(method):
    class Mute(MockEnv):
        def reset(self, episode):
            first = super().reset(episode)
            return None if method == "reset" else first

        def step(self, action):
            _, *rest = super().step(action)
            return None, *rest

    result = examine(Mute(), Walker(), episode("ep"))
    assert (result.error.side, result.error.kind) == ("evaluator", "env_exception")
    assert result.error.message == f"Mute.{method}() returned NoneType, expected a dict of observations"


def test_a_policy_that_makes_its_class_privileged_gets_no_truth(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(Promoted, "privileged", False)
    execute(dataset, tmp_path / "run", policy="test_blame:Promoted")
    assert Promoted.privileged
    assert Promoted.truths == 0
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["identity"]["privileged"] is False
    monkeypatch.setattr(Promoted, "privileged", False)
    evaluator = VLNEvaluator(MockEnv(), Promoted())
    for name in IDS:
        evaluator.evaluate_episode(episode(name))
    assert Promoted.truths == 0


def test_a_worker_that_is_killed_says_nothing_about_the_agent_and_its_episode_is_done_again(
    dataset, tmp_path
):
    switch = tmp_path / "no memory"
    switch.touch()
    options = {"policy": "test_blame:Killed", "policy_options": {"switch": str(switch)}, "workers": 2}
    report = execute(dataset, tmp_path / "run", **options)
    fault = by_id(report)["ep_1"].error
    assert (fault.side, fault.kind) == ("unknown", "worker_killed")
    assert "exit code -9" in fault.message
    summary = report.results.summary
    assert summary.error_counts == {"agent": 0, "evaluator": 0, "unknown": 1}
    assert (summary.success_rate, summary.success_rate_bounds.low) == (1.0, 0.75)
    switch.unlink()
    again = execute(dataset, tmp_path / "run", **options)
    assert (again.done_before, again.results.success_count) == (3, 4)


def test_a_policy_that_forks_writes_no_result_twice(dataset, tmp_path):
    command = [
        *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--env", "mock"),
        *("--policy", "test_blame:Forking", "--out", str(tmp_path / "one")),
    ]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, timeout=120)
    assert done.returncode == 0
    assert len((tmp_path / "one" / "episodes.jsonl").read_text().splitlines()) == 4
    report = execute(dataset, tmp_path / "two", policy="test_blame:Forking", workers=2)
    assert report.results.success_count == 4
    assert len((tmp_path / "two" / "episodes.jsonl").read_text().splitlines()) == 4


def test_a_result_of_another_episode_is_not_taken_for_this_one(dataset, tmp_path):
    report = execute(dataset, tmp_path / "run", policy="test_blame:Impostor", workers=2)
    assert [each.episode_id for each in report.results.episodes] == IDS
    fault = by_id(report)["ep_1"].error
    assert (fault.side, fault.kind) == ("unknown", "wrong_result")
    assert "'ep_0'" in fault.message
    assert report.results.success_count == 3


def test_a_message_that_never_comes_to_its_end_is_not_waited_for(dataset, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "RECEIVE_DEADLINE_S", 3.0)
    report = execute(dataset, tmp_path / "run", policy="test_blame:HalfSent", workers=2)
    fault = by_id(report)["ep_1"].error
    assert (fault.side, fault.kind) == ("agent", "policy_lost")
    assert "no answer in time" in fault.message
    assert report.results.success_count == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_what_cannot_be_closed_is_told_and_costs_nothing(dataset, tmp_path, workers):
    names = {"env": "test_blame:UnclosableWorld", "policy": "test_blame:Unclosable"}
    report = execute(dataset, tmp_path / "run", workers=workers, **names)
    assert report.results.success_count == 4
    assert sorted(report.warnings) == [
        "close() of the env UnclosableWorld failed: RuntimeError: the engine will not close",
        "close() of the policy Unclosable failed: SystemExit: the policy will not close",
    ]


def test_a_policy_that_cannot_be_closed_keeps_no_other_from_its_turn(dataset, tmp_path, capsys):
    command = ["run", "--dataset", str(dataset), "--env", "test_blame:UnclosableWorld", "--out"]
    policies = ["test_blame:Unclosable", "test_blame:Walker"]
    assert main([*command, str(tmp_path / "runs"), "--policy", *policies]) == 0
    said = capsys.readouterr()
    assert "Unclosable" in said.out
    assert "Walker" in said.out
    assert "close() of the policy Unclosable failed" in " ".join(said.err.split())


def test_results_in_python_survive_what_cannot_be_closed(dataset):
    evaluator = VLNEvaluator(UnclosableWorld(), Unclosable())
    with pytest.warns(RuntimeWarning, match=r"close\(\) of the") as caught, evaluator:
        results = evaluator.evaluate_dataset(dataset)
    assert results.success_count == 4
    assert len(caught) == 2


def test_a_worker_that_does_not_start_leaves_no_other_behind(dataset, monkeypatch):
    started = []

    class Third(pool._Worker):
        def __init__(self, job, recorders, index, environ, *, check):
            if index == 2:
                raise OSError("no process left")
            super().__init__(job, recorders, index, environ, check=check)
            started.append(self)  # else its pipe would close with the last reference, and end it by luck

    monkeypatch.setattr(pool, "_Worker", Third)
    with (
        pytest.raises(OSError, match="no process left"),
        closing(WorkerPool(RunJob(env="mock", policy="random"), 3)) as workers,
    ):
        workers.start()
    assert len(started) == 2
    deadline_s = time.monotonic() + 10
    while any(worker._process.is_alive() for worker in started) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not any(worker._process.is_alive() for worker in started)
