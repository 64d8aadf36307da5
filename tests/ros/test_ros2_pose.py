"""Where a robot on ROS 2 is: odometry, carried on in time and put into the map."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import TransformStamped
from kinematic_robot import KinematicRobot
from nav_msgs.msg import Odometry
from tf2_msgs.msg import TFMessage

from proctor.core.errors import SimulationError
from proctor.core.types import Pose2
from proctor.robots.robot import Twist
from proctor.worlds.ros2.node.convert import quaternion, stamp
from proctor.worlds.ros2.node.node import LATCHED, RosNode
from proctor.worlds.ros2.node.topic import RobotClock
from proctor.worlds.ros2.robot.odometry import EXTRAPOLATED_S, Moved, Track, Transforms, read_odometry
from proctor.worlds.ros2.robot.ros2_robot import Ros2Robot, topic_in


def moved(stamp_s, x, yaw=0.0, v=0.0, omega=0.0):
    return Moved(stamp_s, Pose2(x, 0.0, yaw), np.array([v, 0.0, omega]))


def test_poses_between_messages_are_interpolated_and_after_them_carried_on():
    track = Track()
    assert track.at(1.0) is None
    track.add(moved(1.0, 0.0, yaw=3.1))
    track.add(moved(2.0, 1.0, yaw=-3.1, v=0.5))
    assert track.at(1.5).x == pytest.approx(0.5)
    assert abs(track.at(1.5).yaw) == pytest.approx(math.pi, abs=1e-3)  # the short way round
    assert track.at(0.0).x == 0.0
    assert track.at(2.05).x == pytest.approx(1.0 + 0.025 * math.cos(3.1))
    assert track.at(9.0).x == pytest.approx(1.0 + 0.5 * EXTRAPOLATED_S * math.cos(3.1))


def test_a_pose_is_known_where_messages_were_close():
    track = Track()
    assert not track.covers(1.0)
    for stamp_s in (1.0, 1.1, 1.4):
        track.add(moved(stamp_s, 0.0))
    asked = {1.0: True, 1.05: True, 1.1: True, 1.2: False, 1.4: True, 1.45: False, 0.9: False}
    assert {time_s: track.covers(time_s) for time_s in asked} == asked


def test_speeds_are_those_of_the_poses():
    track = Track()
    for count in range(20):
        track.add(moved(0.05 * count, 0.01 * count, yaw=3.1 + 0.02 * count, v=9.0))
    assert track.newest_speeds() == pytest.approx((0.2, 0.4))


def test_a_turning_robot_is_carried_on_along_its_arc():
    after = moved(0.0, 0.0, v=1.0, omega=1.0).after(0.1)
    assert (after.x, after.y, after.yaw) == pytest.approx((math.sin(0.1), 1 - math.cos(0.1), 0.1), abs=1e-4)


def test_late_messages_are_left_out_and_a_new_time_begins_anew():
    track = Track()
    track.add(moved(100.0, 1.0))
    track.add(moved(99.9, 5.0))
    assert track.at(100.0).x == 1.0
    track.add(moved(0.5, 7.0))
    assert track.at(0.0).x == 7.0


def test_empty_odometry_is_ignored_and_odometry_that_is_not_finite_refused():
    message = Odometry()
    assert read_odometry(message, 9.0) is None
    message.header.stamp = stamp(5.0)
    assert read_odometry(message, 9.0)[0] == 5.0
    message.twist.twist.linear.x = math.nan
    with pytest.raises(ValueError, match="finite"):
        read_odometry(message, 9.0)


def test_odometry_without_a_stamp_is_of_the_time_at_which_it_is_heard():
    message = Odometry()
    message.pose.pose.position.x = 1.0
    stamp_s, moved_by = read_odometry(message, 9.0)
    assert (stamp_s, moved_by.stamp_s, moved_by.pose_odom.x) == (9.0, 9.0, 1.0)


def test_topics_are_where_the_robot_is():
    assert [topic_in(name, "odom") for name in (None, "", "/", "robot_0", "/a/b/")] == [
        "odom",
        "/odom",
        "/odom",
        "/robot_0/odom",
        "/a/b/odom",
    ]


def test_odometry_that_goes_by_another_clock_is_told():
    with RosNode("driver", starts=False) as node:
        clock = RobotClock(node)
        base = Ros2Robot(node, clock, silence_timeout_s=None)
        clock.hear(12.0)
        message = Odometry()
        message.header.stamp = stamp(1_700_000_000.0)
        base.odom.hear(message)
        assert "/odom is stamped 1700000000.000 s, but the robot's time is 12.000 s" in base.problem()


def test_the_pose_is_that_of_the_odometry_in_the_map():
    with RosNode("driver", starts=False) as node, KinematicRobot() as robot:
        clock = RobotClock(node)
        base = Ros2Robot(
            node,
            clock,
            transforms=Transforms(node),
            odom_origin=Pose2(5.0, 5.0, 0.0),
            silence_timeout_s=None,
        )
        with pytest.raises(SimulationError, match=r"not known: .*/odom"):
            base.pose()
        node.start()
        assert node.wait_until(lambda: base.problem() is None, 20.0), base.problem()
        assert base.pose() == Pose2(5.0, 5.0, 0.0)  # nobody has told where the odometry begins
        static = robot.create_publisher(TFMessage, "/tf_static", LATCHED)
        told = TransformStamped(child_frame_id="odom")
        told.header.frame_id = "map"
        told.transform.translation.x, told.transform.rotation = 2.0, quaternion(math.pi / 2)
        static.publish(TFMessage(transforms=[told]))
        assert node.wait_until(lambda: base.pose().x == pytest.approx(2.0), 20.0)

        def is_driving():
            base.command(Twist(vx=0.5))  # again and again, until the robot knows of us
            return base.velocity().vx == 0.5 and base.pose().y > 0.1

        assert node.wait_until(is_driving, 20.0)
        assert base.pose().x == pytest.approx(2.0)
        assert base.pose().yaw == pytest.approx(math.pi / 2)
        robot.silent.add("odom")
        assert node.wait_until(lambda: base.problem() is not None, 20.0)
        with pytest.raises(SimulationError, match="/odom"):
            base.pose()
        base.close()
        assert robot.wait_until(lambda: robot.velocity == (0.0, 0.0), 5.0)
