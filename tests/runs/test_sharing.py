"""Several processes share a run: the same bytes as by one, whoever is killed or stopped; nothing twice."""

import fcntl
import os
import random
import signal
import threading
from pathlib import Path

import pytest
from shared_runs import EPISODES, SharedTrial, until, workers_of

from proctor.runs import journal
from proctor.runs.sharing import SharedRun

LEASE_S = 2.0
WITHOUT_LOCKS = """
import errno, fcntl
def flock(*_):
    raise OSError(errno.ENOTSUP, "Operation not supported")
fcntl.flock = flock
"""


@pytest.fixture
def trial(tmp_path):
    trial = SharedTrial(tmp_path, lease_s=LEASE_S)
    yield trial
    trial.close()


@pytest.fixture
def _without_locks(trial):
    """Give the commands a disk without locks, as some that hosts share are."""
    trial.site(WITHOUT_LOCKS)


def sleep_past_the_lease(trial, *processes):
    """Stop processes until their leases have run out, by the folder's clock."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    clock, start_s = trial.folder / "clock", None

    def is_over():
        clock.write_text("tick")
        return clock.stat().st_mtime - start_s > 1.5 * LEASE_S

    clock.write_text("tick")
    start_s = clock.stat().st_mtime
    until(is_over)


def test_a_leader_a_helper_and_one_who_joins_give_the_bytes_of_one_worker(trial):
    trial.hold()
    leader, joiner = trial.begin(), trial.join("--workers", 2)
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, joiner, helper)
    trial.let_go()
    ends = trial.end(leader, joiner, helper)
    assert [code for code, _ in ends] == [0, 0, 0]
    assert "episodes here" in ends[2][1]
    assert all("Success" in said or "SR" in said for _, said in ends)  # each of them shows the scores
    assert len(trial.begun()) == EPISODES  # each was begun once
    trial.check_results()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_leader_whom_nobody_starts_again_is_not_needed(trial, workers):
    trial.hold()
    leader = trial.begin("--workers", workers)
    until((trial.out / "work" / "run.json").exists)
    helper, joiner = trial.help(), trial.join()
    trial.await_begun(leader, helper, joiner)
    trial.let_go()
    until(lambda: trial.done_count() >= 3)
    leader.kill()
    assert [code for code, _ in trial.end(helper, joiner)] == [0, 0]
    trial.check_results()


def test_a_leader_that_is_killed_and_started_again_while_others_work(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, helper)
    trial.let_go()
    until(lambda: trial.done_count() >= 2)
    leader.kill()
    leader.wait()
    again = trial.begin()
    assert [code for code, _ in trial.end(helper, again)] == [0, 0]
    trial.check_results()


def test_a_killed_helper_loses_nothing(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help("--workers", 2)
    trial.await_begun(leader, helper)
    helper.kill()
    helper.wait()
    trial.let_go()
    assert trial.end(leader)[0][0] == 0
    trial.check_results()


def test_killed_pool_workers_of_leader_and_helper_change_no_result(trial):
    trial.hold()
    leader = trial.begin("--workers", 2)
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help("--workers", 2)
    trial.await_begun(leader, helper)
    for process in (leader, helper):
        os.kill(workers_of(process)[0], signal.SIGKILL)
    trial.let_go()
    moments = random.Random(0)
    for count in (3, 6):
        until(lambda count=count: trial.done_count() >= count)
        victims = [pid for process in (leader, helper) for pid in workers_of(process)]
        if victims:
            os.kill(moments.choice(victims), signal.SIGKILL)
    assert [code for code, _ in trial.end(leader, helper)] == [0, 0]
    trial.check_results()


@pytest.mark.parametrize("who", ["leader", "helper"])
def test_who_sleeps_past_its_lease_and_wakes_up_scores_nothing_twice(trial, who):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper, other = trial.help(), trial.help()
    trial.await_begun(leader, helper, other)
    sleeper = leader if who == "leader" else helper
    sleep_past_the_lease(trial, sleeper)
    trial.let_go()
    until(lambda: trial.done_count() == EPISODES)  # others did what the sleeper had begun
    sleeper.send_signal(signal.SIGCONT)
    assert [code for code, _ in trial.end(leader, helper, other)] == [0, 0, 0]
    trial.check_results()


@pytest.mark.usefixtures("_without_locks")
def test_a_leader_that_wakes_up_when_others_have_ended_the_run_changes_nothing(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, helper)
    leader.send_signal(signal.SIGSTOP)
    trial.let_go()
    assert trial.end(helper)[0][0] == 0
    trial.check_results()
    leader.send_signal(signal.SIGCONT)
    ((code, said),) = trial.end(leader)
    assert code == 2
    assert "another one has taken the run over; nothing is lost" in " ".join(said.split())
    trial.check_results()


@pytest.mark.usefixtures("_without_locks")
def test_a_leader_that_wakes_up_while_others_write_the_journal_hands_its_result_over(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    (first,) = trial.await_begun(leader)
    sleep_past_the_lease(trial, leader)
    again = trial.begin()
    until(lambda: len(set(trial.begun())) == 2)
    leader.send_signal(signal.SIGCONT)
    trial.let_go(first)
    ((code, said),) = trial.end(leader)
    assert code == 2
    assert "another one has taken the run over" in " ".join(said.split())
    trial.let_go()
    assert trial.end(again)[0][0] == 0
    trial.check_results()


def test_a_stopped_leader_on_the_same_disk_is_not_dethroned(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    trial.await_begun(leader)
    sleep_past_the_lease(trial, leader)
    said = trial.done(*trial.words(), code=2)
    assert "is in use by" in said
    assert "to help with that run, add --join" in " ".join(said.split())
    leader.send_signal(signal.SIGCONT)
    trial.let_go()
    assert trial.end(leader)[0][0] == 0
    trial.check_results()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_gives_leases_back_at_once(tmp_path, number):
    trial = SharedTrial(tmp_path, lease_s=3600.0)
    try:
        trial.hold()
        leader = trial.begin()
        until((trial.out / "work" / "run.json").exists)
        helper = trial.help("--workers", 2)
        trial.await_begun(leader, helper)
        helper.send_signal(number)
        ((code, said),) = trial.end(helper)
        assert code == 130
        assert "the same command goes on" in said
        leader.send_signal(number)
        assert trial.end(leader)[0][0] == 130
        trial.let_go()
        last = trial.begin(prefix=("unshare", "--uts", "sh", "-c", 'hostname elsewhere; exec "$@"', "sh"))
        assert trial.end(last)[0][0] == 0  # a host that could not know that they are gone
        trial.check_results()
    finally:
        trial.close()


def test_two_helpers_end_a_stopped_run_without_a_leader(trial):
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    trial.await_begun(leader)
    leader.send_signal(signal.SIGINT)
    leader.wait()
    helpers = trial.help(), trial.help()
    trial.await_begun(*helpers)
    trial.let_go()
    assert [code for code, _ in trial.end(*helpers)] == [0, 0]
    trial.check_results()
    assert "all episodes are done; nothing to do" in trial.done("work", trial.out)


def test_a_run_that_was_killed_five_times_in_one_episode_still_does_it(trial):
    trial.hold()
    for _ in range(5):
        before = set(trial.begun())
        leader = trial.begin()
        until(lambda before=before: set(trial.begun()) > before)
        leader.kill()
        leader.wait()
    trial.let_go()
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()


def test_several_runs_in_a_folder_are_joined_one_after_the_other(tmp_path):
    trial = SharedTrial(tmp_path, policy=("random", "forward"), lease_s=LEASE_S)
    try:
        trial.hold()
        leader, joiner = trial.begin(), trial.join()
        trial.await_begun(leader, joiner)
        trial.let_go()
        helper = trial.help()
        assert [code for code, _ in trial.end(leader, joiner, helper)] == [0, 0, 0]
        trial.done(*[trial.folder / "quiet" if word == trial.out else word for word in trial.words()])
        for name in ("random", "forward"):
            results = [trial.folder / part / name / "results.json" for part in ("run", "quiet")]
            assert results[0].read_bytes() == results[1].read_bytes()
            assert not (trial.out / name / "work").exists()
    finally:
        trial.close()


def test_an_evaluator_fault_is_recorded_once_and_done_again_by_the_next_command(trial):
    (trial.gate / "ep_5.break").touch()
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, helper)
    trial.let_go()
    assert [code for code, _ in trial.end(leader, helper)] == [1, 0]
    assert len(trial.begun(5)) == 1
    assert not (trial.out / "work").exists()
    assert "nothing to do" in trial.done("work", trial.out)
    (trial.gate / "ep_5.break").unlink()
    assert trial.end(trial.begin())[0][0] == 0
    trial.check_results()


def test_recordings_of_helpers_survive_a_leader_that_comes_back(trial):
    trial.hold()
    leader = trial.begin("--save-steps")
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    first, second = trial.await_begun(leader, helper)
    leader.kill()
    leader.wait()
    trial.let_go(*(set(range(EPISODES)) - {first}))
    until((trial.out / "work" / "records" / f"ep_{second}").exists)
    again = trial.begin("--save-steps")
    until(lambda: len(trial.begun(first)) == 2)
    trial.let_go()
    assert [code for code, _ in trial.end(helper, again)] == [0, 0]
    trial.check_results()
    recorded = sorted(path.parent.name for path in (trial.out / "recordings").glob("*/steps.jsonl"))
    assert recorded == sorted(f"ep_{index}" for index in range(EPISODES))


def test_a_helper_that_comes_when_the_run_has_just_ended_does_nothing_again(trial):
    """Let the run end between the helper's look at the journal and its registration."""
    trial.site(Path(__file__).with_name("late_command.py").read_text())
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help(environ=trial.late("sharing:SharedRun._register"))
    until((trial.folder / "late.waiting").exists)
    trial.let_go()
    assert trial.end(leader)[0][0] == 0
    (trial.folder / "late").touch()
    assert trial.end(helper)[0][0] == 0
    assert len(trial.begun()) == EPISODES
    trial.check_results()


def test_a_helper_that_finds_the_run_just_ended_says_so(trial):
    """Let the run end between the helper's look at the folder and its look at the run file."""
    trial.site(Path(__file__).with_name("late_command.py").read_text())
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help(environ=trial.late("joining:read_run_file"))
    until((trial.folder / "late.waiting").exists)
    trial.let_go()
    assert trial.end(leader)[0][0] == 0
    (trial.folder / "late").touch()
    ((code, said),) = trial.end(helper)
    assert code == 0
    assert "all episodes are done; nothing to do" in said
    trial.check_results()


def test_a_command_that_comes_back_when_helpers_have_just_ended_the_run_says_so(trial):
    """Let the run end between the command's registration and its look at the journal."""
    trial.site(Path(__file__).with_name("late_command.py").read_text())
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, helper)
    leader.kill()
    leader.wait()
    again = trial.begin(environ=trial.late("journal:Journal._lock"))
    until((trial.folder / "late.waiting").exists)
    trial.let_go()
    assert trial.end(helper)[0][0] == 0
    begun = len(trial.begun())
    (trial.folder / "late").touch()
    assert trial.end(again)[0][0] == 0
    assert len(trial.begun()) == begun
    trial.check_results()


@pytest.mark.usefixtures("_without_locks")
def test_a_finished_run_on_a_disk_without_locks_is_opened_again(trial):
    assert trial.end(trial.begin())[0][0] == 0
    assert "nothing to do" in trial.done(*trial.words())
    (trial.out / "results.json").unlink()  # as if it had been killed right before its end
    assert "nothing to do" in trial.done(*trial.words())
    trial.check_results()


def test_a_command_that_comes_back_waits_for_a_helper_that_completes_the_run(trial, monkeypatch):
    monkeypatch.setattr(journal, "LOCK_PATIENCE_S", 60.0)
    trial.out.mkdir()
    shared = SharedRun(trial.out, LEASE_S)
    others = os.open(trial.out / "episodes.jsonl", os.O_RDWR | os.O_CREAT)
    fcntl.flock(others, fcntl.LOCK_EX)
    release = threading.Timer(0.3, os.close, (others,))
    release.start()
    with journal.Journal(trial.out, {"seed": 0}, {}, shared=shared, on_wait=print):
        assert shared.holds_journal
    release.join()
    shared.close()


def test_a_host_that_may_be_dead_is_waited_for_and_one_that_lives_is_not(trial):
    trial.out.mkdir()
    dead, alive, ours = (SharedRun(trial.out, 1.0) for _ in range(3))
    dead.take_journal()
    dead._leases._is_closed.set()  # no sign of life from now on
    assert ours.take_journal() is not None
    assert ours.take_journal(print) is None
    ours.close()
    assert alive.take_journal() is None
    assert dead.take_journal(print) is not None
    alive.close()
