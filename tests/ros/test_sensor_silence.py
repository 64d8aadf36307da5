"""Why there is no observation."""

import pytest
from camera import MATCH_S, Camera
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, LaserScan

from proctor.core.errors import SimulationError
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.robot.sensors import SensorSubscriber

SOON_S = 0.3
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)


@pytest.mark.parametrize(
    ("options", "listens", "complaint"),
    [
        ({"namespace": "robot_1"}, {}, "nobody publishes /rgb, but there is /robot_1/rgb: is the namespace"),
        ({}, {"qos_profile": RELIABLE}, "/rgb is published by /camera with an incompatible QoS.*/depth"),
        (
            {"kinds": [("rgb", LaserScan), ("depth", Image)]},
            {},
            "/rgb is sensor_msgs/msg/LaserScan, expected sensor_msgs/msg/Image",
        ),
        ({}, {}, r"/rgb has 1 publisher \(/camera\), but was silent for .*; /depth has 1 publisher"),
    ],
)  # fmt: skip
def test_silence_is_explained(ros_domain, options, listens, complaint):
    with Camera(**options) as camera, RosNode("agent") as node:
        subscriber = SensorSubscriber(node=node, **listens)
        node.wait_until(
            lambda: all(node.count_publishers(out.topic_name) for out in camera._out.values()), MATCH_S
        )
        with pytest.raises(SimulationError, match=complaint):
            subscriber.get_observation(SOON_S)
