"""A robot behind topics: its time, its silences, and what is said about them."""

import math
import threading
import time
from contextlib import contextmanager

import pytest
from geometry_msgs.msg import Pose, Twist
from kinematic_robot import KinematicRobot
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import LaserScan

from proctor.core.errors import SimulationError
from proctor.core.types import Pose2
from proctor.robots.robot import STILL
from proctor.robots.robot import Twist as Velocity
from proctor.worlds.ros2.node.node import COMMANDS, SENSORS, RosNode
from proctor.worlds.ros2.node.topic import RobotClock, Topic
from proctor.worlds.ros2.robot import ros2_robot
from proctor.worlds.ros2.robot.ros2_robot import Ros2Robot

TIMEOUT_S = 0.7
LATE_S = 5.0
"""What a busy machine may add to a deadline."""


@contextmanager
def port_to(timeout_s=TIMEOUT_S, **options):
    """A robot that runs five times as fast as real time, and the port that drives it."""
    options = {"real_time_factor": 5.0, **options}
    with KinematicRobot(**options) as robot, RosNode("driver") as node:
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=timeout_s)
        assert node.wait_until(lambda: port.odom.value is not None, 10.0)
        assert node.wait_until(lambda: port.scans.value is not None, 10.0)
        assert node.wait_until(port.cmd_vel.is_heard, 10.0)
        yield robot, port
        port.close()


def stands(robot):
    return robot.wait_until(lambda: robot.velocity == (0.0, 0.0), LATE_S)


@contextmanager
def fails_in_time(match):
    begin_s = time.monotonic()
    with pytest.raises(SimulationError, match=match) as caught:
        yield caught
    assert time.monotonic() - begin_s < TIMEOUT_S + LATE_S


def drive(port, duration_s=100.0, *, ask=lambda: None):
    port.command(Velocity(0.1))
    for _ in range(round(duration_s / 0.05)):
        port.command(Velocity(0.1))
        port.wait(0.05)
        ask()


def test_waiting_lets_the_robots_time_pass_at_any_speed():
    with port_to() as (robot, port):
        for factor in (1.0, 5.0):
            robot.real_time_factor = factor
            begin_s, real_s = port.now_s(), time.monotonic()
            port.wait(0.5)
            assert port.now_s() - begin_s == pytest.approx(0.5, abs=0.1)
            assert time.monotonic() - real_s > 0.8 * 0.5 / factor


def test_without_a_clock_the_stamps_tell_the_time():
    with port_to(has_clock=False) as (robot, port):
        begin_s = port.now_s()
        port.wait(0.5)
        assert begin_s + 0.5 - 1e-3 <= port.now_s() <= robot.time_s + 1e-3


def test_an_alarm_ends_a_wait():
    with port_to() as (robot, port):
        until_s = robot.time_s + 1.0
        port.wait(1000.0, lambda: port.now_s() > until_s)
        assert robot.time_s == pytest.approx(until_s, abs=0.5)


def test_empty_frames_at_the_start_are_no_odometry():
    with KinematicRobot(zero_frames=10**6) as robot, RosNode("driver") as node:
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        assert node.wait_until(lambda: port.scans.count > 5, 10.0)
        assert port.odom.value is None
        with fails_in_time(
            r"/odom: all \d+ messages are empty, without time \(published by /kinematic_robot\)"
        ):
            port.odometry()
        robot._zero_frames = 0
        assert port.odometry()[1].x == 0.0


@pytest.mark.parametrize(
    ("second", "x", "w", "counts"),
    [(0, 0.0, 1.0, False), (0, 0.1, 1.0, True), (0, 0.0, 0.9, True), (1, 0.0, 1.0, True)],
)
def test_only_empty_poses_at_time_zero_are_empty_frames(second, x, w, counts):
    with RosNode("driver") as node:
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        message = Odometry()
        message.header.stamp.sec, message.header.stamp.nanosec = second, 500
        message.pose.pose = Pose()
        message.pose.pose.position.x, message.pose.pose.orientation.w = x, w
        message.pose.pose.orientation.z = math.sqrt(1 - w * w)
        port.odom.hear(message)
        assert (port.odom.value is not None) is counts


def test_odometry_that_falls_silent_holds_the_robot_and_is_an_error():
    with port_to() as (robot, port):
        drive(port, 0.2)
        robot.silent.add("odom")
        with fails_in_time(r"/odom has 1 publisher \(/kinematic_robot\), but was silent for"):
            drive(port, ask=port.odometry)
        assert stands(robot)


def test_a_robot_is_held_while_its_odometry_is_away_and_goes_on_after():
    with port_to() as (robot, port):
        drive(port, 0.2)
        robot.silent.add("odom")
        timer = threading.Timer(TIMEOUT_S / 2, robot.silent.clear)
        timer.start()
        drive(port, 4.0, ask=port.odometry)
        timer.join()
        held = [command for command in robot.applied[1:] if command.linear_mps == 0.0]
        assert len(held) == 1
        assert robot.velocity == (0.1, 0.0)


@pytest.mark.parametrize("has_clock", [False, True])
def test_a_robot_that_falls_silent_altogether(has_clock):
    with port_to(has_clock=has_clock) as (robot, port):
        drive(port, 0.2)
        robot.silent.update({"clock", "odom", "scan"})
        match = (
            "/clock has 1 publisher" if has_clock else "/odom has 1 publisher .* and /scan has 1 publisher"
        )
        with fails_in_time(rf"time stands still.*{match}"):
            drive(port, ask=port.odometry)
        port.command(STILL)  # as the executor does
        assert stands(robot)


def test_a_robot_in_real_time_is_stopped_long_before_its_silence_is_an_error():
    with port_to(timeout_s=1.5, has_clock=False, real_time_factor=1.0) as (robot, port):
        drive(port, 0.2)
        silent_s = robot.time_s
        robot.silent.update({"odom", "scan"})
        with pytest.raises(SimulationError):
            drive(port)
        assert robot.applied[-1].linear_mps == 0.0
        assert robot.applied[-1].time_s - silent_s < 1.2


def test_a_simulation_that_is_paused():
    with port_to() as (robot, port):
        drive(port, 0.2)
        robot.is_paused = True
        with fails_in_time("time stands still.*Is the simulation paused"):
            drive(port, ask=port.odometry)


def test_a_scan_of_nan_is_an_error():
    with port_to() as (robot, port):
        assert len(port.scan().ranges) == 360
        drive(port, 0.2)
        robot.real_time_factor, robot.scan_filled_with, broken_s = 0.5, math.nan, robot.time_s
        with fails_in_time("/scan: all 360 ranges of the scan are NaN"):
            drive(port, ask=port.scan)
        assert stands(robot)
        assert robot.applied[-1].time_s - broken_s < 0.3, "by the first of them"


def test_a_scan_of_inf_is_free_floor():
    with port_to() as (robot, port):
        robot.scan_filled_with = math.inf
        drive(port, 1.0, ask=port.scan)
        assert math.isinf(port.scan().ranges.min())


def test_scans_and_poses_that_make_no_sense_are_told():
    with RosNode("driver") as node:
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        port.scans.hear(LaserScan())
        assert port.scans.problem == "its scans have no beams"
        port.scans.hear(LaserScan(ranges=[1.0], angle_min=math.nan))
        assert port.scans.problem == "the angles of the scan are not finite"
        message = Odometry()
        message.pose.pose.position.x = math.nan
        port.odom.hear(message)
        assert "expected finite numbers, found the pose Pose2(x=nan" in port.odom.problem
        message.pose.pose.position.x, message.pose.pose.orientation.w = 1.0, 0.0
        port.odom.hear(message)
        assert port.odom.problem == "its orientation is a quaternion of length 0, expected 1"
        assert port.odom.value is None


def test_a_robot_whose_sensors_have_different_clocks_is_told_from_one_that_was_reset():
    with port_to(has_clock=False) as (_, port):
        drive(port, 0.2)
        late = LaserScan(ranges=[1.0], angle_increment=0.1)
        late.header.stamp.sec = 1
        with pytest.raises(SimulationError, match=r"/odom and /scan are stamped by two clocks \(10\d\."):
            drive(port, ask=lambda: port.scans.hear(late))


@pytest.mark.parametrize("has_clock", [True, False])
def test_odometry_without_stamps_is_used_beside_stamped_scans(has_clock):
    options = {"has_clock": has_clock, "stamps_odometry": False, "odom_origin": Pose2(-1.0, 0.0, 0.0)}
    with port_to(**options) as (robot, port):
        drive(port, 1.0, ask=port.odometry)
        assert 1.05 < port.odometry()[1].x < 1.05 + robot.pose.x
        assert port.now_s() == pytest.approx(robot.time_s, abs=0.5)
        assert port.odometry()[0] == pytest.approx(port.now_s(), abs=0.5)
        assert not port.in_contact()


def test_a_robot_without_stamps_on_anything_says_so():
    options = {"has_clock": False, "has_scanner": False, "stamps_odometry": False}
    with (
        KinematicRobot(odom_origin=Pose2(-1.0, 0.0, 0.0), **options),
        RosNode("driver") as node,
    ):
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        assert node.wait_until(lambda: port.odom.value is not None, 10.0)
        with fails_in_time("time stands still.* /odom has no stamps"):
            port.catch_up()


def test_the_scanner_of_a_robot_that_is_spawned_anew_is_awaited(monkeypatch):
    monkeypatch.setattr(ros2_robot, "SCANNER_S", 30.0)
    with port_to(timeout_s=30.0) as (robot, port):
        port._scanner_due_s = 0.0  # long after the start
        gone, robot._scan_out, ticks = robot._scan_out, None, robot._ticks
        assert robot.wait_until(lambda: robot._ticks > ticks + 1, 10.0)
        robot.destroy_publisher(gone)
        assert port._node.wait_until(lambda: not port._node.count_publishers(port.scans.name), 10.0)
        port.forget()
        drives = threading.Event()

        def begin():
            port.catch_up()
            drives.set()

        thread = threading.Thread(target=begin)
        thread.start()
        assert not drives.wait(1.0)
        robot._scan_out = robot.create_publisher(LaserScan, "scan", SENSORS)
        thread.join(30.0)
        assert drives.is_set()
        assert len(port.scan().ranges)


def test_a_robot_that_stands_because_its_port_was_closed_touches_nothing():
    with port_to(bump_x_m=0.01) as (_, port):
        drive(port, 5.0)
        assert port.in_contact()
        port.close()
        assert not port.in_contact()


def test_time_that_jumps_back_ends_a_move_but_not_a_rest():
    with port_to() as (robot, port):
        drive(port, 0.2)
        robot.jump_to(0.0)
        with fails_in_time(r"time jumped back to \d"):
            drive(port)
        assert stands(robot)
        port.command(STILL)
        port.wait(2.0)
        robot.jump_to(0.5)
        assert port._node.wait_until(lambda: port._clock.jumps == 2, LATE_S)
        drive(port, 0.2, ask=port.odometry)


def test_a_wait_is_not_stretched_by_time_that_jumps_back():
    with port_to() as (robot, port):
        begin_s = time.monotonic()
        threading.Timer(0.1, robot.jump_to, [1.0]).start()
        port.wait(60.0)
        assert time.monotonic() - begin_s < LATE_S


def test_nobody_listens():
    with RosNode("driver") as node, RosNode("other", namespace="robot_7") as other:
        other.create_subscription(Twist, "cmd_vel", print, COMMANDS)
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        with fails_in_time("nobody listens to /cmd_vel, but there is /robot_7/cmd_vel: is the namespace"):
            port.command(Velocity(0.1))
        port.command(STILL)


def test_a_robot_that_listens_in_another_way_is_told():
    wrong = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    with KinematicRobot(command_qos=wrong), RosNode("driver") as node:
        port = Ros2Robot(node, RobotClock(node), silence_timeout_s=TIMEOUT_S)
        with fails_in_time("/kinematic_robot listens to /cmd_vel with an incompatible QoS"):
            port.command(Velocity(0.1))


def test_a_robot_that_is_held_is_in_contact():
    with port_to(bump_x_m=0.05, real_time_factor=2.0) as (_, port):
        touched = []
        drive(port, 5.0, ask=lambda: touched.append(port.in_contact()))
        assert not any(touched[:10])
        assert touched[-1]
        port.command(STILL)
        assert not port.in_contact()


def test_a_robot_that_has_not_heard_yet_is_not_in_contact():
    with port_to(lag_s=1.0) as (robot, port):
        touched = []
        drive(port, 3.0, ask=lambda: touched.append(port.in_contact()))
        assert robot.pose.x > 0.1
        assert not any(touched)


def test_a_robot_that_stands_because_it_is_held_back_is_not_in_contact():
    with port_to(bump_x_m=0.0) as (robot, port):
        drive(port, 3.0)
        assert port.in_contact()
        robot.silent.add("odom")
        port.wait(0.6)
        timer = threading.Timer(TIMEOUT_S / 2, robot.silent.clear)
        timer.start()
        port.odometry()
        assert not port.in_contact()
        timer.join()


def test_the_last_thing_a_port_says_is_stop():
    with port_to() as (robot, port):
        listener = Topic(robot, Twist, "cmd_vel", lambda message: (0.0, message.linear.x), qos=COMMANDS)
        assert robot.wait_until(lambda: port.cmd_vel.publisher.get_subscription_count() == 2, LATE_S)
        port.command(Velocity(0.1))
        port.close()
        port.cmd_vel.publish(0.2, 0.0)
        port.close()
        assert stands(robot)
        assert robot.wait_until(lambda: listener.count == 2, LATE_S)
        assert listener.value == 0.0
