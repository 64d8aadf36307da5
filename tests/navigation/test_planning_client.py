"""The planning process and its client: answers, supersession, death, and no delay for the caller."""

import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path as Files

import msgspec
import numpy as np
import pytest
from nav_fields import comb, rooms

from proctor.core.errors import MissingDependency, UnknownName
from proctor.kernels.clearance import ClearanceField
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import RobotMotion
from proctor.navigation.process import client as planning_client_module
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.process.plan import PlanRequest, plan

LONG_S = 300.0
START = RobotMotion(0.6, 5.0, 0.0)
EASY = PlanRequest(start=START, goal_xy=(7.4, 1.0))
HARD = PlanRequest(start=RobotMotion(0.5, 1.0, 0.0), goal_xy=(11.4, 1.0), planner="rrt_star", timeout_s=600.0)
"""On the comb: does not end within the test."""


@pytest.fixture(scope="module")
def field():
    return rooms()


@pytest.fixture(scope="module")
def hard_field():
    return comb()


def answer_of(client):
    assert client.wait(LONG_S)
    answer = client.poll()
    assert client.poll() is None
    return answer


def ended(pid):
    """Wait for the end of a process, which may be anybody's child."""
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select.select([descriptor], [], [], LONG_S)[0])
    finally:
        os.close(descriptor)


def descriptors():
    """The open files of this process, without the one that reads the list."""
    return sorted(str(entry.readlink()) for entry in Files("/proc/self/fd").iterdir() if entry.is_symlink())


def test_plans_are_those_that_are_made_here(client, field):
    request = msgspec.structs.replace(EASY, goal_yaw=1.0)
    number = client.submit(request, field, 1)
    assert client.busy
    answer, here = answer_of(client), plan(request, field)
    assert answer.id == number
    assert not client.busy
    path = answer.path
    assert np.array_equal(path.raw, here.path.raw)
    assert np.array_equal(path.points, here.path.points)
    assert (path.margin_m, path.clearance_m) == (here.path.margin_m, here.path.clearance_m)
    assert np.array_equal(answer.trajectory.poses, here.trajectory.poses)
    assert answer.trajectory.poses.flags.writeable  # or every compiled function is compiled once more
    assert set(answer.timings_s) == {"planning", "smoothing", "trajectory_generation"}


def test_parts_of_a_plan_can_be_asked_for(client, field):
    client.submit(msgspec.structs.replace(EASY, timing=None), field, 1)
    only_path = answer_of(client)
    assert only_path.trajectory is None
    assert set(only_path.timings_s) == {"planning", "smoothing"}

    request = PlanRequest(path=only_path.found_path(), start=START, goal_yaw=1.0)
    client.submit(request)
    timed = answer_of(client)
    assert timed.path is None  # the caller has it
    assert np.array_equal(timed.trajectory.poses, plan(request, None).trajectory.poses)
    assert set(timed.timings_s) == {"trajectory_generation"}


def test_a_failure_comes_with_its_reason(client, field):
    client.submit(PlanRequest(start=START, goal_xy=(2.67, 3.0)), field, 1)
    failure = answer_of(client).failure
    assert isinstance(failure, NavigationFailure)
    assert failure.reason == Reason.GOAL_OCCUPIED
    assert "2.67" in str(failure)


def test_a_newer_request_takes_the_place_of_an_older_one(client, field, hard_field):
    first = client.submit(HARD, hard_field, 1)
    assert not client.wait(0.2)  # it is at work by now
    second = client.submit(EASY, field, 1)
    answer = answer_of(client)
    assert answer.id == second != first
    assert answer.path is not None


def test_what_is_cancelled_is_never_answered(client, field, hard_field):
    client.submit(HARD, hard_field, 1)
    client.cancel()
    assert not client.busy
    assert not client.wait(0.2)
    number = client.submit(EASY, field, 1)
    assert answer_of(client).id == number
    client.cancel()  # with nothing under way
    assert client.poll() is None


def test_an_answer_that_is_there_already_is_dropped_as_well(client, field):
    client.submit(EASY, field, 1)
    assert client.wait(LONG_S)  # the answer is there, but nobody has taken it
    client.cancel()
    assert client.poll() is None
    assert not client.busy


def test_a_map_travels_once_per_version(client, field, monkeypatch):
    sent = []
    module, copied = planning_client_module, planning_client_module.shared_copy
    monkeypatch.setattr(module, "shared_copy", lambda cells: sent.append(cells) or copied(cells))
    other = field._replace(origin_x=1.0)
    for version, shown in ((10, field), (10, field), (11, field), (11, other)):
        goal_x = 7.4 + shown.origin_x
        request = PlanRequest(start=RobotMotion(0.6 + shown.origin_x, 5.0, 0.0), goal_xy=(goal_x, 1.0))
        client.submit(request, shown, version)
        path = answer_of(client).path
        assert path.points[-1].tolist() == pytest.approx([goal_x, 1.0])
    assert len(sent) == 3


def test_an_unknown_planner_is_refused_at_once():
    client = PlanningClient()
    with pytest.raises(UnknownName, match="did you mean 'rrt_star'"):
        client.submit(msgspec.structs.replace(EASY, planner="rrt_sta"), rooms(), 1)
    assert client.pid is None


def test_a_planner_whose_package_is_missing_is_refused_at_once(field, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    client = PlanningClient()
    with pytest.raises(MissingDependency, match=r"proctor-eval\[nav\]"):
        client.submit(msgspec.structs.replace(EASY, planner="prm"), field, 1)
    assert client.pid is None


def test_nothing_blocks_while_the_process_stands_still(client, field):
    path = plan(EASY, field).path
    os.kill(client.pid, signal.SIGSTOP)
    # If a call did block, this would let it go on, and the process would not stand still any more.
    release = threading.Timer(LONG_S, os.kill, (client.pid, signal.SIGCONT))
    release.start()
    try:
        much = PlanRequest(path=msgspec.structs.replace(path, legs=path.legs * 50), start=START)
        for _ in range(20):
            client.submit(much)
            client.submit(EASY, field, 20)
            assert client.poll() is None
        number = client.submit(EASY, field, 21)
        assert not client.wait(0.05)
        state = Files(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T"
    finally:
        release.cancel()
        os.kill(client.pid, signal.SIGCONT)
    assert answer_of(client).id == number


def test_a_process_that_is_killed_is_reported_and_replaced(field, hard_field):
    before = descriptors()
    with PlanningClient() as client:
        assert client.poll() is None
        number, pid = client.submit(HARD, hard_field, 1), client.pid
        process = weakref.ref(client._process)
        os.kill(pid, signal.SIGKILL)
        answer = answer_of(client)
        assert answer.id == number
        assert answer.failure.reason == Reason.PLANNER_LOST
        assert "SIGKILL" in str(answer.failure)
        assert client.pid is None
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # it is no zombie
        gc.collect()
        assert process() is None  # nothing of it is kept

        client.submit(EASY, field, 1)
        assert answer_of(client).trajectory is not None
        assert client.ready
        last = client.pid
        os.kill(last, signal.SIGKILL)  # with nothing under way
        assert ended(last)
        assert client.poll() is None
        assert not client.ready
        assert client.pid is None
    client.close()
    assert descriptors() == before


def test_what_the_process_said_last_is_told():
    nothing = ClearanceField(np.zeros((0, 0)), 0.05, 0.0, 0.0)
    with PlanningClient() as client:
        client.submit(EASY, nothing, 1)
        failure = answer_of(client).failure
    assert failure.reason == Reason.PLANNER_LOST
    assert "exit code 1: ValueError: cannot mmap an empty file" in str(failure)
    assert "Traceback" in failure.__notes__[0]


LOOP = """
    import sys
    import numpy as np
    from proctor.kernels.clearance import ClearanceField
    from proctor.navigation.process.client import PlanningClient
    from proctor.navigation.path import RobotMotion
    from proctor.navigation.process.plan import PlanRequest
    hall = ClearanceField(np.full((60, 80), 1.0), 0.05, 0.0, 0.0)
    client = PlanningClient()
    client.submit(PlanRequest(start=RobotMotion(1.0, 1.0, 0.0), goal_xy=(3.0, 2.0), planner="rrt"), hall, 1)
    client.wait(float(sys.argv[1]))
    print(client.pid, client.poll().path.planner, "ompl" in sys.modules, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_the_process_ends_with_the_loops_and_ompl_is_only_there(killed):
    command = [sys.executable, "-c", textwrap.dedent(LOOP), str(LONG_S)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as loop:
        pid, planner, has_ompl = loop.stdout.readline().split()
        assert (planner, has_ompl) == ("rrt", "False")
        if killed:
            loop.kill()
        else:
            loop.stdin.write("\n")
            loop.stdin.flush()
        assert ended(int(pid))
        _, said = loop.communicate()
    assert said == ""
    assert loop.returncode == (-signal.SIGKILL if killed else 0)
