"""Planning as actions, the controller as a node, and what RViz is shown: the three work together over DDS."""

import math

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import PoseStamped
from kinematic_robot import KinematicRobot
from nav_msgs.msg import OccupancyGrid
from nav_msgs.msg import Path as PathMessage
from plan_msgs.action import ComputePathToPose, GenerateTrajectory
from plan_msgs.msg import Dynamics
from skill_clients import Client, navigate, room

from proctor.core.errors import UserError
from proctor.core.types import Pose2
from proctor.maps.occupancy import Occupancy
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.timing.moves import straight
from proctor.robots.dynamics import Dynamics as Limits
from proctor.worlds.ros2.node.convert import quaternion
from proctor.worlds.ros2.node.node import LATCHED
from proctor.worlds.ros2.node.topic import Topic
from proctor.worlds.ros2.skill.mpc_node import NodeMpcController
from proctor.worlds.ros2.skill.navigator import NavigatorOptions
from proctor.worlds.ros2.skill.path_messages import path_message, path_of, points_of
from proctor.worlds.ros2.skill.skill_server import SkillServer

RTF = 2.0
LIMITS = Limits()


@pytest.fixture(scope="module")
def planner():
    with PlanningClient() as planner:
        assert planner.wait_until_ready(300.0)
        yield planner


@pytest.fixture(scope="module")
def robot(ros_domain):
    with KinematicRobot(real_time_factor=RTF, start=Pose2(0.0, 0.0, 1.0)) as robot:
        yield robot


@pytest.fixture(scope="module")
def server(robot, planner):
    options = NavigatorOptions(robot_namespace="", odom_origin=Pose2(0.0, 0.0, 1.0))
    with SkillServer(room(), options=options, client=planner) as server:
        assert server.wait_until(lambda: server.navigator.problem() is None, 20.0)
        yield server


@pytest.fixture(scope="module")
def client(server):
    with Client() as client:
        yield client


def place(x, y, yaw=0.0, frame="map"):
    stamped = PoseStamped()
    stamped.header.frame_id = frame
    stamped.pose.position.x, stamped.pose.position.y = x, y
    stamped.pose.orientation = quaternion(yaw)
    return stamped


def ask_path(client, **goal):
    goal = ComputePathToPose.Goal(**goal)
    return client.ask(goal, "/robot_0/compute_path_to_pose", ComputePathToPose)


def ask_trajectory(client, **goal):
    goal = GenerateTrajectory.Goal(**goal)
    return client.ask(goal, "/robot_0/generate_trajectory", GenerateTrajectory)


def test_a_path_becomes_a_trajectory_that_the_controller_follows_to_the_goal(client, robot):
    _, planned = ask_path(client, start=place(0.0, 0.0), goal=place(1.0, 0.4, 0.3)).end()
    assert planned.status == "success", planned
    assert planned.path.header.frame_id == "map"
    ends = [(p.pose.position.x, p.pose.position.y) for p in (planned.path.poses[0], planned.path.poses[-1])]
    assert ends == [pytest.approx((0.0, 0.0), abs=1e-6), pytest.approx((1.0, 0.4), abs=1e-6)]
    limits = Dynamics(v_max=0.8, omega_max=1.0, a_max=0.5, alpha_max=0.5)
    _, timed = ask_trajectory(client, path=planned.path, dynamics=limits, keep_final_heading=True).end()
    assert timed.status == "success", timed
    assert timed.trajectory[0].pos[2] == pytest.approx(1.0, abs=0.01)  # it stands there, and looks elsewhere
    assert timed.trajectory[-1].t == pytest.approx(timed.duration)
    assert max(math.hypot(*point.vel[:2]) for point in timed.trajectory) <= 0.8
    with NodeMpcController(odom_origin=Pose2(0.0, 0.0, 1.0)) as controller:
        assert controller.wait_until(lambda: controller.robot.problem() is None, 20.0)
        assert not controller.has_reference_trajectory()
        controller.set_reference_trajectory(timed.trajectory)
        assert controller.has_reference_trajectory()
        segment = controller.get_trajectory_segment(controller.get_current_time(), controller.mpc_horizon)
        assert segment.duration_s == pytest.approx(controller.mpc_horizon)
        assert controller.wait_until(lambda: controller.last is not None and controller.last.resting, 30.0)
    assert math.dist((robot.pose.x, robot.pose.y), (1.0, 0.4)) < 0.05
    assert robot.pose.yaw == pytest.approx(0.3, abs=0.05)


def test_the_controller_stops_a_robot_without_a_clock_that_falls_silent():
    with KinematicRobot(namespace="other", has_clock=False) as robot:
        remap = ["-r", "/clock:=/no_clock"]  # that of the other robot
        with NodeMpcController("other_mpc", namespace="other", ros_args=remap) as controller:
            assert controller.wait_until(lambda: controller.robot.problem() is None, 20.0)
            controller.set_reference_trajectory(straight(Pose2(0.0, 0.0, 0.0), 5.0, LIMITS))
            assert robot.wait_until(lambda: robot.velocity[0] > 0.1, 20.0)
            robot.silent.update({"odom", "scan"})
            assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 10.0)
            assert "/other/odom has 1 publisher" in controller.problem
            assert not controller.has_reference_trajectory()


@pytest.mark.parametrize(
    ("goal", "reason", "told"),
    [
        ({"goal": place(50.0, 0.0)}, "goal_outside_map", "map"),
        ({"goal": place(1.0, 0.0, frame="odom")}, "invalid_goal", "found 'odom'"),
        ({"goal": place(math.nan, 0.0)}, "invalid_goal", "finite"),
        ({"goal": place(1.0, 0.0), "planner_id": "rrt_sta"}, "invalid_goal", "did you mean 'rrt_star'"),
    ],
)
def test_paths_that_cannot_be_say_why(client, goal, reason, told):
    status, result = ask_path(client, start=place(0.0, 0.0), **goal).end()
    assert (status, result.status, result.reason) == (GoalStatus.STATUS_ABORTED, "failed", reason)
    assert told in result.message


def test_a_path_begins_at_the_robot_if_no_start_is_given(client, robot):
    _, result = ask_path(client, goal=place(2.0, 2.0), use_start=False).end()
    first = result.path.poses[0].pose.position
    assert (first.x, first.y) == pytest.approx((robot.pose.x, robot.pose.y), abs=0.02)


def test_planning_can_be_cancelled_and_others_are_served_afterwards(client):
    slow = ask_path(client, start=place(0.0, 0.0), goal=place(2.0, 0.0), planner_id="rrt_star")
    next_one = ask_path(client, start=place(0.0, 0.0), goal=place(2.0, 0.0))
    assert slow.cancel().goals_canceling
    status, result = slow.end()
    assert (status, result.status, result.reason) == (GoalStatus.STATUS_CANCELED, "failed", "cancelled")
    assert next_one.end()[1].status == "success"


def test_a_path_with_wrong_limits_or_no_length_is_refused(client):
    path = path_message(np.array([[0.0, 0.0], [1.0, 0.0]]), np.zeros(2), frame="map", time_s=0.0)
    _, result = ask_trajectory(client, path=path, dynamics=Dynamics(v_max=-1.0)).end()
    assert (result.status, result.reason) == ("failed", "invalid_goal")
    assert "v_max" in result.message
    _, result = ask_trajectory(client, path=PathMessage()).end()
    assert "2 to" in result.message


def test_rviz_gets_the_map_and_the_plan_also_later(client, server, robot):
    asked = client.ask(navigate(robot.pose.x + 0.3, robot.pose.y))
    status, result = asked.end()
    assert status == GoalStatus.STATUS_SUCCEEDED, result
    maps = Topic(client, OccupancyGrid, "/robot_0/map", lambda message: (0.0, message), qos=LATCHED)
    plans = Topic(client, PathMessage, "/robot_0/plan", lambda message: (0.0, message), qos=LATCHED)
    assert client.wait_until(lambda: maps.value is not None and plans.value is not None, 20.0)
    info = maps.value.info
    origin = (info.origin.position.x, info.origin.position.y)
    grid = Occupancy(np.array(maps.value.data), info.width, info.height, info.resolution, origin).grid()
    assert (grid.occupied == room().occupied).all()
    assert grid.origin_world == room().origin_world
    last = points_of(plans.value)[-1]
    assert math.dist(last, (robot.pose.x, robot.pose.y)) < 0.1


def test_corners_become_legs_and_curves_stay_whole():
    corner = path_of(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    assert [leg.yaw[0] for leg in corner.legs] == pytest.approx([0.0, math.pi / 2])
    assert corner.length_m == pytest.approx(2.0)
    angles = np.linspace(0.0, 2.0, 81)
    arc = path_of(np.stack([2 * np.sin(angles), 2 - 2 * np.cos(angles)], axis=1))
    (leg,) = arc.legs
    assert leg.curvature == pytest.approx(np.full(81, 0.5), abs=0.01)
    assert leg.yaw == pytest.approx(angles, abs=0.002)
    with pytest.raises(UserError, match="all the same"):
        path_of(np.zeros((3, 2)))
