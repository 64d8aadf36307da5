"""What a run takes: measured in the process that does an episode, kept in the journal, told in one line."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from running import finished
from running import run as do_run

from proctor import cli
from proctor.core.errors import InvalidFile
from proctor.core.interfaces import Policy
from proctor.core.types import Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import EpisodeResult, Timing
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.report.page_data import judge, page_data, page_of
from proctor.report.run_record import read_runs
from proctor.runs.folder import RunFolder, read_attempts
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.resources import METER, RunResources, duration_text, resources_of

TESTS = Path(__file__).parent
BURNT_S, BURNT_BY_CHILD_S = 0.2, 1.5
BALLAST_BYTES = 300_000_000
BURN = f"import time\nwhile time.process_time() < {BURNT_BY_CHILD_S}: pass"


class Burner(Policy):
    """Uses CPU time in its first episode: its own, and that of a child."""

    def __init__(self):
        self.episodes = 0

    def reset(self, episode_info):
        self.episodes += 1

    def act(self, observation):
        if self.episodes == 1:
            until_s = time.process_time() + BURNT_S
            while time.process_time() < until_s:
                pass
            subprocess.run([sys.executable, "-c", BURN], check=True)
        return 0


class Hoarder(Policy):
    """Holds much memory for a moment."""

    def act(self, observation):
        return int(bytes([1]) * BALLAST_BYTES == b"")


class Dying(Policy):
    """Thinks for a moment, then its process is gone."""

    def act(self, observation):
        time.sleep(0.1)
        os._exit(3)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(episode_id=f"ep_{i}", scene_id="s", goal_position=Vector3(5, 0, 0), max_steps=5)
        for i in range(3)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def timings(dataset, tmp_path):
    """What the records of a run say, in the order in which its episodes were done."""

    def done(policy, workers=None, executor=""):
        job = RunJob(policy=f"test_resources:{policy}", env="mock")
        config = RunConfig(job=job, dataset=dataset, workers=workers, executor=executor)
        do_run(config, tmp_path / policy)
        return [result.timing for result in read_attempts(tmp_path / policy / "episodes.jsonl", VlnExam)]

    return done


def attempt(key, began="", took_s=10.0, **more):
    if began:
        more["began"] = datetime.fromisoformat(f"2026-03-01T{began}+00:00")
    return EpisodeResult(
        episode_id=key,
        scene_id="s",
        instruction="Go.",
        status="failure",
        success=False,
        failure_reason="timeout",
        error=None,
        steps=0,
        trajectory=[Vector3(0, 0, 0)],
        actions=[],
        metrics={"success": 0.0},
        seed=0,
        timing=Timing(env_s=took_s / 2, policy_s=took_s / 4, evaluator_s=took_s / 4, **more),
    )


def test_wall_time_is_how_long_at_least_one_episode_was_under_way():
    overlapping = [attempt("a", "10:00:05"), attempt("b", "10:00:00"), attempt("c", "10:00:02", took_s=1.0)]
    assert resources_of(overlapping).wall_s == pytest.approx(15)
    with_pause = [*overlapping, attempt("d", "23:00:00", took_s=0.5)]
    assert resources_of(with_pause).wall_s == pytest.approx(15.5)


def test_a_clock_that_was_wrong_cannot_make_a_run_longer_than_its_episodes():
    one_s = [attempt("a", "10:00:00"), attempt("b", "03:00:00"), attempt("c", "22:00:00")]
    assert resources_of(one_s).wall_s == pytest.approx(30)


def test_cpu_time_is_added_up_and_of_memory_the_most_is_told_with_attempts_that_do_not_count():
    attempts = [
        attempt("a", "10:00:00", cpu_s=20.0, peak_mb=310.0, host="one"),
        attempt("a", "10:00:10", cpu_s=13.0, peak_mb=250.0, host="two"),
        attempt("b", "10:00:18", took_s=1.0, cpu_s=1.0, peak_mb=200.0, host="one"),
    ]
    found = resources_of(attempts)
    assert found == RunResources(
        episodes=2, wall_s=pytest.approx(20), cpu_s=34.0, peak_mb=310.0, hosts=("one", "two")
    )
    text = "2 episodes in 20 s (6.0 a minute), 34 s of CPU, at most 310 MB in a worker, on 2 hosts"
    assert str(found) == text


def test_records_of_earlier_versions_are_read_and_said_to_be_unmeasured(tmp_path):
    record = msgspec.to_builtins(attempt("old"))
    assert "began" not in record["timing"]
    (tmp_path / "episodes.jsonl").write_text(json.dumps(record) + "\n")
    old = read_attempts(tmp_path / "episodes.jsonl", VlnExam)
    assert resources_of(old) is None
    mixed = resources_of([*old, attempt("new", "10:00:00")])
    assert str(mixed) == "1 episode in 10 s, 1 more not measured"
    assert resources_of([]) is None


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("cpu_s", 1e300, "timing.cpu_s: expected a number within"),
        ("evaluator_s", -1e300, "timing.evaluator_s: expected a number within"),
        ("began", "yesterday", "Invalid RFC3339"),
        ("began", "2026-03-01T10:00:00", "Expected `datetime` with a timezone"),
        ("peak_mb", "much", "Expected `float"),
    ],
)
def test_a_record_with_times_that_cannot_be_is_refused(field, value, complaint, tmp_path):
    record = msgspec.to_builtins(attempt("a", "10:00:00"))
    record["timing"][field] = value
    (tmp_path / "episodes.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(InvalidFile, match=complaint):
        read_attempts(tmp_path / "episodes.jsonl", VlnExam)


@pytest.mark.parametrize("executor", ["in-process", "workers"])
def test_cpu_time_is_that_of_the_process_and_its_children_and_each_second_counts_once(timings, executor):
    METER.charge(Timing(env_s=0, policy_s=0, evaluator_s=0, **METER.read()))  # what other tests have used
    first, second, third = timings("Burner", executor=executor)
    assert first.cpu_s >= BURNT_S + BURNT_BY_CHILD_S
    assert second.cpu_s + third.cpu_s < BURNT_S + BURNT_BY_CHILD_S
    now = datetime.now(UTC)
    assert first.began < second.began < third.began <= now
    assert {timing.host for timing in (first, second, third)} == {os.uname().nodename}


def test_all_cpu_time_of_a_process_is_charged_to_its_episodes():
    code = """
import time
from proctor.runs.resources import METER
from proctor.exams.results import Timing
charged_s = 0.0
for _ in range(3):
    until_s = time.process_time() + 0.05
    while time.process_time() < until_s: pass
    timing = Timing(env_s=0, policy_s=0, evaluator_s=0, **METER.read())
    METER.charge(timing)
    charged_s += timing.cpu_s
print(charged_s, time.process_time())
"""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    charged_s, used_s = map(float, ran.stdout.split())
    assert charged_s == pytest.approx(used_s, rel=0.05)


def test_a_copy_of_this_process_begins_with_no_cpu_time_charged():
    timing = Timing(env_s=0, policy_s=0, evaluator_s=0, **METER.read())
    METER.charge(timing)
    assert METER.read()["cpu_s"] < timing.cpu_s
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        until_s = time.process_time() + 0.05
        while time.process_time() < until_s:
            pass
        os.write(writer, str(METER.read()["cpu_s"]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert float(os.read(reader, 100)) >= 0.05
    os.close(reader)
    os.close(writer)


def test_memory_is_the_most_that_was_held(timings):
    first, *_ = timings("Hoarder", executor="workers")
    assert first.peak_mb > BALLAST_BYTES / 1e6


def test_memory_of_the_process_that_started_this_one_is_not_counted():
    ballast = bytes([1]) * BALLAST_BYTES
    code = "from proctor.runs.resources import METER; print(METER.read()['peak_mb'])"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert len(ballast) / 1e6 > float(ran.stdout) > 10


def test_of_a_process_that_was_lost_it_is_kept_when_and_where_the_episode_began(timings):
    for timing in timings("Dying", executor="workers"):
        assert timing.host == os.uname().nodename
        assert timing.duration_s >= 0.1
        assert (datetime.now(UTC) - timing.began).total_seconds() >= timing.duration_s
        assert not timing.cpu_s
        assert not timing.peak_mb


def test_a_run_tells_what_it_took_in_terminal_and_report_and_keeps_it_out_of_its_results(
    dataset, tmp_path, capsys
):
    out = tmp_path / "run"
    words = ["--dataset", str(dataset), "--policy", "forward", "--env", "mock", "--out", str(out)]
    assert cli.main(["run", *words]) == 0
    took = str(RunFolder.open(out).resources)
    assert took.startswith("3 episodes in ")
    assert f"forward: {took}\n" in capsys.readouterr().out
    assert all(timing.began for timing in (result.timing for result in finished(out).values()))
    assert not {"began", "timing", "cpu_s", "host"} & {
        key for episode in json.loads((out / "results.json").read_bytes())["episodes"] for key in episode
    }
    assert cli.main(["results", str(out)]) == 0
    assert took in capsys.readouterr().out
    runs, _ = read_runs([out])
    judged = judge(runs)
    data = page_data(runs, judged, page_of(runs, judged), {}, [])
    assert data["runs"][0]["took"] == took
    (out / "episodes.jsonl").unlink()
    assert RunFolder.open(out).resources is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (250, "4 min 10 s"),
        (3599.7, "1 h"),
        (12000, "3 h 20 min"),
    ],
)
def test_durations_are_told_as_people_say_them(seconds, text):
    assert duration_text(seconds) == text
