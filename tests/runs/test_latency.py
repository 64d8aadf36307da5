"""How long actions took: measured for every policy, kept in the journal, told where it means something."""

import json
import time
from pathlib import Path

import msgspec
import pytest
from running import finished

from proctor import cli
from proctor.agents.messages import WireFault
from proctor.core.interfaces import Policy
from proctor.core.types import Action, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.fault_words import WORDS, fault_line, fault_words
from proctor.exams.results import EpisodeResult, Fault, Timing
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.exam import VlnExam
from proctor.report.comparison_table import comparison_notes
from proctor.report.tables import score_notes
from proctor.runs.compare import compare
from proctor.runs.folder import RunFolder, read_attempts
from proctor.runs.summary import latency_of, summarise


class Thinker(Policy):
    """Takes 2 ms for an action, by the processor's own clock."""

    def act(self, observation):
        began_s = time.perf_counter()
        while time.perf_counter() - began_s < 0.002:
            pass
        return Action.FORWARD


def result(*, act_s=None, fault=None, key="ep_0"):
    timed = {} if act_s is None else {"timing": Timing(env_s=1, policy_s=1, evaluator_s=1, act_s=act_s)}
    return EpisodeResult(
        episode_id=key,
        scene_id="s",
        instruction="Go.",
        status="error" if fault else "failure",
        success=False,
        failure_reason=fault.kind if fault else "timeout",
        error=fault,
        final_distance_to_goal=1.0,
        steps=0,
        collision_count=0,
        trajectory=[Vector3(0, 0, 0)],
        headings=[0.0],
        collision_steps=[],
        actions=[],
        metrics={"success": 0.0},
        distance="euclidean",
        seed=0,
        **timed,
    )


def lost(kind, message, *, side="agent", key="ep_0"):
    return result(fault=Fault(side=side, kind=kind, message=message), key=key)


@pytest.fixture
def dataset(tmp_path):
    episodes = [
        Episode(episode_id=f"ep_{i}", scene_id="s", goal_position=Vector3(5, 0, 0), max_steps=10)
        for i in range(2)
    ]
    save_dataset(episodes, tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


@pytest.fixture
def run(dataset, capsys):
    """A run of a policy, and what was printed."""

    def done(policy):
        out = dataset.parent / policy.rpartition(":")[2]
        words = ["--dataset", str(dataset), "--policy", policy, "--env", "mock", "--out", str(out)]
        assert cli.main(["run", *words]) == 0
        return out, capsys.readouterr().out

    return done


def test_percentiles_are_over_all_actions_of_a_run_not_over_its_episodes():
    slow, fast = result(act_s=[0.1]), result(act_s=[k / 1000 for k in range(1, 100)])
    latency = latency_of([slow, fast])
    assert (latency.n, latency.worst_ms) == (100, pytest.approx(100))
    assert (latency.p50_ms, latency.p95_ms, latency.p99_ms) == pytest.approx((50.5, 95.05, 99.01))


def test_one_action_is_all_percentiles():
    latency = latency_of([result(act_s=[0.25])])
    assert (latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.worst_ms, latency.n) == (250,) * 4 + (1,)


def test_without_times_there_are_no_numbers():
    assert latency_of([]) is None
    assert latency_of([result(), result(act_s=[])]) is None


def test_journals_from_before_times_were_kept_by_action_are_read(tmp_path):
    record = msgspec.to_builtins(result(act_s=[0.1]))
    del record["timing"]["act_s"]
    journal = tmp_path / "episodes.jsonl"
    journal.write_text(json.dumps(record) + "\n")
    assert latency_of(read_attempts(journal, VlnExam)) is None


@pytest.mark.parametrize(
    ("act_s", "text"),
    [
        ([0.0123], "an action took 12 ms (median), 12 ms (p95), 12 ms (p99)"),
        ([0.00456], "an action took 4.6 ms (median), 4.6 ms (p95), 4.6 ms (p99)"),
        ([12.34], "an action took 12.3 s (median), 12.3 s (p95), 12.3 s (p99)"),
    ],
)
def test_times_are_told_with_the_digits_that_matter(act_s, text):
    assert str(latency_of([result(act_s=act_s)])) == text


def test_a_run_tells_how_long_an_agent_thinks_and_keeps_no_time_in_its_results(run, capsys):
    out, printed = run("test_latency:Thinker")
    latency = latency_of(finished(out).values())
    assert latency.n == 20
    assert latency.p50_ms >= 2
    assert f"test_latency:Thinker: {latency}" in printed
    assert "timing" not in (out / "results.json").read_text()
    assert cli.main(["results", str(out)]) == 0
    assert str(latency) in capsys.readouterr().out


def test_times_of_a_script_are_noise_but_are_kept(run):
    out, _ = run("forward")
    assert latency_of(finished(out).values()).n > 0
    script = [result(act_s=[1e-5] * 40 + [0.5])]  # the machine was busy once
    assert "an action took" not in score_notes(VlnExam, {"me": summarise(VlnExam, script)})


def test_a_model_that_thinks_at_every_tenth_action_is_no_script():
    chunked = [result(act_s=[0.3, *[1e-5] * 9])]
    assert "me: an action took 0.01 ms (median)" in score_notes(VlnExam, {"me": summarise(VlnExam, chunked)})


def test_a_comparison_tells_both_times_if_one_of_them_matters():
    slow = RunFolder(Path("slow"), {"identity": {}}, VlnExam, [result(act_s=[0.02])])
    fast = RunFolder(Path("fast"), {"identity": {}}, VlnExam, [result(act_s=[1e-5])])
    notes = comparison_notes(compare(slow, fast))
    assert "A: an action took 20 ms (median)" in notes
    assert "B: an action took 0.01 ms (median)" in notes
    assert "an action took" not in comparison_notes(compare(fast, fast))


@pytest.mark.parametrize("kind", list(WireFault))
def test_every_fault_of_the_wire_has_words_of_its_own(kind):
    assert fault_words(kind) != kind.replace("_", " ")
    assert len({*WORDS.values()}) == len(WORDS)


def test_an_unknown_fault_is_told_by_its_name():
    assert fault_words("battery_on_fire") == "battery on fire"


def test_each_kind_of_fault_is_told_with_its_side_its_words_and_its_first_message():
    episodes = [
        lost("action_timeout", "no reply in time", key="a"),
        lost("action_timeout", "not this one", key="b"),
        lost("env_exception", "RuntimeError: the world broke\nand more", side="evaluator", key="c"),
    ]
    notes = score_notes(VlnExam, {"me": summarise(VlnExam, episodes)})
    assert "me failed: 2 action_timeout\n" in notes
    assert "me: 1 of 3 episodes lost to evaluator faults and left out; SR is between 0% and 33%" in notes
    words = "agent fault action_timeout (no reply within the time for an action)"
    assert f"  {words}, first in a: no reply in time\n" in notes
    words = "evaluator fault env_exception (the world raised an error)"
    assert f"  {words}, first in c: RuntimeError: the world broke\n" in notes
    assert "not this one" not in notes


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        ("ValueError: first\nsecond", "ValueError: first"),
        ('File "agent.py", line 1\n  foo(\nSyntaxError: never closed', "SyntaxError: never closed"),
        ("no reply in time", "no reply in time"),
    ],
)
def test_a_message_in_one_line(message, line):
    assert fault_line(Fault(side="agent", kind="x", message=message)) == line
