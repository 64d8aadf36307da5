"""Driving by hand: lines that are piped in, keys of a terminal, and how it ends."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from kinematic_robot import KinematicRobot

import vln_evaluator.action_executor
from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper, VLNActionExecutor

TELEOP = [sys.executable, "-m", "proctor.cli", "teleop"]
MODULE = [sys.executable, "-m", "vln_evaluator.action_executor"]
FILE = [sys.executable, vln_evaluator.action_executor.__file__]
DEADLINE_S = 15.0


def piped(keys, *options, command=TELEOP):
    return subprocess.run(
        [*command, *options], input=keys, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@contextmanager
def terminal(*options):
    """The tool with a terminal of its own; gives the process and the terminal's other end."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*TELEOP, *options], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as tool:
        os.close(theirs)
        try:
            yield tool, ours
        finally:
            tool.kill()
            os.close(ours)


def read_until(end, pattern):
    """Return what a terminal showed up to and including a pattern."""
    shown = ""
    while not re.search(pattern, shown):
        assert select.select([end], [], [], DEADLINE_S)[0], f"no more than {shown!r}"
        shown += os.read(end, 1000).decode()
    return shown


def test_piped_keys_move_the_robot_and_show_pose_and_collisions():
    with KinematicRobot(real_time_factor=5.0, wall_x_m=0.6, namespace="bob") as robot:
        done = piped("1 2 3\nx\nf\nb\nl r\n1\nq1", "--namespace", "bob", command=MODULE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()[3:]
    told = [line[:14].strip() for line in lines[1:]]
    expected = ["forward 25 cm", "left 15°", "right 15°", "forward 1 s", "back 1 s", "left 1 s", "right 1 s"]
    assert told == [*expected, "forward 25 cm"]
    assert lines[-1].endswith("collisions 1  stopped by a collision")
    assert re.search(r"x 0\.2[45]\d m  y -?0\.000 m  yaw -?0\.\d°  collisions 0", lines[1])
    assert re.search(r"yaw 1[45]\.\d°  collisions 0", lines[2])
    assert "no such key: 'x'" in done.stderr
    assert robot.velocity == (0.0, 0.0)


def test_the_names_of_the_executor_are_there():
    assert vln_evaluator.action_executor.VLNActionExecutor is VLNActionExecutor
    assert vln_evaluator.action_executor.ActionExecutorWrapper is ActionExecutorWrapper
    assert not hasattr(vln_evaluator.action_executor, "Nothing")


@pytest.mark.parametrize(
    ("command", "options", "problem"),
    [
        (FILE, ["--linear-speed", "0"], "linear_speed: expected a number above 0, found 0.0"),
        (TELEOP, ["--ros-args", "-r", "nonsense"], "ROS 2 does not take --ros-args -r nonsense"),
    ],
)
def test_what_cannot_be_is_a_user_error(command, options, problem):
    done = piped("1", *options, command=command)
    assert done.returncode == 2
    assert problem in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_terminal_is_read_key_by_key_and_topics_may_have_other_names():
    with (
        KinematicRobot(real_time_factor=5.0, ros_args=["-r", "odom:=wheels"]),
        terminal("--ros-args", "-r", "odom:=wheels") as (tool, end),
    ):
        read_until(end, "collisions 0")
        os.write(end, b"2")
        assert re.search(r"yaw 1[45]\.\d°", read_until(end, "left 15°.*collisions 0"))
        os.write(end, b"q")
        assert tool.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=lambda one: one.name
)
def test_an_end_in_the_middle_of_a_move_stops_the_robot(ending):
    with KinematicRobot() as robot, terminal() as (tool, end):
        read_until(end, "collisions 0")
        os.write(end, b"1")
        assert robot.wait_until(lambda: robot.velocity[0] > 0, 10.0)
        tool.send_signal(ending)
        assert tool.wait(DEADLINE_S) == 130
        assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 10.0)
        assert 0.0 < robot.pose.x < 0.25


def test_a_robot_without_a_scanner_is_driven():
    with KinematicRobot(real_time_factor=5.0, has_scanner=False) as robot:
        done = piped("1f")
        assert robot.pose.x > 0.3
    assert done.returncode == 0, done.stderr
    assert "nobody publishes /scan: the robot drives without collision detection" in done.stderr


def test_without_a_robot_it_says_what_is_missing_and_fails():
    with KinematicRobot(namespace="alice"):
        done = piped("1", "--timeout", "1.5")
    assert done.returncode == 1
    assert "nobody publishes /odom, but there is /alice/odom: is the namespace right?" in " ".join(
        done.stderr.split()
    )
