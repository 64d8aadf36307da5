"""The planning process and its client: answers, supersession, death, and no delay for the caller."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path as Files

import msgspec
import numpy as np
import pytest
from nav_fields import comb, rooms

from proctor.core.errors import MissingDependency, UnknownName
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Path
from proctor.navigation.process import link as planning_link
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.process.pipeline import compute_path, generate_trajectory
from proctor.navigation.process.requests import Motion, PathRequest, TrajectoryRequest
from proctor.navigation.timing.trajectory import Trajectory

LONG_S = 300.0
START = Motion(0.6, 5.0, 0.0)
EASY = PathRequest(start=START, goal_xy=(7.4, 1.0))
HARD = PathRequest(start=Motion(0.5, 1.0, 0.0), goal_xy=(11.4, 1.0), planner="rrt_star", timeout_s=600.0)
"""On the comb: does not end within the test."""


@pytest.fixture(scope="module")
def field():
    return rooms()


@pytest.fixture(scope="module")
def hard_field():
    return comb()


def reply_of(client):
    assert client.wait(LONG_S)
    reply = client.poll()
    assert client.poll() is None
    return reply


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


def test_paths_and_trajectories_are_those_that_are_made_here(client, field):
    number = client.submit_path(field, 1, EASY)
    assert client.busy
    reply = reply_of(client)
    assert reply.id == number
    assert not client.busy
    path, here = reply.result, compute_path(field, EASY)
    assert isinstance(path, Path)
    assert np.array_equal(path.raw, here.raw)
    assert np.array_equal(path.points, here.points)
    assert (path.margin_m, path.clearance_m) == (here.margin_m, here.clearance_m)
    assert set(path.timings_s) == {"planning", "smoothing"}

    request = TrajectoryRequest(path=path, start=START, goal_yaw=1.0)
    number = client.submit_trajectory(request)
    reply = reply_of(client)
    assert reply.id == number
    trajectory, here = reply.result, generate_trajectory(request)
    assert isinstance(trajectory, Trajectory)
    assert np.array_equal(trajectory.poses, here.poses)
    assert trajectory.poses.flags.writeable  # or every compiled function is compiled once more


def test_a_failure_comes_with_its_reason(client, field):
    client.submit_path(field, 1, PathRequest(start=START, goal_xy=(2.67, 3.0)))
    failure = reply_of(client).result
    assert isinstance(failure, NavigationFailure)
    assert failure.reason == Reason.GOAL_OCCUPIED
    assert "2.67" in str(failure)


def test_a_newer_request_takes_the_place_of_an_older_one(client, field, hard_field):
    first = client.submit_path(hard_field, 1, HARD)
    assert not client.wait(0.2)  # it is at work by now
    second = client.submit_path(field, 1, EASY)
    reply = reply_of(client)
    assert reply.id == second != first
    assert isinstance(reply.result, Path)


def test_what_is_cancelled_is_never_answered(client, field, hard_field):
    client.submit_path(hard_field, 1, HARD)
    client.cancel()
    assert not client.busy
    assert not client.wait(0.2)
    number = client.submit_path(field, 1, EASY)
    assert reply_of(client).id == number
    client.cancel()  # with nothing under way
    assert client.poll() is None


def test_an_answer_that_is_there_already_is_dropped_as_well(client, field):
    client.submit_path(field, 1, EASY)
    client._link.wait(LONG_S)  # the answer is there, but nobody has taken it
    client.cancel()
    assert client.poll() is None
    assert not client.busy


def test_a_map_travels_once_per_version(client, field, monkeypatch):
    sent = []
    copied = planning_link.shared_copy
    monkeypatch.setattr(planning_link, "shared_copy", lambda cells: sent.append(cells) or copied(cells))
    other = field._replace(origin_x=1.0)
    for version, shown in ((10, field), (10, field), (11, field), (11, other)):
        goal_x = 7.4 + shown.origin_x
        request = PathRequest(start=Motion(0.6 + shown.origin_x, 5.0, 0.0), goal_xy=(goal_x, 1.0))
        client.submit_path(shown, version, request)
        path = reply_of(client).result
        assert path.points[-1].tolist() == pytest.approx([goal_x, 1.0])
    assert len(sent) == 3


def test_an_unknown_planner_is_refused_at_once():
    client = PlanningClient()
    with pytest.raises(UnknownName, match="did you mean 'rrt_star'"):
        client.submit_path(rooms(), 1, PathRequest(start=START, goal_xy=(1.0, 1.0), planner="rrt_sta"))
    assert client.pid is None


def test_a_planner_whose_package_is_missing_is_refused_at_once(field, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    client = PlanningClient()
    with pytest.raises(MissingDependency, match=r"proctor-eval\[nav\]"):
        client.submit_path(field, 1, PathRequest(start=START, goal_xy=(1.0, 1.0), planner="prm"))
    assert client.pid is None


def test_nothing_blocks_while_the_process_stands_still(client, field):
    path = compute_path(field, EASY)
    os.kill(client.pid, signal.SIGSTOP)
    # If a call did block, this would let it go on, and the process would not stand still any more.
    release = threading.Timer(LONG_S, os.kill, (client.pid, signal.SIGCONT))
    release.start()
    try:
        much = TrajectoryRequest(path=msgspec.structs.replace(path, legs=path.legs * 50), start=START)
        for _ in range(20):
            client.submit_trajectory(much)
            client.submit_path(field, 20, EASY)
            assert client.poll() is None
        number = client.submit_path(field, 21, EASY)
        assert not client.wait(0.05)
        state = Files(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T"
    finally:
        release.cancel()
        os.kill(client.pid, signal.SIGCONT)
    assert reply_of(client).id == number


def test_a_process_that_is_killed_is_reported_and_replaced(field, hard_field):
    before = descriptors()
    with PlanningClient() as client:
        assert client.poll() is None
        number, pid = client.submit_path(hard_field, 1, HARD), client.pid
        os.kill(pid, signal.SIGKILL)
        reply = reply_of(client)
        assert reply.id == number
        assert reply.result.reason == Reason.PLANNER_LOST
        assert "SIGKILL" in str(reply.result)
        assert client.pid is None
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)  # it is no zombie

        client.submit_path(field, 1, EASY)
        assert isinstance(reply_of(client).result, Path)
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
        client.submit_path(nothing, 1, EASY)
        failure = reply_of(client).result
    assert failure.reason == Reason.PLANNER_LOST
    assert "exit code 1: ValueError: cannot mmap an empty file" in str(failure)
    assert "Traceback" in failure.__notes__[0]


LOOP = """
    import sys
    import numpy as np
    from proctor.maps.clearance_field import ClearanceField
    from proctor.navigation.process.client import PlanningClient
    from proctor.navigation.process.requests import Motion, PathRequest
    hall = ClearanceField(np.full((60, 80), 1.0), 0.05, 0.0, 0.0)
    client = PlanningClient()
    client.submit_path(hall, 1, PathRequest(start=Motion(1.0, 1.0, 0.0), goal_xy=(3.0, 2.0), planner="rrt"))
    client.wait(float(sys.argv[1]))
    print(client.pid, client.poll().result.planner, "ompl" in sys.modules, flush=True)
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
