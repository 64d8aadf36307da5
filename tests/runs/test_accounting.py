"""What an agent used and what was exchanged with it: counted once, kept whatever happens, bounded."""

import gzip
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import talking_policy
from msgspec import UNSET
from running import examine, finished, run
from served_agents import episode
from talking_policy import TalkingPolicy

from proctor.core.errors import AgentUnavailable, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Usage, total_usage
from proctor.exams.datasets import save_dataset
from proctor.exams.vln.exam import VlnExam
from proctor.runs import accounting
from proctor.runs.accounting import count_text, dollars, usage_text
from proctor.runs.agent_ids import draw_key
from proctor.runs.attempts import Patience
from proctor.runs.examiner import Examiner
from proctor.runs.folder import RunFolder, wire_file
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig
from proctor.runs.scoring import dataset_of, rescore
from proctor.runs.traces import decode_trace, encode_trace
from proctor.worlds.mock import MockEnv
from vln_evaluator import VLNEvaluator

IDS = [f"ep_{index}" for index in range(4)]
TALKING = f"{talking_policy.__file__}:TalkingPolicy"
EPISODE_USAGE = Usage(
    decisions=3, requests=3, input_tokens=3000, cached_tokens=120, output_tokens=150, cost_usd=0.75
)
"""Of an episode that goes well: five actions by three decisions."""


class SometimesAway(TalkingPolicy):
    """Asks its model, which then breaks off, in the first attempt of each process."""

    is_away = True

    def act(self, observation):
        action = super().act(observation)
        if SometimesAway.is_away:
            SometimesAway.is_away = False
            raise AgentUnavailable("the model is overloaded")
        return action


@pytest.fixture
def dataset(tmp_path):
    save_dataset([episode(name) for name in IDS], tmp_path / "episodes.json")
    return tmp_path / "episodes.json"


def configured(dataset, policy=TALKING, *, workers=1, **options):
    job = RunJob(env="mock", policy=policy, policy_options=options)
    return RunConfig(job=job, dataset=dataset, workers=workers, patience=Patience(pause_s=0.0))


def examine_whole(policy):
    examiner = Examiner(MockEnv(), policy, VlnExam(), RunJob(policy="", agent_id_key=draw_key()))
    return examiner.examine(episode())


def lines_of(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_usage_adds_up_and_a_cost_is_unknown_if_that_of_any_part_is():
    known, unknown = Usage(decisions=1, input_tokens=10, cost_usd=0.1), Usage(output_tokens=5)
    assert known + known == Usage(decisions=2, input_tokens=20, cost_usd=0.2)
    assert (known + unknown).cost_usd is None
    assert known + Usage() == known
    assert known + Usage(requests=1) == Usage(decisions=1, requests=1, input_tokens=10, cost_usd=0.1)
    assert (Usage(requests=1) + Usage(decisions=1)).cost_usd is None
    assert total_usage([]) == Usage()
    assert total_usage([Usage(cost_usd=0.1)] * 10).cost_usd == 1.0  # summed one by one it is not
    assert (known + unknown).tokens == 15


def test_an_episode_keeps_what_was_used_in_all_and_for_each_action():
    done = examine_whole(TalkingPolicy())
    assert done.result.usage == EPISODE_USAGE
    assert len(done.result.timing.act_s) == 5
    assert len(done.result.timing.decision_s) == 3
    trace = decode_trace(VlnExam(), done.trace, Path("x"))
    assert [usage.decisions for usage in trace.usage] == [1, 0, 1, 0, 1]
    assert decode_trace(VlnExam(), encode_trace(VlnExam(), "x", trace), Path("x")).usage == trace.usage


def test_a_policy_that_does_not_count_leaves_no_field_anywhere():
    class Silent(Policy):
        def act(self, observation):
            return 0

    done = examine_whole(Silent())
    assert done.result.usage is UNSET
    assert b"usage" not in done.record + done.trace
    assert b"decision_s" not in done.record
    assert done.transcript == b""
    assert decode_trace(VlnExam(), done.trace, Path("x")).usage == [None]


def test_what_was_used_before_an_error_is_kept():
    broken = examine(MockEnv(), TalkingPolicy(at=2), episode())
    assert broken.error.side == "agent"  # it broke off after its first action
    assert (broken.usage.requests, broken.usage.cost_usd) == (2, 0.5)
    away = examine(MockEnv(), TalkingPolicy(at=0), episode())
    assert (away.error.side, away.usage.requests) == ("unavailable", 1)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"input_tokens": 5}, "returned dict, expected a Usage or None"),
        (Usage(input_tokens=-1), r"input_tokens: expected an int from 0 to 1e\+09, found -1"),
        (Usage(output_tokens=1.5), "output_tokens: expected an int .*, found 1.5"),
        (Usage(requests=True), "requests: expected an int .*, found True"),
        (Usage(decisions="3"), "decisions: expected an int .*, found '3'"),
        (Usage(input_tokens=10**12), "input_tokens: expected an int from 0 to"),
        (Usage(cost_usd=math.nan), "cost_usd: expected a number .*, found nan"),
        (Usage(cost_usd=math.inf), "cost_usd: expected a number .*, found inf"),
        (Usage(cost_usd=-0.1), "cost_usd: expected a number .*, found -0.1"),
    ],
)
def test_a_usage_that_cannot_be_is_the_fault_of_the_agent(said, expected):
    result = examine(MockEnv(), TalkingPolicy(fails={"usage": said}), episode())
    assert (result.error.side, result.error.kind) == ("agent", "invalid_usage")
    assert re.search(expected, result.error.message)
    assert result.usage is UNSET


def test_a_sum_that_no_record_can_hold_is_refused_as_well():
    most = Usage(input_tokens=10**9)
    result = examine(MockEnv(), TalkingPolicy(fails={"usage": most}), episode())
    assert (result.error.kind, result.steps, result.usage) == ("invalid_usage", 1, most)


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3), MemoryError()])
def test_methods_that_raise_cost_at_most_their_episode(error):
    result = examine(MockEnv(), TalkingPolicy(fails={"usage": error}), episode())
    assert (result.error.side, result.error.kind) == ("agent", "policy_exception")
    done = examine_whole(TalkingPolicy(fails={"transcript": error}))
    assert done.result.success  # the episode was over
    note = json.loads(gzip.decompress(done.transcript))
    assert note["kind"] == "note"
    assert note["text"].startswith("TalkingPolicy.transcript() failed: ")


def test_a_transcript_that_is_no_bytes_is_replaced_by_a_note():
    done = examine_whole(TalkingPolicy(fails={"transcript": ["a"]}))
    assert done.result.success
    note = json.loads(gzip.decompress(done.transcript))
    assert note["text"] == "TalkingPolicy.transcript() returned list, expected bytes"


def test_a_transcript_that_is_too_long_is_cut_off(monkeypatch):
    monkeypatch.setattr(accounting, "MAX_TRANSCRIPT_BYTES", 100)
    done = examine_whole(TalkingPolicy())
    assert (done.result.success, len(done.transcript)) == (True, 100)


def test_one_worker_and_two_leave_the_same_results_and_transcripts(dataset, tmp_path):
    for workers in (1, 2):
        run(configured(dataset, workers=workers), tmp_path / str(workers))
    one, two = ((tmp_path / str(workers)) for workers in (1, 2))
    assert (one / "results.json").read_bytes() == (two / "results.json").read_bytes()
    results = json.loads((one / "results.json").read_text())
    assert results["summary"]["usage"]["cost_usd"] == 3.0
    assert "usage_unscored" not in results["summary"]
    assert results["episodes"][0]["usage"] == msgspec.to_builtins(EPISODE_USAGE)
    for name in IDS:
        assert wire_file(one, name).read_bytes() == wire_file(two, name).read_bytes()
    kinds = [line["kind"] for line in lines_of(wire_file(one, "ep_0"))]
    assert kinds == ["picture", *["request", "reply", "decision"] * 3]


def test_attempts_that_are_thrown_away_are_counted_apart(dataset, tmp_path):
    SometimesAway.is_away = True
    report = run(configured(dataset, f"{__file__}:SometimesAway"), tmp_path / "run")
    summary = report.results.summary
    assert (report.results.success_count, summary.usage.requests) == (4, 12)
    assert (summary.usage_unscored.requests, summary.usage_unscored.cost_usd) == (1, 0.25)
    again = RunFolder.open(tmp_path / "run")
    assert again.results.summary == summary
    assert not again.warnings
    assert [attempt.error.side for attempt in again.repeated] == ["unavailable"]
    rescored = rescore(again, dataset_of(again), tmp_path / "rescored")
    assert rescored.results.summary == summary
    assert RunFolder.open(tmp_path / "rescored").results.summary == summary
    assert lines_of(wire_file(tmp_path / "rescored", "ep_1")) == lines_of(wire_file(tmp_path / "run", "ep_1"))
    assert decode_trace(VlnExam(), (tmp_path / "rescored/traces/ep_1.trace").read_bytes(), Path("x")).usage[0]


def test_the_evaluator_of_python_counts_them_as_well(dataset, monkeypatch):
    monkeypatch.setattr(Patience, "pause_after_s", lambda self, failures: 0.0)
    SometimesAway.is_away = True
    with VLNEvaluator(MockEnv(), SometimesAway()) as evaluator:
        summary = evaluator.evaluate_dataset(dataset).summary
    assert (summary.usage.requests, summary.usage_unscored.requests) == (12, 1)


def test_a_run_that_is_killed_keeps_what_it_has_spent(dataset, tmp_path):
    out = tmp_path / "run"
    command = [
        *(sys.executable, "-m", "proctor.cli", "run", "--dataset", str(dataset), "--env", "mock"),
        *("--policy", f"{Path(__file__).with_name('hanging_policy.py')}:HangsInTheThird", "--out", str(out)),
    ]
    hangs = tmp_path / "hangs"
    process = subprocess.Popen(command, env={**os.environ, "HANGS": str(hangs)}, stdout=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 120
    while not hangs.exists() and time.monotonic() < deadline_s and process.poll() is None:
        time.sleep(0.02)
    assert hangs.exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(finished(out)) == 2
    spent = RunFolder.open(out).results.summary.usage
    assert spent == EPISODE_USAGE + EPISODE_USAGE
    os.environ.pop("HANGS", None)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert RunFolder.open(out).results.summary.usage.requests == 12


class Killed(TalkingPolicy):
    """Is killed from outside, as for want of memory, in the first attempt at its second decision."""

    def __init__(self, *, flag):
        super().__init__()
        self._flag = Path(flag)

    def act(self, observation):
        if self._step == 3:
            with suppress(FileExistsError):
                self._flag.touch(exist_ok=False)  # of two workers one comes first
                os.kill(os.getpid(), signal.SIGKILL)
        return super().act(observation)


def test_what_a_worker_that_is_killed_has_used_is_not_lost(dataset, tmp_path):
    config = configured(dataset, f"{__file__}:Killed", workers=2, flag=str(tmp_path / "flag"))
    summary = run(config, tmp_path / "run").results.summary  # its episode is done again at once
    (lost,) = RunFolder.open(tmp_path / "run").repeated
    assert (lost.error.side, lost.usage.requests, lost.usage.cost_usd) == ("unknown", 2, 0.5)
    assert (summary.usage.requests, summary.usage_unscored.requests) == (12, 2)


def test_a_record_with_a_usage_that_no_run_could_write_is_refused(dataset, tmp_path):
    run(configured(dataset), tmp_path / "run")
    journal = tmp_path / "run/episodes.jsonl"
    journal.write_text(journal.read_text().replace('"input_tokens":3000', '"input_tokens":-3', 1))
    with pytest.raises(
        UserError, match=r"line 1: episode 'ep_0', usage.input_tokens: expected a number from 0"
    ):
        RunFolder.open(tmp_path / "run")


def test_a_changed_usage_is_found_by_the_two_files(dataset, tmp_path):
    run(configured(dataset), tmp_path / "run")
    path = tmp_path / "run/results.json"
    results = msgspec.json.decode(path.read_bytes())
    results["summary"]["usage"]["cost_usd"] = 0.01
    path.write_bytes(msgspec.json.encode(results))
    (warning,) = RunFolder.open(tmp_path / "run").warnings
    assert "summary.usage.cost_usd of results.json is 0.01, the episodes of episodes.jsonl give 3" in warning


def test_words():
    assert usage_text(EPISODE_USAGE) == "3 decisions, 3.0k tokens in (4 % cached), 150 out, $0.75"
    assert usage_text(Usage(decisions=1, repairs=2)) == "1 decision, 2 repaired, 0 tokens in, 0 out"
    assert [count_text(n) for n in (0, 999, 1000, 9949, 62_000, 1_200_000, 3 * 10**9)] == [
        *("0", "999", "1.0k", "9.9k", "62k", "1.2M", "3.0G")
    ]
    assert [dollars(x) for x in (0, 0.00423, 0.0999, 0.21, 12.5)] == [
        "$0.00",
        "$0.0042",
        "$0.10",
        "$0.21",
        "$12.50",
    ]
