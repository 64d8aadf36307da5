"""Our nodes understand, and are understood by, a peer that was written against the wire format alone."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dds_peer import DEPTHS_M, LOOPBACK, PIXELS, RANGES_M, SIDE
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from picture_messages import image_message

from proctor.worlds.ros2.node.convert import pose2, quaternion, seconds, stamp
from proctor.worlds.ros2.node.node import COMMANDS, SENSORS, RosNode
from proctor.worlds.ros2.node.topic import Topic
from proctor.worlds.ros2.robot.sensors import SensorSubscriber

DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def peer(ros_domain):
    command = [sys.executable, str(Path(__file__).with_name("dds_peer.py"))]
    environment = {**os.environ, "CYCLONEDDS_URI": LOOPBACK}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        yield process
        process.stdin.close()
        process.terminate()


@pytest.fixture(scope="module")
def node(peer):
    with RosNode("robot") as made:
        yield made


def test_we_understand_the_peer(node):
    sensors = SensorSubscriber(node=node, sensors=("rgb", "depth", "scan"))
    odometry = Topic(node, Odometry, "odom", lambda message: (seconds(message.header.stamp), message))
    command = Topic(node, Twist, "cmd_vel_there", lambda message: (0.0, message), qos=COMMANDS)
    observation = sensors.get_observation(DEADLINE_S)
    assert node.wait_until(lambda: odometry.value is not None and command.value is not None, DEADLINE_S)
    assert observation["rgb"].ravel().tolist() == PIXELS
    assert observation["rgb"].shape == (SIDE, SIDE, 3)
    wanted_mm = [i % 60000 for i in range(len(DEPTHS_M) - 3)] + [0, 0, 0]
    assert observation["depth"].ravel().tolist() == wanted_mm
    scan = observation["scan"]
    np.testing.assert_array_equal(scan.ranges, RANGES_M)
    assert (scan.angle_min, scan.range_max) == (-1.0, 10.0)
    assert scan.angle_increment == pytest.approx(0.4)
    heard = odometry.value
    pose = pose2(heard.pose.pose)
    assert (pose.x, pose.y, heard.pose.pose.position.z) == (1.25, -2.5, 0.125)
    assert pose.yaw == pytest.approx(0.6)
    assert heard.pose.covariance.tolist() == [0.5 * i for i in range(36)]
    assert (heard.twist.twist.linear.x, heard.twist.twist.angular.z) == (0.5, -0.25)
    assert (heard.header.frame_id, heard.child_frame_id) == ("there", "base")
    assert odometry.stamp_s % 1 == 0.5
    assert (command.value.linear.x, command.value.angular.z) == (0.5, -0.25)


def test_the_peer_understands_us(node, peer):
    rgb = np.random.default_rng(0).integers(0, 256, (120, 200, 3), dtype=np.uint8)
    odometry = Odometry(child_frame_id="base_link")
    odometry.header.stamp, odometry.header.frame_id = stamp(12.25), "odom"
    odometry.pose.pose.position.x, odometry.pose.pose.orientation = 3.5, quaternion(1.0)
    odometry.twist.twist.angular.z = 0.75
    drive = Twist()
    drive.linear.x, drive.angular.z = 0.1, -0.3
    sent = {
        "cmd_vel": (drive, COMMANDS),
        "odom_here": (odometry, SENSORS),
        "rgb_here": (image_message(rgb, "rgb8", stamp(12.25)), SENSORS),
    }
    publishers = {
        name: node.create_publisher(type(message), name, qos) for name, (message, qos) in sent.items()
    }

    def send():
        for name, publisher in publishers.items():
            publisher.publish(sent[name][0])

    node.create_timer(0.1, send)  # again and again: what is sent before the peer listens is not heard
    heard = {said["topic"]: said["message"] for said in (json.loads(peer.stdout.readline()) for _ in sent)}
    assert heard["cmd_vel"]["linear"] == {"x": 0.1, "y": 0.0, "z": 0.0}
    assert heard["cmd_vel"]["angular"] == {"x": 0.0, "y": 0.0, "z": -0.3}
    said = heard["odom_here"]
    assert said["header"] == {"stamp": {"sec": 12, "nanosec": 250_000_000}, "frame_id": "odom"}
    assert said["child_frame_id"] == "base_link"
    assert said["pose"]["pose"]["position"] == {"x": 3.5, "y": 0.0, "z": 0.0}
    assert said["pose"]["pose"]["orientation"]["z"] == pytest.approx(np.sin(0.5))
    assert said["twist"]["twist"]["angular"]["z"] == 0.75
    picture = heard["rgb_here"]
    assert (picture["height"], picture["width"], picture["step"]) == (120, 200, 600)
    assert (picture["encoding"], picture["is_bigendian"]) == ("rgb8", 0)
    assert picture["data"] == hashlib.sha256(rgb.tobytes()).hexdigest()
