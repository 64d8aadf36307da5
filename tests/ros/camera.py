"""A camera and a scanner for tests, which send what they are told to."""

import array
import math

import numpy as np
from picture_messages import image_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, LaserScan

from proctor.worlds.ros2.node.convert import stamp
from proctor.worlds.ros2.node.node import CLOCK, SENSORS, RosNode

MATCH_S = 20.0


class Camera(RosNode):
    """Sends what a test tells it to. The stamp, in tenths of a second, is also the shade of the picture."""

    def __init__(
        self, namespace="", qos=SENSORS, kinds=(("rgb", Image), ("depth", Image), ("scan", LaserScan))
    ):
        super().__init__("camera", namespace=namespace)
        self._out = {name: self.create_publisher(kind, name, qos) for name, kind in kinds}
        self._clock = self.create_publisher(Clock, "/clock", CLOCK)

    def wait_for(self, listener):
        """Wait until both sides know of each other: what is sent before is lost."""
        topics = listener._topics
        assert self.wait_until(
            lambda: all(self._out[name].get_subscription_count() for name in topics), MATCH_S
        )
        assert self.wait_until(self._clock.get_subscription_count, MATCH_S)
        subscriptions = [topic.subscription for topic in topics.values()]
        assert listener.node.wait_until(lambda: all(s.get_publisher_count() for s in subscriptions), MATCH_S)

    def look(self, time_s, *, depth_s=None, names=("rgb", "depth"), encodings=("rgb8", "16UC1")):
        shade = round(10 * time_s)
        rgb = np.full((2, 3, 3), shade, np.uint8)
        depth = np.full((2, 3), shade, np.uint16)
        if "rgb" in names:
            self._out["rgb"].publish(image_message(rgb, encodings[0], stamp(time_s)))
        if "depth" in names:
            at = stamp(time_s if depth_s is None else depth_s)
            self._out["depth"].publish(image_message(depth, encodings[1], at))

    def scan(self, time_s, ranges):
        message = LaserScan(angle_min=-math.pi, angle_increment=math.tau / len(ranges))
        message.header.stamp, message.range_min, message.range_max = stamp(time_s), 0.02, 10.0
        message.ranges = array.array("f", ranges)
        self._out["scan"].publish(message)

    def tell_time(self, time_s):
        self._clock.publish(Clock(clock=stamp(time_s)))
