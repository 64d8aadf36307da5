"""`proctor run --dry-run`: all checks of a run, a few episodes in a temporary folder, and nothing written."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import namedtuple
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from proctor import cli
from proctor.cli.dry_run import range_text, size_text
from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Usage, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import Timing
from proctor.exams.vln.episode import Episode
from proctor.runs import forecast as forecasts
from proctor.runs.budget import RunBudget
from proctor.runs.executors import NoOptions
from proctor.runs.forecast import DiskUse, Forecast, Measurement, Range, forecast
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.runs.recorder import RecordingConfig
from proctor.runs.run import run
from proctor.runs.sharing import SharedRun
from proctor.worlds.mock import MockEnv

TESTS = Path(__file__).parent
SERVER = Path(__file__).parents[2] / "examples" / "chat_server.py"
NOTHING_ON_DISK = DiskUse(journal=0, traces=0, wire=0, steps=0, pictures=0)


class Hanging(Policy):
    """Answers in its first episodes, as many as it is told, then never; it may catch what would end it."""

    def __init__(self, good=0, is_stubborn=False):
        self.good, self.begun, self.caught = good, 0, BaseException if is_stubborn else ()

    def reset(self, episode_info):
        self.begun += 1

    def act(self, observation):
        if self.begun > self.good:
            try:
                threading.Event().wait(600)
            except self.caught:
                threading.Event().wait(600)
        return 0


class Raising(Policy):
    """Has a bug."""

    def act(self, observation):
        raise ValueError("no idea")


class Interrupted(Policy):
    """Is there when somebody presses Ctrl-C."""

    def act(self, observation):
        raise KeyboardInterrupt


class Absent(Policy):
    """Is never there."""

    def reset(self, episode_info):
        raise ConnectionRefusedError("nobody at home")

    def act(self, observation):
        return 0


class Spender(Policy):
    """Says what it uses."""

    def act(self, observation):
        return 0

    def usage(self):
        return Usage(decisions=1, requests=1, input_tokens=1)


class Robot(MockEnv):
    """A world with a robot that may be real."""

    def __init__(self, *, attach):
        super().__init__()

    def step(self, action):
        raise AssertionError("the robot was driven")


class BrokenEnv(MockEnv):
    """A world that fails."""

    def step(self, action):
        raise RuntimeError("the floor fell out")


class Cluster:
    """Stands for an executor that works elsewhere: what is called is written down."""

    options_type = NoOptions
    fills_cluster = True
    called: ClassVar[list[str]] = []

    def __init__(self, job, workers, recorders=None, *, check=True):
        self.called.append(f"made with {workers}")

    def check(self, episodes):
        self.called.append(f"check {len(episodes)}")
        return ["the cluster is small"]

    def start(self):
        self.called.append("start")

    def run(self, attempts):
        raise AssertionError("nothing may be run on a cluster")

    def close(self):
        self.called.append("close")
        return []


class LonelyCluster(Cluster):
    """A cluster that nobody can reach."""

    def start(self):
        raise UserError("no cluster at HOST:6379")


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Where temporary folders are made; empty again in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    made_there = partial(tempfile.TemporaryDirectory, dir=folder)
    monkeypatch.setattr(forecasts, "tempfile", SimpleNamespace(TemporaryDirectory=made_there))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(episode_id=f"ep_{i}", scene_id=f"s{i % 3}", goal_position=Vector3(5, 0, 0), max_steps=20)
        for i in range(6)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def proctor(capsys, dataset):
    """Call `proctor run` with the dataset in the mock world; return exit code, output and errors."""

    def called(*words, env="mock"):
        code = cli.main(["run", "--dataset", str(dataset), "--env", env, *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


@pytest.fixture
def plan(dataset, tmp_path):
    def planned(policy="forward", out="out", **more):
        return plan_run(
            RunConfig(job=RunJob(policy=policy, env="mock"), dataset=dataset, **more), tmp_path / out
        )

    return planned


def files_in(folder):
    return {
        path.relative_to(folder): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def test_a_dry_run_tells_what_will_happen_and_writes_nothing(proctor, tmp_path):
    out = tmp_path / "out"
    words = ["--policy", "forward", "random", "--workers", 2, "--save-steps", "--out", out]
    code, printed, complaints = proctor(*words, "--dry-run")
    assert (code, complaints) == (0, "")
    rows = [line.split() for line in printed.splitlines() if line.startswith((" forward", " random"))]
    assert [row[:4] for row in rows] == [["forward", "6", "3", "0"], ["random", "6", "3", "0"]]
    assert "Episodes are done here, in 2 processes. Recorded are steps." in printed
    assert "forward: measured with 3 episodes\n" in printed
    assert f"Nothing was written to {out}." in printed
    assert not out.exists()


def test_what_was_done_before_stays_as_it_is_and_is_not_counted_again(proctor, tmp_path):
    out = tmp_path / "out"
    assert proctor("--policy", "forward", "--out", out)[0] == 0
    journal = out / "episodes.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]) + b'{"torn')
    (out / "results.json").unlink()
    before = files_in(out)
    code, printed, _ = proctor("--policy", "forward", "--out", out, "--dry-run")
    assert code == 0
    (row,) = [line.split() for line in printed.splitlines() if line.startswith(" forward")]
    assert (row[1], row[3]) == ("4", "2")
    assert files_in(out) == before
    assert proctor("--policy", "forward", "--out", out)[0] == 0
    done = files_in(out)
    code, printed, _ = proctor("--policy", "forward", "--out", out, "--dry-run")
    assert (code, files_in(out)) == (0, done)
    assert "forward: all 6 episodes were done before; nothing to do" in printed


@contextmanager
def locked(out):
    with (out / "episodes.jsonl").open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def problems(tmp_path):
    """Commands that cannot be run, and what is done before them."""
    out = tmp_path / "out"
    return {
        "no such policy": ["--policy", "forwad"],
        "another run": ["--policy", "random", "--out", out],
        "in use": ["--policy", "forward", "--out", out],
        "not a folder": ["--policy", "forward", "--out", tmp_path / "episodes.json" / "out"],
        "no agent": ["--policy", "ws://127.0.0.1:9", "--policy-option", "connect_timeout_s=1"],
        "no such executor": ["--policy", "forward", "--executor", "cloud"],
        "no cluster": ["--policy", "forward", "--executor", "test_forecast:LonelyCluster"],
        "option": ["--policy", "forward", "--executor-option", "color=blue"],
        "policy option": ["--policy", "forward", "--policy-option", "color=blue", "--out", tmp_path / "new"],
        "fault rate": ["--policy", "forward", "--max-fault-rate", "3"],
    }


@pytest.mark.parametrize("name", list(problems(Path())))
def test_a_problem_of_the_run_is_told_by_the_dry_run_in_the_same_words(name, proctor, tmp_path, capsys):
    assert proctor("--policy", "forward", "--episodes", 6, "--out", tmp_path / "out")[0] == 0
    journal = tmp_path / "out" / "episodes.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    words = problems(tmp_path)[name]
    with locked(tmp_path / "out"):
        code, _, complaint = proctor(*words)
        assert code == 2
        assert complaint.startswith("error: ")
        assert proctor(*words, "--dry-run")[::2] == (2, complaint)


def test_a_run_that_others_are_doing_is_in_use_unless_one_would_join_it(proctor, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with closing(SharedRun(out, 60.0)) as shared:
        assert shared.take_journal() is None
        code, _, complaint = proctor("--policy", "forward", "--out", out)
        assert (code, f"in use by process {os.getpid()} on" in complaint) == (2, True)
        before = files_in(out)
        assert proctor("--policy", "forward", "--out", out, "--dry-run")[::2] == (2, complaint)
        assert proctor("--policy", "forward", "--out", out, "--join", "--dry-run")[0] == 0
        assert files_in(out) == before
    assert proctor("--policy", "forward", "--out", out, "--dry-run")[0] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_found(proctor, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    code, _, complaint = proctor("--policy", "forward", "--out", closed / "out", "--dry-run")
    assert (code, "Permission denied" in complaint) == (2, True)


def test_episodes_that_the_run_refuses_are_refused(proctor, dataset):
    dataset.write_text(dataset.read_text().replace('"ep_1"', '"ep_0"'))
    code, _, complaint = proctor("--policy", "forward")
    assert code == 2
    assert proctor("--policy", "forward", "--dry-run")[::2] == (2, complaint)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("good", [0, 1])
def test_a_measurement_ends_in_time_whatever_the_agent_does(workers, good, proctor, monkeypatch, tmp_path):
    monkeypatch.setattr(forecasts, "SAMPLE_S", 0.5)
    monkeypatch.setattr(forecasts, "FIRST_EPISODE_S", 60.0 if good else 1.5)
    words = ["--policy", "test_forecast:Hanging", "--policy-option", f"good={good}", "--workers", workers]
    code, printed, _ = proctor(*words, "--out", tmp_path / "out", "--dry-run")
    assert code == 0
    done = int(re.search(r"measured with (\d) of 3 episodes in time", printed)[1])
    assert good <= done <= good * workers
    (row,) = [line for line in printed.splitlines() if line.startswith(" test_fore")]
    assert ("over" in row) == (not good)
    assert not (tmp_path / "out").exists()


def test_a_measurement_ends_though_the_agent_catches_what_ends_it(plan, monkeypatch):
    monkeypatch.setattr(forecasts, "FIRST_EPISODE_S", 1.0)
    hanging = plan("test_forecast:Hanging")
    job = replace(hanging.config.job, policy_options={"is_stubborn": True})
    found = forecasts.forecast(hanging._replace(config=replace(hanging.config, job=job)))
    assert not found.measured.results


def test_ctrl_c_ends_it_as_it_ends_a_run(proctor, tmp_path):
    code, _, complaint = proctor("--policy", "test_forecast:Interrupted", "--dry-run")
    assert (code, "interrupted" in complaint) == (130, True)


def test_faults_are_told_and_count_as_in_a_run(proctor, tmp_path):
    words = ["--policy", "test_forecast:Raising", "--out", tmp_path / "out", "--dry-run"]
    code, _, complaint = proctor(*words)
    assert (code, "agent fault policy_exception: ValueError: no idea" in complaint) == (0, True)
    words = ["--policy", "forward", "--out", tmp_path / "out", "--dry-run"]
    code, _, complaint = proctor(*words, env="test_forecast:BrokenEnv")
    assert (code, "evaluator fault env_exception" in complaint) == (1, True)
    words += ["--max-fault-rate", "1"]
    assert proctor(*words, env="test_forecast:BrokenEnv")[0] == 0


def test_an_agent_that_goes_away_is_told_with_the_exit_code_of_a_run(proctor, tmp_path):
    words = ["--policy", "test_forecast:Absent", "--unavailable-pause", 0, "--out", tmp_path / "out"]
    code, _, complaint = proctor(*words, "--dry-run")
    assert (code, "the agent is unavailable" in complaint, "nobody at home" in complaint) == (3, True, True)


def test_a_cluster_is_reached_but_does_no_episode_and_time_is_divided_by_its_workers(
    proctor, tmp_path, monkeypatch
):
    monkeypatch.setattr(Cluster, "called", called := [])
    monkeypatch.setitem(sys.modules, "test_forecast", sys.modules[__name__])
    words = ["--policy", "forward", "--executor", "test_forecast:Cluster", "--out", tmp_path / "out"]
    code, printed, _ = proctor(*words, "--workers", 4, "--dry-run")
    assert code == 0
    assert called == ["made with 4", "check 6", "start", "close"]
    assert "note: the cluster is small" in printed
    assert "forward: measured with 3 episodes here in one process, divided by 4 workers" in printed
    _, printed, _ = proctor(*words, "--dry-run")
    assert "with as many workers as there is room for" in printed
    assert "here in one process, as one worker would do it" in printed
    monkeypatch.setattr(Cluster, "fills_cluster", False)
    _, printed, _ = proctor(*words, "--dry-run")
    assert "by the executor test_forecast:Cluster with 1 worker" in printed


def test_a_model_that_costs_money_is_not_asked(proctor, tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, str(SERVER), "--port", "0", "--latency", "0"]
    with log.open("w") as stream:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
    try:
        address = "chat+" + server.stdout.readline().split()[-1]
        words = ["--policy", address, "--policy-option", "model=demo", "--out", tmp_path / "out"]
        code, printed, _ = proctor(*words, "--dry-run")
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert code == 0
    assert "measured with 3 episodes of the policy random" in printed
    assert "its own time comes on top" in printed


def test_a_policy_with_a_budget_is_not_asked_either(plan):
    spender = "test_forecast:Spender"
    assert forecast(plan(spender)).measured.policy == spender
    told = forecast(plan(spender, budget=RunBudget(tokens=1000)))
    assert told.measured.policy == "random"
    assert all(result.usage is UNSET for result in told.measured.results)


def test_why_no_other_policy_can_be_measured_in_its_place_is_told(plan, monkeypatch):
    def refused(*_, **__):
        raise UserError("random knows no such exam")

    monkeypatch.setattr("proctor.runs.forecast.run", refused)
    told = forecast(plan("test_forecast:Spender", budget=RunBudget(tokens=1000)))
    assert told.unmeasured_because.endswith("was to take its place, and cannot: random knows no such exam")


def test_a_robot_that_is_there_is_not_driven(dataset, tmp_path):
    job = RunJob(policy="test_forecast:Raising", env="test_forecast:Robot", env_options={"attach": True})
    told = forecast(plan_run(RunConfig(job=job, dataset=dataset), tmp_path / "out"))
    assert (told.measured, told.left) == (None, 6)
    assert told.unmeasured_because == "the robot is not driven for a forecast"


def test_the_disk_is_what_a_run_needs_and_too_small_a_one_is_told(plan, proctor, tmp_path, monkeypatch):
    recording = RecordingConfig(frames=True, sensors=True)
    told = forecast(plan(recording=recording))
    assert not (tmp_path / "out").exists()
    run(plan(recording=recording), lambda progress: None)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    needed = sum(max(path.stat().st_size, 512 * path.stat().st_blocks) for path in files)
    assert told.disk_bytes == pytest.approx(needed, rel=0.3)
    usage = namedtuple("Usage", "total used free")(10**9, 10**9 - 1000, 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    code, _, complaint = proctor("--policy", "forward", "--out", tmp_path / "new", "--dry-run")
    assert code == 0
    assert "warning: the disk of" in complaint
    assert "is too small: about" in complaint


def test_frames_take_no_more_than_their_budget():
    disk = DiskUse(journal=100, traces=10, wire=1, steps=9, pictures=1000)
    measured = Measurement(results=[], asked=3, start_s=0, waited_s=0, disk=disk, policy="p")
    facts = Forecast(
        label="p", left=50, scenes=1, done_before=0, notes=[], workers=1, is_local=True, measured=measured
    )
    assert facts.disk_bytes == 50 * 1120
    assert replace(facts, frames_budget_bytes=7).disk_bytes == 50 * 120 + 7


def measurement(*times_s):
    results = [
        SimpleNamespace(timing=Timing(env_s=seconds, policy_s=0, evaluator_s=0)) for seconds in times_s
    ]
    return Measurement(results=results, asked=3, start_s=4.0, waited_s=30.0, disk=NOTHING_ON_DISK, policy="p")


def test_the_range_is_wider_if_episodes_differ_and_never_narrow():
    assert measurement(2.0, 2.0, 2.0).episode_s == pytest.approx((1.6, 2.0, 2.5))
    low, middle, high = measurement(1.0, 2.0, 6.0).episode_s
    assert middle == pytest.approx(3.0)
    assert 0.75 < low < 2.0
    assert 4.0 < high < 12.0
    assert measurement(5.0).episode_s == pytest.approx((2.5, 5.0, 10.0))
    assert measurement().episode_s == (30.0, float("inf"), float("inf"))


def test_a_run_takes_its_start_and_its_share_of_the_episodes():
    facts = Forecast(label="p", left=100, scenes=9, done_before=0, notes=[], workers=4, is_local=True)
    assert facts.time_s is None
    assert replace(facts, measured=measurement(2.0, 2.0)).time_s == pytest.approx((44, 54, 66.5))
    few = replace(facts, left=2, measured=measurement(2.0, 2.0))
    assert few.time_s.middle == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (Range(0.2, 0.5, 0.9), "up to 1 s"),
        (Range(40.2, 50, 69.1), "40 to 70 s"),
        (Range(170, 200, 300), "2 to 5 min"),
        (Range(5400, 9000, 14000), "1.5 to 4 h"),
        (Range(130, float("inf"), float("inf")), "over 130 s"),
        (Range(400_000, float("inf"), float("inf")), "over 111 h"),
    ],
)
def test_ranges_of_time_are_rounded_outwards(seconds, text):
    assert range_text(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 kB"), (1, "1 kB"), (340_200, "341 kB"), (999_000, "1.0 MB"), (76e9, "76 GB"), (1.5e12, "1.5 TB")],
)
def test_sizes_are_told_in_few_digits(size, text):
    assert size_text(size) == text


def test_in_process_and_workers_are_here(plan):
    for name, workers in (("in-process", 1), ("workers", 2)):
        told = forecast(plan(executor=name, workers=workers))
        assert (told.is_local, told.workers) == (True, workers)
        assert len(told.measured.results) == 3
