"""Long trials of shared runs: many kills, and hosts whose clocks are minutes apart."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from shared_runs import EPISODES, SharedTrial, until, workers_of

KILLS = 10
HOST = 'hostname "$1"; shift; exec "$@"'


OTHER_CLOCK = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset(void) { return atol(getenv("CLOCK_OFFSET_S")); }
int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, id, at);
    if (!failed && id == CLOCK_REALTIME) at->tv_sec += offset();
    return failed;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec, at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
"""A clock of the host that is wrong; the kernel's, which sets the times of files, stays right."""


@pytest.fixture
def trial(tmp_path):
    trial = SharedTrial(tmp_path, lease_s=2.0)
    yield trial
    trial.close()


def host(name, *prefix):
    """Return what goes before a command that runs on a host of its own, as far as it can tell."""
    return ("unshare", "--uts", "sh", "-c", HOST, "sh", name, *prefix)


@pytest.mark.slow
@pytest.mark.parametrize("who", ["leader", "helper"])
def test_ten_killed_hosts_leave_the_bytes_of_a_quiet_run(trial, who):
    moments = random.Random(0)
    trial.hold()
    leader = trial.begin()
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help()
    trial.await_begun(leader, helper)
    victim, start = (leader, trial.begin) if who == "leader" else (helper, trial.help)
    for count in range(1, KILLS + 1):
        number = until(lambda victim=victim: held_by(trial, victim))[0]
        if count % 2:  # in the middle of the episode, or while its result is written
            trial.let_go(number)
            time.sleep(moments.uniform(0.0, 0.2))
        victim.kill()
        victim.wait()
        trial.let_go(number)
        victim = start()
    trial.let_go()
    ends = trial.end(victim, helper if who == "leader" else leader)
    assert [code for code, _ in ends] == [0, 0], ends
    trial.check_results()


def held_by(trial, process):
    """Return the episodes that a command has begun and that are held up."""
    held = (n for n in range(EPISODES) if (trial.gate / f"ep_{n}.hold").exists())
    return [number for number in held if process.pid in trial.begun(number)]


def busy_worker(trial, *processes):
    """Return an episode that is held up, and the pool worker that has begun it."""
    workers = {pid for process in processes for pid in workers_of(process)}
    found = [file.name.split(".") for file in trial.gate.glob("*.begun")]
    held = [
        (int(name.removeprefix("ep_")), int(pid))
        for name, _, pid, _ in found
        if (trial.gate / f"{name}.hold").exists() and int(pid) in workers
    ]
    return held[0] if held else None


@pytest.mark.slow
def test_ten_killed_workers_leave_the_bytes_of_a_quiet_run(trial):
    trial.hold()
    leader = trial.begin("--workers", 2)
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help("--workers", 2)
    trial.await_begun(leader, helper)
    for _ in range(KILLS):  # each in another episode: one that is lost three times is a fault
        number, worker = until(lambda: busy_worker(trial, leader, helper))
        os.kill(worker, signal.SIGKILL)
        trial.let_go(number)
    trial.let_go()
    assert [code for code, _ in trial.end(leader, helper)] == [0, 0]
    trial.check_results()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="hosts of other names can be made by root only")
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_hosts_whose_clocks_are_ten_minutes_apart_take_nothing_from_each_other(trial):
    # Not by the package faketime: its version 0.9.10 lets Python's threads wait for ever.
    (trial.folder / "clock.c").write_text(OTHER_CLOCK)
    library = trial.folder / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, trial.folder / "clock.c"], check=True)
    early, late = ({"LD_PRELOAD": str(library), "CLOCK_OFFSET_S": offset_s} for offset_s in ("-300", "300"))
    told = [sys.executable, "-c", "import time; print(time.time())"]
    times_s = [
        float(subprocess.run(told, env={**os.environ, **environ}, capture_output=True, check=True).stdout)
        for environ in (early, late)
    ]
    assert times_s[1] - times_s[0] > 599
    trial.hold()
    leader = trial.begin(prefix=host("early"), environ=early)
    until((trial.out / "work" / "run.json").exists)
    helper = trial.help(prefix=host("late"), environ=late)
    held = trial.await_begun(leader, helper)
    clock = trial.folder / "clock"
    clock.touch()
    start_s = clock.stat().st_mtime

    def is_past_many_leases():
        clock.write_text("tick")
        return clock.stat().st_mtime - start_s > 4 * trial.lease_s

    trial.let_go(*(set(range(EPISODES)) - set(held)))
    until(is_past_many_leases)
    assert not list((trial.out / "work" / "leases").glob("*.1"))  # nobody took anything over
    assert trial.done_count() < EPISODES
    leader.kill()  # the other cannot know, but by the lease
    leader.wait()
    trial.let_go(held[1])
    until(lambda: helper.pid in trial.begun(held[0]))
    trial.let_go()
    assert trial.end(helper)[0][0] == 0
    assert [len(trial.begun(number)) for number in held] == [2, 1]
    trial.check_results()
