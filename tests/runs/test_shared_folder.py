"""The folder `work` of a shared run, seen by one process: what others do to it at the wrong moment."""

import errno
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace
from shared_runs import failed, plan_of_one_episode, published

from proctor.core.errors import InvalidFile, UserError
from proctor.runs import joining, sharing
from proctor.runs.attempts import Attempts
from proctor.runs.budget import RunBudget
from proctor.runs.folder import read_attempts
from proctor.runs.joining import begin_run, end_joined_run, join_run
from proctor.runs.leases import RELEASED_AT_S, Leases
from proctor.runs.ledger import Ledger
from proctor.runs.plan import plan_run
from proctor.runs.run import run as run_plan
from proctor.runs.sharing import Claim, SharedRun, journal_holder


@pytest.fixture
def run(tmp_path):
    run = SharedRun(tmp_path, 60.0)
    yield run
    run.close()


@pytest.mark.parametrize("name", ["work", "work/hosts", "work/records"])
def test_a_file_in_the_place_of_a_folder_is_told_and_not_waited_for(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    with pytest.raises(OSError, match=name):
        SharedRun(tmp_path, 60.0)


def test_each_who_takes_part_has_another_number(tmp_path, run):
    (tmp_path / "work" / "hosts" / "1.link").touch()  # of one who registers right now
    others = [SharedRun(tmp_path, 60.0) for _ in range(3)]
    assert [each.first_worker for each in (run, *others)] == [0, 1, 2, 3]
    for other in others:
        other.close()


def test_who_registers_while_others_end_the_run_registers_anew(tmp_path, run, monkeypatch):
    link = os.link

    def ended_before(*files):
        monkeypatch.undo()
        run.close(is_complete=True)
        link(*files)

    monkeypatch.setattr(os, "link", ended_before)
    late = SharedRun(tmp_path, 60.0)
    assert late.is_there
    late.close()


def test_a_run_that_has_ended_is_gone_before_its_journal_is_free(tmp_path, run, monkeypatch):
    run.take_journal()
    close, seen = Leases.close, []

    def look(leases):
        seen.append((tmp_path / "work").exists())
        close(leases)

    monkeypatch.setattr(Leases, "close", look)
    run.close(is_complete=True)
    assert seen == [False]
    assert not list(tmp_path.iterdir())


def test_a_command_that_wakes_up_late_leaves_the_folder_of_a_later_one_alone(tmp_path, run):
    shutil.rmtree(tmp_path / "work")
    (tmp_path / "work" / "hosts").mkdir(parents=True)
    (tmp_path / "work" / "hosts" / "0").write_text("another process")
    run.close(is_complete=True)
    assert (tmp_path / "work" / "hosts" / "0").exists()


def test_a_file_that_another_host_has_removed_is_gone(run, monkeypatch):
    def stale(*_, **__):
        raise OSError(errno.ESTALE, "Stale file handle")

    run.take_journal()
    monkeypatch.setattr(Path, "open", stale)
    assert not run.is_there
    assert run.journal_holder is None
    assert run.claim("e") == Claim()


def test_the_journals_holder_is_judged_by_its_own_lease(tmp_path, run):
    patient = SharedRun(tmp_path, 600.0)
    patient.take_journal()
    (lease,) = (tmp_path / "work" / "leases").glob("@journal.*")
    now_s = lease.stat().st_mtime
    os.utime(lease, times=(now_s, now_s - 200))
    assert journal_holder(tmp_path, 60.0) is not None
    os.utime(lease, times=(now_s, now_s - 700))
    assert journal_holder(tmp_path, 60.0) is None
    patient.close()


def test_a_sign_of_life_from_the_future_is_not_waited_for_until_then(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "CLOCK_MARGIN_S", 0.1)
    dead, ours = SharedRun(tmp_path, 1.0), SharedRun(tmp_path, 1.0)
    dead.take_journal()
    dead._leases._is_closed.set()  # no sign of life from now on
    (lease,) = (tmp_path / "work" / "leases").glob("@journal.*")
    os.utime(lease, times=(0, lease.stat().st_mtime + 3600))  # the clock of the disk was wrong
    assert ours.take_journal(print) is not None
    dead.close()
    ours.close()


@pytest.fixture
def plan(tmp_path):
    return plan_of_one_episode(tmp_path)


def test_a_leader_that_is_killed_before_it_removes_a_record_writes_it_once(plan, monkeypatch):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        result = published(plan, begun.shared, "evaluator")
        monkeypatch.setattr(SharedRun, "take_in", _killed)
        with suppress(KeyboardInterrupt):
            Ledger(*begun).collect()
        monkeypatch.undo()
    with ExitStack() as stack:
        begun = begin_run(plan_run(plan.config, plan.out), stack, print, can_share=True)
        ledger = Ledger(*begun)
        ledger.collect()
        assert [result] == ledger.repeated
        assert read_attempts(plan.out / "episodes.jsonl", plan.dataset.exam) == [result]
        assert not list(begun.shared.new_records())


def _killed(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("has_failed_before", [False, True])
def test_a_record_whose_name_is_seen_late_is_waited_for(plan, has_failed_before):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        if has_failed_before:
            published(plan, begun.shared, "unavailable", is_again=True)
        ledger, attempts = Ledger(*begun), Attempts([], shared=begun.shared)
        late = threading.Timer(0.5, published, (plan, begun.shared, "agent"))
        late.start()
        list(ledger.do_episodes(None, attempts, []))
        late.join()
        assert [result.is_scored for result in ledger.results] == [True]


def test_who_ends_a_run_whose_leader_died_waits_for_late_records_as_well(plan):
    with ExitStack() as stack:
        begin_run(plan, stack, print, can_share=True)
    with ExitStack() as stack:
        joined, shared = join_run(plan, stack)
        late = threading.Timer(0.5, published, (plan, shared, "agent"))
        late.start()
        ledger = end_joined_run(joined, shared, Ledger(joined, None, shared))
        late.join()
    assert [result.is_scored for result in ledger.results] == [True]
    assert (plan.out / "results.json").exists()
    assert not (plan.out / "work").exists()


def test_what_a_process_left_that_died_while_it_ended_a_run_is_removed(plan):
    left = plan.out / ".work.0123456789abcdef.tmp" / "leases"
    left.mkdir(parents=True)
    with ExitStack() as stack:
        begin_run(plan, stack, print, can_share=True)
    assert not left.parent.exists()


def test_an_episode_that_was_scored_here_in_the_meantime_is_not_waited_for(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        ledger = Ledger(*begun)
        published(plan, begun.shared, "agent")
        ledger.collect()
        published(plan, begun.shared, "unavailable", is_again=True)
        ledger.collect()
        assert not ledger._awaited
        assert [result.is_scored for result in ledger.results] == [True]


def test_an_attempt_of_ours_that_comes_again_may_have_been_scored_by_others(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        ledger, attempts = Ledger(*begun), Attempts(plan.episodes, shared=begun.shared)
        done = failed(plan, "unavailable")
        attempts.take()
        attempts.note(plan.episodes[0], done.result)
        ledger._add(done, attempts)
        late = threading.Timer(0.5, published, (plan, begun.shared, "agent"))
        late.start()
        ledger.await_late_records(Attempts([], shared=begun.shared))
        late.join()
        assert [result.is_scored for result in ledger.results] == [True]


def test_who_ends_a_run_takes_no_attempt_without_a_score_for_the_last_one(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        begun.shared.claim("e")
        published(plan, begun.shared, "unavailable", is_again=True)
        begun.shared.settle("e", is_scored=False, is_again=True)
        Ledger(*begun).collect()
        begun.shared.claim("e")  # once more
    with ExitStack() as stack:
        joined, shared = join_run(plan, stack)
        late = threading.Timer(0.5, published, (plan, shared, "agent"))
        late.start()
        ledger = end_joined_run(joined, shared, Ledger(joined, None, shared))
        late.join()
    assert [result.is_scored for result in ledger.results] == [True]


def test_an_attempt_that_was_to_be_the_last_is_not_if_another_has_begun(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        begun.shared.claim("e")
        published(plan, begun.shared, "unavailable")
        begun.shared.settle("e", is_scored=False, is_again=True)  # its holder died before it closed the lease
        begun.shared.claim("e")
        ledger = Ledger(*begun)
        ledger.collect()
        assert ledger._awaited == {"e"}


def test_attempts_without_a_score_are_read_in_their_order(plan, monkeypatch):
    # Of the files' names, which would be read the other way round, and of their drafts.
    ends = iter(["f" * 16, "a" * 16, "0" * 16, "b" * 16])
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        monkeypatch.setattr(sharing.os, "urandom", lambda _: bytes.fromhex(next(ends)))
        for side, is_again in (("unknown", True), ("evaluator", False)):
            begun.shared.claim("e")
            published(plan, begun.shared, side, is_again=is_again)
            begun.shared.settle("e", is_scored=False, is_again=is_again)
        monkeypatch.undo()
        ledger = Ledger(*begun)
        ledger.collect()
        assert [result.error.side for result in ledger.results] == ["evaluator"]
        assert not ledger._awaited


def test_who_slept_drops_what_is_not_scored_and_waits_for_who_took_over(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        ledger, attempts = Ledger(*begun), Attempts(plan.episodes, shared=begun.shared)
        attempts.take()
        taken_over = plan.out / "work" / "leases" / "e.1"
        taken_over.write_bytes((plan.out / "work" / "leases" / "e.0").read_bytes().replace(b'":', b'" :', 1))
        done = failed(plan, "evaluator")
        attempts.note(plan.episodes[0], done.result)
        ledger._add(done, attempts)
        assert not ledger.results
        assert not read_attempts(plan.out / "episodes.jsonl", plan.dataset.exam)
        assert attempts.is_left
        assert attempts.take() is None  # another process does it
        assert (plan.out / "work" / "leases" / "e.0").stat().st_mtime == RELEASED_AT_S  # judge the next one
        assert not list(begun.shared.new_records())


def test_a_killed_worker_counts_against_the_next_process_too(plan):
    losses = []
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        for _ in range(4):
            losses.append(begun.shared.claim("e").losses)
            begun.shared.settle("e", is_scored=False, is_again=True, is_loss=True)
        assert losses == [0, 1, 2, 3]


def test_a_process_whose_own_file_is_damaged_ends_no_episode(tmp_path, run):
    run.claim("e")
    (tmp_path / "work" / "hosts" / "0").write_bytes(b"")
    run.settle("e", is_scored=True, is_again=False)
    other = SharedRun(tmp_path, 60.0)
    assert other.claim("e").is_ours
    other.close()


def test_a_helper_shows_no_fewer_episodes_when_the_run_has_ended(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        with ExitStack() as inner:
            joined, shared = join_run(plan, inner)
            published(plan, begun.shared, "agent")
            ledger = Ledger(joined, None, shared)
            assert ledger.progress().elsewhere == 1
            begun.shared.close(is_complete=True)
            assert ledger.progress().elsewhere == 1


def test_workers_are_numbered_after_those_who_came_before(tmp_path):
    runs = [SharedRun(tmp_path, 60.0, workers) for workers in (4, 1, 2)]
    assert [run.first_worker for run in runs] == [0, 4, 5]
    for run in runs:
        run.close()


def test_a_record_that_is_no_text_is_named(plan):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)
        record = plan.out / "work" / "records" / "e"
        record.write_bytes(msgspec.msgpack.encode((b'{"episode_id": "\xff"}', b"", b"")))
        with pytest.raises(InvalidFile, match="not the record of an episode"):
            Ledger(*begun).collect()


def test_a_run_with_a_budget_throws_nothing_away_that_others_are_doing(plan):
    limited = plan._replace(config=replace(plan.config, budget=RunBudget(usd=1.0)))
    with ExitStack() as stack:
        begin_run(plan, stack, print, can_share=True)
    with ExitStack() as stack:
        _, helper = join_run(plan, stack)
        assert helper.claim("e").is_ours
        with (
            ExitStack() as inner,
            pytest.raises(UserError, match=r"process \d+ on .* is doing e of this run"),
        ):
            begin_run(limited, inner, print, can_share=True)
        assert helper.is_there
    with ExitStack() as stack:
        assert begin_run(limited, stack, print, can_share=True).shared is None


def test_a_leader_that_is_stopped_is_named_and_the_run_is_not_said_to_be_done(plan, monkeypatch):
    monkeypatch.setattr(joining, "END_DEADLINE_S", 0.1)
    plan = plan._replace(config=replace(plan.config, lease_s=1.0))
    with ExitStack() as stack:
        begin_run(plan, stack, print, can_share=True)
        report = run_plan(plan, lambda _: None, join=True)
    assert report.results.total_episodes < report.total
    assert any("writes the journal, and has not ended the run" in warning for warning in report.warnings)


def test_a_leader_that_goes_on_writing_is_waited_for(plan, monkeypatch):
    monkeypatch.setattr(joining, "END_DEADLINE_S", 0.1)
    plan = plan._replace(config=replace(plan.config, lease_s=1.0))  # two seconds of patience
    now_s = 0
    with ExitStack() as stack:
        begun = begin_run(plan, stack, print, can_share=True)

        def write_meanwhile(_):
            nonlocal now_s
            now_s += 1
            if now_s < 8:
                begun.journal.append("e", failed(plan, "unavailable").record, b"", b"")
            else:
                begun.shared.close(is_complete=True)

        joined, shared = join_run(plan, stack)
        clock = SimpleNamespace(monotonic=lambda: now_s, sleep=write_meanwhile)
        monkeypatch.setattr(joining, "time", clock)
        end_joined_run(joined, shared, Ledger(joined, None, shared))
        assert not shared.is_there


def test_whoever_waits_for_a_host_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "TELL_AFTER_S", 0.1)
    dead, ours, told = SharedRun(tmp_path, 1.0), SharedRun(tmp_path, 1.0), []
    dead.take_journal()
    dead._leases._is_closed.set()  # no sign of life from now on
    assert ours.take_journal(told.append) is None
    (note,) = told
    assert note.startswith("waiting up to 6 s for a sign of life of process ")
    ours.close()


@pytest.mark.parametrize("job", [{"env": "o3de"}, {"env": "ros2", "env_options": {"attach": True}}])
def test_a_run_with_one_robot_cannot_be_shared(plan, job):
    job = replace(plan.config.job, **job)
    with ExitStack() as stack:
        assert begin_run(plan, stack, print, can_share=True).shared is not None
    with ExitStack() as stack:
        begun = begin_run(plan._replace(config=replace(plan.config, job=job)), stack, print, can_share=True)
        assert begun.shared is None
        assert not (plan.out / "work").exists()
