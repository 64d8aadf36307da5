"""The folder `work` of a shared run, seen by one process: what others do to it at the wrong moment."""

import errno
import os
import shutil
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from proctor.core.types import Usage, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import Fault
from proctor.exams.vln.episode import Episode
from proctor.runs import sharing
from proctor.runs.attempts import Attempts
from proctor.runs.examiner import lost
from proctor.runs.folder import read_attempts
from proctor.runs.job import RunJob
from proctor.runs.joining import begin_run
from proctor.runs.leases import Leases
from proctor.runs.ledger import Ledger
from proctor.runs.plan import RunConfig, plan_run
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
    assert len({run.number, *(other.number for other in others)}) == 4
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
    assert ours.take_journal(is_patient=True) is not None
    dead.close()
    ours.close()


@pytest.fixture
def plan(tmp_path):
    episode = Episode(
        episode_id="e", scene_id="s", goal_position=Vector3(1, 0, 0), instruction="Go.", max_steps=5
    )
    save_dataset([episode], tmp_path / "episodes.json")
    config = RunConfig(job=RunJob(policy="random", env="mock"), dataset=tmp_path / "episodes.json")
    return plan_run(config, tmp_path / "run")


def published(plan, shared, side, *, is_again=False):
    """Let another process publish how its attempt at the episode ended."""
    fault = Fault(side=side, kind="crashed", message="It crashed.")
    done = lost(plan.config.job.make_exam(), plan.episodes[0], 1, fault, Usage(requests=1))
    shared.publish(done, is_again=is_again)
    return done.result


def test_a_leader_that_is_killed_before_it_removes_a_record_writes_it_once(plan, monkeypatch):
    with ExitStack() as stack:
        begun = begin_run(plan, stack, can_share=True)
        result = published(plan, begun.shared, "evaluator")
        monkeypatch.setattr(SharedRun, "take_in", _killed)
        with suppress(KeyboardInterrupt):
            Ledger(*begun).collect()
        monkeypatch.undo()
    with ExitStack() as stack:
        begun = begin_run(plan_run(plan.config, plan.out), stack, can_share=True)
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
        begun = begin_run(plan, stack, can_share=True)
        if has_failed_before:
            published(plan, begun.shared, "unavailable", is_again=True)
        ledger, attempts = Ledger(*begun), Attempts([], shared=begun.shared)
        late = threading.Timer(0.5, published, (plan, begun.shared, "agent"))
        late.start()
        list(ledger.do_episodes(None, attempts, []))
        late.join()
        assert [result.is_scored for result in ledger.results] == [True]


@pytest.mark.parametrize("job", [{"env": "o3de"}, {"env": "ros2", "env_options": {"attach": True}}])
def test_a_run_with_one_robot_cannot_be_shared(plan, job):
    job = replace(plan.config.job, **job)
    with ExitStack() as stack:
        assert begin_run(plan, stack, can_share=True).shared is not None
    with ExitStack() as stack:
        begun = begin_run(plan._replace(config=replace(plan.config, job=job)), stack, can_share=True)
        assert begun.shared is None
        assert not (plan.out / "work").exists()
