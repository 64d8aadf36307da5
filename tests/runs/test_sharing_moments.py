"""Shared runs at the worst moments: a process is killed, sleeps or sees late names at a chosen line."""

import errno
import os
import shutil
import time
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from shared_runs import failed, plan_of_one_episode, published

from proctor.core.errors import UserError
from proctor.runs import joining, journal, leases, ledger, recorder, sharing
from proctor.runs.attempts import Attempts
from proctor.runs.folder import read_attempts
from proctor.runs.joining import await_run, begin_run, end_joined_run, join_run
from proctor.runs.journal import JournalTakenOver
from proctor.runs.leases import Holder
from proctor.runs.ledger import Ledger
from proctor.runs.plan import plan_run
from proctor.runs.recordings import RECORDINGS, recording_folder
from proctor.runs.run import run as run_plan
from proctor.runs.sharing import Claim, SharedRun


@pytest.fixture
def plan(tmp_path):
    return plan_of_one_episode(tmp_path, lease_s=1.0)


@pytest.fixture
def no_locks(monkeypatch):
    """As on two hosts that share a disk without locks."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(journal.fcntl, "flock", refuse)


@pytest.fixture
def become(monkeypatch):
    """Let what follows be done by another process of another host, which nobody can look up."""

    def as_process(number):
        monkeypatch.setattr(Holder, "this", classmethod(lambda cls: cls(host="other", process=number)))

    return as_process


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def begin(plan, stack):
    return begin_run(plan_run(plan.config, plan.out), stack, print, can_share=True)


def fall_asleep(shared, folder):
    """Let a process give no sign of life any more, and let its leases run out."""
    shared._leases._is_closed.set()
    with shared._leases._lock:  # it may be giving one right now
        for lease in (folder / "work" / "leases").iterdir():
            os.utime(lease, (1, 1))


def sides(plan):
    """Return whose fault the attempts in the journal were, if anybody's."""
    attempts = read_attempts(plan.out / "episodes.jsonl", plan.dataset.exam)
    return [result.error and result.error.side for result in attempts]


def test_who_slept_past_the_end_of_its_run_has_no_lease_of_the_next_command(plan, stack, no_locks, become):
    sleeper = begin(plan, stack)
    sleeper.shared.claim("e")
    fall_asleep(sleeper.shared, plan.out)
    become(7)
    with ExitStack() as helping:
        joined, shared = join_run(plan, helping)
        assert shared.claim("e").is_ours
        published(plan, shared, "evaluator")
        shared.settle("e", is_scored=False, is_again=False)
        end_joined_run(joined, shared, Ledger(joined, None, shared))
    assert not (plan.out / "work").exists()
    later = begin(plan, stack)
    assert later.shared.claim("e").is_ours
    assert not sleeper.shared.holds_journal
    with pytest.raises(JournalTakenOver):
        sleeper.journal.append("e", failed(plan, "agent").record)
    sleeper.shared.settle("e", is_scored=True, is_again=False)
    sleeper.shared.close()
    become(8)
    third = SharedRun(plan.out, 60.0)
    assert third.claim("e").is_held
    assert third.take_journal() is not None
    assert later.shared.holds_journal
    third.close()


@pytest.mark.parametrize("is_written", [True, False])
def test_a_fault_that_was_published_for_an_earlier_command_is_tried_again(plan, monkeypatch, is_written):
    with ExitStack() as first:
        begun = begin(plan, first)
        begun.shared.claim("e")
        published(plan, begun.shared, "evaluator")
        begun.shared.settle("e", is_scored=False, is_again=False)
        if is_written:  # and it is killed before it removes what was published
            monkeypatch.setattr(SharedRun, "take_in", lambda *_: None)
            Ledger(*begun).collect()
            monkeypatch.undo()
    report = run_plan(plan_run(plan.config, plan.out), lambda _: None)
    assert report.results.total_episodes == 1
    assert report.done_here == 1
    assert sides(plan) == ["evaluator", None]
    assert not (plan.out / "work").exists()


def test_nobody_ends_a_run_while_another_process_does_an_episode_again(plan, stack, become, monkeypatch):
    monkeypatch.setattr(ledger, "LATE_NAMES_S", 0.1)
    become(1)
    with ExitStack() as first:
        begun = begin(plan, first)
        begun.shared.claim("e")
        Ledger(*begun)._add(failed(plan, "evaluator"), Attempts([], shared=begun.shared))
    become(2)
    joined, early = join_run(plan_run(plan.config, plan.out), stack)
    assert not early.claim("e").is_held  # it has ended
    become(3)
    with ExitStack() as second:
        again = begin(plan, second)
        again.shared.claim("e")
    become(4)
    _, late = join_run(plan_run(plan.config, plan.out), stack)
    assert late.claim("e").is_ours

    def finish(_):
        published(plan, late, "agent")
        late.settle("e", is_scored=True, is_again=False)

    monkeypatch.setattr(joining, "time", SimpleNamespace(monotonic=time.monotonic, sleep=finish))
    whole = end_joined_run(joined, early, Ledger(joined, None, early))
    assert [result.error.side for result in whole.results] == ["agent"]
    assert not (plan.out / "work").exists()


def test_who_is_held_up_while_it_writes_the_journal_hands_its_record_over(
    plan, stack, no_locks, become, monkeypatch
):
    first = begin(plan, stack)
    first.shared.claim("e")
    write, second = journal._write_file, []

    def hang(path, content):
        monkeypatch.setattr(journal, "_write_file", write)
        fall_asleep(first.shared, plan.out)
        become(7)
        second.append(begin(plan, stack))
        write(path, content)

    monkeypatch.setattr(journal, "_write_file", hang)
    done = failed(plan, "agent")
    attempts = Attempts([], shared=first.shared)
    with pytest.raises(JournalTakenOver):
        Ledger(*first)._add(done, attempts)
    theirs = Ledger(*second[0])
    theirs.collect()
    assert [result.error.side for result in theirs.results] == ["agent"]
    kept = plan_run(plan.config, plan.out).kept
    assert list(kept) == ["e"]


def test_what_a_killed_leader_had_just_written_is_not_done_again(plan, stack, become, monkeypatch):
    become(1)
    begun = begin(plan, stack)
    begun.shared.claim("e")
    with monkeypatch.context() as killed:
        killed.setattr(SharedRun, "settle", lambda *_, **__: None)
        Ledger(*begun)._add(failed(plan, "agent"), Attempts([], shared=begun.shared))
    become(2)
    _, helper = join_run(plan, stack)  # by a plan from before
    assert helper.claim("e").is_held
    fall_asleep(begun.shared, plan.out)
    assert helper.claim("e") == Claim()
    assert helper.claim("e") == Claim()
    assert sides(plan) == ["agent"]


def test_a_run_that_is_not_shared_any_more_waits_for_records_that_are_seen_late(plan, stack, monkeypatch):
    with ExitStack() as first:
        begun = begin(plan, first)
        begun.shared.claim("e")
        published(plan, begun.shared, "agent")
        begun.shared.settle("e", is_scored=True, is_again=False)
    names, late = sharing._names, iter(range(3))
    monkeypatch.setattr(sharing, "_names", lambda folder: names(folder) if next(late, None) is None else [])
    monkeypatch.setattr(ledger.time, "sleep", lambda _: None)
    assert begin_run(plan_run(plan.config, plan.out), stack, print, can_share=False).shared is None
    assert sides(plan) == ["agent"]


def test_a_name_that_is_listed_though_its_file_is_gone_is_passed_over(plan, stack, monkeypatch):
    begun = begin(plan, stack)
    names = sharing._names
    monkeypatch.setattr(sharing, "_names", lambda folder: [*names(folder), "x.000000.00.ended"])
    assert not list(begun.shared.new_records())


def test_a_recording_that_a_helper_has_just_begun_stays(plan, stack, monkeypatch):
    begun = begin(plan, stack)
    _, helper = join_run(plan, stack)
    kept = recording_folder(plan.out, "e")
    kept.mkdir(parents=True)
    rmtree = shutil.rmtree

    def slow(folder, **options):
        assert not helper.claim("e").is_ours
        rmtree(folder, **options)

    monkeypatch.setattr(recorder.shutil, "rmtree", slow)
    recorder.discard_recordings(plan.out, ["e"], begun.shared)
    assert not kept.exists()
    assert helper.claim("e").is_ours  # nothing counts against it
    kept.mkdir()
    recorder.discard_recordings(plan.out, ["e"], begun.shared)
    assert (plan.out / RECORDINGS).is_dir()
    assert kept.exists()


def test_processes_that_proc_hides_are_not_taken_for_dead(monkeypatch):
    other = replace(Holder.this(), process=1, started="12")
    monkeypatch.setattr(leases, "_started", lambda process: "" if process == 1 else "34")
    assert not other.is_known_dead
    assert replace(other, process=2**22 + 1).is_known_dead


def test_an_episode_whose_line_in_the_journal_is_lost_is_done_again_by_helpers(plan, monkeypatch):
    monkeypatch.setattr(ledger, "LATE_NAMES_S", 0.1)
    with ExitStack() as first:
        begun = begin(plan, first)
        begun.shared.claim("e")
        Ledger(*begun)._add(failed(plan, "agent"), Attempts([], shared=begun.shared))
    (plan.out / "episodes.jsonl").write_bytes(b"")
    reports = [run_plan(plan_run(plan.config, plan.out), lambda _: None, join=True) for _ in range(2)]
    assert [(report.results.total_episodes, report.warnings) for report in reports] == [(0, []), (1, [])]
    assert not (plan.out / "work").exists()


@pytest.mark.parametrize(("has_begun", "deadline_s"), [(False, 960), (True, 60)])
def test_a_run_that_does_not_begin_or_cannot_be_shared_is_not_waited_for(
    tmp_path, monkeypatch, has_begun, deadline_s
):
    slept_s, told = [], []
    clock = SimpleNamespace(monotonic=lambda: sum(slept_s), sleep=slept_s.append)
    monkeypatch.setattr(joining, "time", clock)
    if has_begun:
        (tmp_path / "manifest.json").touch()
    problem = "cannot be shared: it has a budget" if has_begun else "found none for 960 s"
    with pytest.raises(UserError, match=problem):
        await_run(tmp_path, told.append)
    assert sum(slept_s) == pytest.approx(deadline_s, abs=0.5)
    assert len(told) == 1
