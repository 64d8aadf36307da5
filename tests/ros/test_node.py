"""Nodes come and go, hear each other, and say why they do not."""

import subprocess
import sys
import threading
import time

import pytest
import rclpy
from geometry_msgs.msg import Twist
from kinematic_robot import KinematicRobot
from rclpy.task import Future
from rosgraph_msgs.msg import Clock

from proctor.core.errors import SimulationError, UserError
from proctor.worlds.ros2.node.convert import seconds, stamp
from proctor.worlds.ros2.node.node import CLOCK, RosNode
from proctor.worlds.ros2.node.topic import Topic


def test_nodes_come_and_go_in_one_process():
    for number in range(10):
        node = RosNode(f"visitor_{number}")
        node.close()
        node.close()


def test_a_message_wakes_who_waits():
    with RosNode("speaker") as speaker, RosNode("listener") as listener:
        topic = Topic(listener, Twist, "cmd_vel", lambda message: (1.0, message.linear.x))
        publisher = speaker.create_publisher(Twist, "cmd_vel", 10)
        message = Twist()
        message.linear.x = 0.25

        def heard():
            publisher.publish(message)  # again and again: what is sent before both have met is lost
            return topic.value == 0.25

        assert listener.wait_until(heard, 10.0)


@pytest.mark.parametrize("domain", ["233", "-1", "one", "1.5"])
def test_a_domain_that_is_none_is_a_user_error(monkeypatch, domain):
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    with pytest.raises(UserError, match=f"ROS_DOMAIN_ID: expected a number from 0 to 232, found '{domain}'"):
        RosNode("nowhere")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_waiting_ends_when_a_callback_fails():
    def fail():
        raise ZeroDivisionError

    with RosNode("listener") as node:
        assert node.is_listening
        node.create_timer(0.01, fail)
        with pytest.raises(SimulationError, match="the ROS 2 node listener no longer listens"):
            node.wait_until(lambda: False, 10.0)
        assert not node.is_listening


def test_waiting_ends_at_its_deadline_and_when_the_node_is_closed():
    with RosNode("listener") as node:
        begin_s = time.monotonic()
        assert not node.wait_until(lambda: False, 0.2)
        assert 0.15 < time.monotonic() - begin_s < 5.0
    with pytest.raises(SimulationError, match="no longer listens"):
        node.wait_until(lambda: False, 10.0)


def test_stamps_survive_the_way_there_and_back():
    assert seconds(stamp(12.000000001)) == pytest.approx(12.000000001, abs=1e-9)
    assert stamp(0.9999999999).sec == 1


def test_who_spins_the_node_as_is_usual_in_ros_does_no_harm():
    rclpy.init()
    try:
        with RosNode("listener") as node, RosNode("talker") as talker:
            heard = []
            node.create_subscription(Clock, "/clock", heard.append, CLOCK)
            publisher = talker.create_publisher(Clock, "/clock", CLOCK)
            talker.create_timer(0.02, lambda: publisher.publish(Clock()))
            assert node.wait_until(lambda: len(heard) > 0, 10.0)
            rclpy.spin_once(node)
            rclpy.spin_once(node, timeout_sec=0.05)
            rclpy.spin_until_future_complete(node, Future(), timeout_sec=0.05)
            so_far = len(heard)
            assert node.wait_until(lambda: len(heard) > so_far + 2, 10.0)
    finally:
        rclpy.shutdown()


def test_stamp_and_value_of_a_topic_are_replaced_at_once():
    with RosNode("listener") as node:
        topic = Topic(node, Clock, "/clock", lambda message: (seconds(message.clock), seconds(message.clock)))
        topic.hear(Clock(clock=stamp(1.0)))
        pairs = []

        def look(frame, event, argument):
            if frame.f_code is Topic.hear.__code__:
                frame.f_trace_opcodes = True  # another thread may run between any two of them
                pairs.append((topic.stamp_s, topic.value))
                return look
            return None

        before = sys.gettrace()
        sys.settrace(look)
        try:
            topic.hear(Clock(clock=stamp(2.0)))
        finally:
            sys.settrace(before)
        assert set(pairs) == {(1.0, 1.0), (2.0, 2.0)}


ENDED_BY_A_SIGNAL = """
import os, signal, threading
import rclpy
from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor

rclpy.init()
executor = VLNActionExecutor()
assert executor.wait_for_odom(10.0)
rclpy.spin_once(executor)
threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    executor.move_timed(0.1, 0.0, 1000.0)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_in_a_program_that_spins_stops_the_robot_and_leaves_no_error():
    with KinematicRobot() as robot:
        ended = subprocess.run(
            [sys.executable, "-c", ENDED_BY_A_SIGNAL], capture_output=True, text=True, timeout=60, check=False
        )
        assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 10.0)
        assert robot.pose.x > 0
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


@pytest.mark.parametrize("shuts_down", [True, False])
def test_a_thread_ends_silently_when_its_context_is_shut_down_at_any_moment(monkeypatch, shuts_down):
    raised = []
    monkeypatch.setattr(threading, "excepthook", lambda hooked: raised.append(hooked.exc_type))
    with RosNode("listener") as node:

        def nodes():
            """Is asked by rclpy between its look at the context and the use of it."""
            if not shuts_down:
                raise RuntimeError("of another kind")
            node.context.try_shutdown()
            return [node]

        monkeypatch.setattr(node._spinner, "get_nodes", nodes)
        with pytest.raises(SimulationError, match="no longer listens"):
            node.wait_until(lambda: False, 10.0)
    assert raised == ([] if shuts_down else [RuntimeError])


def test_an_executor_that_was_shut_down_after_it_spun_a_node_does_no_harm():
    rclpy.init()
    with RosNode("listener") as node:
        for _ in range(20):
            rclpy.spin_once(node, timeout_sec=0)
        rclpy.shutdown()
        node.create_timer(0.01, lambda: None)
        assert not node.wait_until(lambda: False, 0.3)
        assert node.is_listening


def test_names_that_ros_does_not_take_are_an_error_of_the_user():
    for wrong in ({"name": "a b"}, {"name": "a", "namespace": "b c"}):
        with pytest.raises(UserError, match="does not take the name"):
            RosNode(**wrong)
    with pytest.raises(UserError, match="does not take the name"):
        RosNode("a", ros_args=["-r", "__ns:=/b/"])


def test_a_node_that_is_destroyed_is_closed():
    node = RosNode("gone")
    node.destroy_node()
    assert not node.is_listening
    node.close()
