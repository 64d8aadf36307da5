"""The skill server over DDS: goals, feedback, cancelling, other goals, and robots that fall silent."""

import math
import threading
import time

import pytest
from action_msgs.msg import GoalStatus
from kinematic_robot import TICK_S, KinematicRobot
from skill_clients import PATIENCE_S, Client, navigate, room, skill_goal

from proctor.core.errors import SimulationError, UserError
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.process.client import PlanningClient
from proctor.worlds.ros2.skill.navigator import NavigatorOptions
from proctor.worlds.ros2.skill.skill_server import SkillServer

RTF, SILENCE_S = 2.0, 0.8
NEAR_M = 0.1
"""The robot is told to be there; that it gets closer takes a machine that has time for each tick."""
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)


@pytest.fixture(scope="module")
def planner():
    with PlanningClient() as planner:
        assert planner.wait_until_ready(300.0)
        yield planner


@pytest.fixture(scope="module")
def client(ros_domain):
    with Client() as client:
        yield client


class Server(SkillServer):
    def __init__(self, planner):
        options = NavigatorOptions(robot_namespace="")
        self.ticks = 0
        super().__init__(room(), options=options, client=planner, silence_timeout_s=SILENCE_S)

    def _tick(self, goal):
        self.ticks += 1
        super()._tick(goal)

    def meet_robot(self):
        assert self.wait_until(lambda: self.navigator.problem() is None, 20.0), self.navigator.problem()


@pytest.fixture
def robot(ros_domain):
    with KinematicRobot(real_time_factor=RTF) as robot:
        yield robot


@pytest.fixture
def server(planner, robot):
    with Server(planner) as server:
        server.meet_robot()
        yield server


def is_driving(feedback):
    return feedback.velocity[0] > 0.2


def test_a_goal_is_reached_with_feedback_at_each_tick(client, robot, server):
    robot.real_time_factor = 0.5  # faster, a busy machine does not keep up with its ticks
    asked = client.ask(navigate(0.5, 0.1, goal_quat=[0, 0, 0, 1]))
    status, result = asked.end()
    assert (status, result.status, result.reason) == (SUCCEEDED, "succeeded", "")
    assert math.dist((robot.pose.x, robot.pose.y), (0.5, 0.1)) < NEAR_M
    assert abs(robot.pose.yaw) < NEAR_M
    assert result.final_distance < NEAR_M
    assert len(asked.feedback) == server.ticks - 1  # the last one ends it
    assert server.ticks * TICK_S < 1.1 * result.total_time  # a busy machine has fewer
    states = [feedback.state for feedback in asked.feedback]
    assert states[-1] == "SUCCEEDED"
    assert {"PATH_PLANNING", "EXECUTING"} < set(states)
    assert all(one.skill == "navigate_to" and one.status == "processing" for one in asked.feedback)
    assert any(is_driving(one) and 0 < one.eta < 10 and one.progress > 0 for one in asked.feedback)
    assert robot.velocity == (0.0, 0.0)


def test_cancelling_stops_the_robot_within_a_tenth_of_a_second(client, robot, server):
    asked = client.ask(navigate(4.0, 0.0))
    assert asked.wait_for(is_driving)
    robot.real_time_factor = 0.2  # a slow machine is no excuse
    asked_s = robot.time_s
    assert len(asked.cancel().goals_canceling) == 1
    status, result = asked.end()
    assert (status, result.status, result.reason) == (CANCELED, "failed", "cancelled")
    assert 0 < result.final_distance < 4.0
    assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
    assert robot.applied[-1].time_s - asked_s < 0.1


def test_another_goal_takes_the_place_of_the_first_while_the_robot_moves(client, robot, server):
    first = client.ask(navigate(4.0, 0.0))
    assert first.wait_for(is_driving)
    second = client.ask(navigate(1.0, 0.3))
    status, result = first.end()
    assert (status, result.reason) == (ABORTED, "cancelled")
    assert "another goal" in result.message
    assert robot.velocity[0] > 0.1
    status, _ = second.end()
    assert status == SUCCEEDED
    assert math.dist((robot.pose.x, robot.pose.y), (1.0, 0.3)) < NEAR_M


def test_a_goal_that_makes_no_sense_says_why_and_disturbs_nobody(client, robot, server):
    good = client.ask(navigate(0.6, 0.0))
    status, result = client.ask(skill_goal(("navigat_to", {}))).end()
    assert (status, result.status, result.reason) == (ABORTED, "failed", "invalid_goal")
    assert "did you mean 'navigate_to'" in result.message
    status, result = client.ask(navigate(100.0, 0.0)).end()  # takes its place, for it makes sense
    assert (status, result.reason) == (ABORTED, "goal_outside_map")
    assert good.end()[0] == ABORTED


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NavigationFailure(Reason.PLANNER_LOST, "the planning process is gone"), "planner_lost"),
        (UserError("a path of 2000000 bytes is too long to plan with"), "invalid_goal"),
        (SimulationError("the robot's pose is not known"), "pose_unknown"),
    ],
)
def test_an_error_in_a_tick_is_told_by_its_own_reason(client, robot, server, monkeypatch, error, reason):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(server.navigator.skills, "execute_skill", fail)
    status, result = client.ask(navigate(1.0, 0.0)).end()
    assert (status, result.reason) == (ABORTED, reason)
    assert str(error) in result.message


def test_skills_are_executed_one_after_the_other(client, robot, server):
    places = [("navigate_to", {"goal_pos": [0.2, 0.0, 0.0]}), ("navigate_to", {"goal_pos": [0.4, 0.0, 0.0]})]
    asked = client.ask(skill_goal(*places))
    status, result = asked.end()
    assert status == SUCCEEDED, result
    assert [one.state for one in asked.feedback].count("SUCCEEDED") == 2
    assert abs(robot.pose.x - 0.4) < NEAR_M


def test_a_goal_whose_client_has_gone_is_pursued(robot, server):
    with Client("visitor") as visitor:
        assert visitor.ask(navigate(0.8, 0.0)).wait_for(is_driving)
    assert robot.wait_until(lambda: abs(robot.pose.x - 0.8) < NEAR_M and robot.velocity[0] == 0, 20.0)


def test_closing_the_server_stops_the_robot_and_tells_the_client(client, robot, planner):
    with Server(planner) as server:
        asked = client.ask(navigate(4.0, 0.0))
        assert asked.wait_for(is_driving)
        server.close()
        assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
        status, result = asked.end()
    assert (status, result.reason) == (ABORTED, "cancelled")
    assert "closed" in result.message


@pytest.mark.parametrize(
    ("silent", "told"), [("clock", "/clock"), ("odom", "/odom"), ("scan", "/scan"), ("nan", "NaN")]
)
def test_a_robot_that_falls_silent_is_stopped_and_the_goal_fails(client, robot, server, silent, told):
    asked = client.ask(navigate(5.0, 0.0))
    assert asked.wait_for(is_driving)
    begin_s = time.monotonic()
    if silent == "nan":
        robot.scan_filled_with = math.nan
    else:
        robot.silent.add(silent)
    status, result = asked.end()
    assert (status, result.reason) == (ABORTED, "pose_unknown")
    assert told in result.message
    assert 0.5 * SILENCE_S < time.monotonic() - begin_s < 10 * SILENCE_S
    assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)


def test_after_a_short_silence_the_robot_goes_on(client, robot, server):
    asked = client.ask(navigate(0.8, 0.0))
    assert asked.wait_for(is_driving)
    robot.silent.add("odom")
    assert asked.wait_for(lambda one: "Waiting: /odom" in one.message)
    assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
    robot.silent.clear()
    assert asked.end()[0] == SUCCEEDED
    assert abs(robot.pose.x - 0.8) < NEAR_M


def test_time_that_goes_back_ends_the_goal_and_the_next_one_works(client, robot, server):
    asked = client.ask(navigate(5.0, 0.0))
    assert asked.wait_for(is_driving)
    robot.jump_to(1.0)
    status, result = asked.end()
    assert status == ABORTED
    assert "time went back" in result.message
    assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
    assert client.ask(navigate(robot.pose.x + 0.3, 0.0)).end()[0] == SUCCEEDED


def test_nobody_there_is_told_so(client, planner):
    with Server(planner):
        status, result = client.ask(navigate(1.0, 0.0)).end()
    assert status == ABORTED
    assert "nobody publishes /odom" in result.message


def test_without_a_clock_the_odometry_tells_the_time(client, planner):
    with KinematicRobot(real_time_factor=RTF, has_clock=False) as robot, Server(planner) as server:
        server.meet_robot()
        assert client.ask(navigate(0.5, 0.0)).end()[0] == SUCCEEDED
        assert not server.robot_clock.is_simulated
        asked = client.ask(navigate(5.0, 0.0))
        assert asked.wait_for(is_driving)
        robot.silent.update({"odom", "scan"})
        assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
        assert asked.end()[0] == ABORTED


def test_a_machine_that_stalls_does_not_take_the_robot_for_silent(client, server):
    asked = client.ask(navigate(4.0, 0.0))
    assert asked.wait_for(is_driving)
    stalled = threading.Event()

    def stall():
        time.sleep(2 * SILENCE_S)  # in the thread that hears the robot
        stalled.set()

    server.executor.create_task(stall)
    assert stalled.wait(PATIENCE_S)
    assert asked.end()[0] == SUCCEEDED


def test_what_the_scanner_does_not_see_is_a_collision(client, planner):
    with KinematicRobot(real_time_factor=RTF, bump_x_m=0.5) as robot, Server(planner) as server:
        server.meet_robot()
        asked = client.ask(navigate(2.0, 0.0))
        assert asked.wait_for(lambda one: "Collision" in one.message)
        assert robot.wait_until(lambda: robot.velocity[0] < 0, 5.0)  # it backs off
        asked.cancel()
        status, result = asked.end()
        assert status == CANCELED, result.message
