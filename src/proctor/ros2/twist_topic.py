"""The topic that takes velocities: who obeys, and why nobody does."""

from __future__ import annotations

import threading
import time

from geometry_msgs.msg import Twist
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, qos_check_compatible

from proctor.ros2.context import open_context
from proctor.ros2.node import RosNode
from proctor.ros2.qos import COMMANDS
from proctor.ros2.topic import elsewhere, type_name

GONE_S = 1.0
"""So long a last message may take to reach those who listen."""
LOOK_S = 0.02


class TwistTopic:
    """Tells a robot how fast to move. May be used from any thread.

    Args:
        node: Who speaks.
        name: The topic's name, below the node's namespace unless it begins with a slash.
    """

    def __init__(self, node: RosNode, name: str = "cmd_vel") -> None:
        self._node = node
        self.publisher = node.create_publisher(Twist, name, COMMANDS)
        self.name = str(self.publisher.topic_name)
        self._lock, self.is_closed, self._moves = threading.Lock(), False, False

    def publish(self, linear_x: float, angular_z: float, linear_y: float = 0.0) -> None:
        """Send a velocity in the robot's frame, in m/s and rad/s.

        Nothing is sent after `close`, nor after a signal has shut the node's context down.
        """
        message = Twist()
        message.linear.x, message.linear.y, message.angular.z = linear_x, linear_y, angular_z
        with self._lock:
            if not self.is_closed and self._node.context.ok():
                self._moves = message != Twist()
                self.publisher.publish(message)

    def is_heard(self) -> bool:
        """Tell whether anyone gets what is sent."""
        with self._lock:
            is_open = not self.is_closed and self._node.context.ok()
            return is_open and self.publisher.get_subscription_count() > 0

    def close(self) -> None:
        """Stop the robot for good, before the node goes; if it moves, wait a second that it gets the stop.

        The signal handlers of `rclpy.init` shut all contexts down, also the node's. Then the stop is sent
        through another one.
        """
        with self._lock:
            if self.is_closed:
                return
            self.is_closed = True
            if not self._node.context.ok():
                _send_stop(self.name)
                return
            self.publisher.publish(Twist())
            if self._moves:
                self.publisher.wait_for_all_acked(Duration(seconds=GONE_S))

    def diagnosis(self) -> str:
        """Return why nobody gets what is sent, as far as the graph of nodes tells."""
        wanted = type_name(Twist)
        listeners = self._node.get_subscriptions_info_by_topic(self.name)
        if not listeners:
            return f"nobody listens to {self.name}{elsewhere(self._node, self.name, wanted)}"
        who = ", ".join(sorted({f"{one.node_namespace.rstrip('/')}/{one.node_name}" for one in listeners}))
        types = sorted({one.topic_type for one in listeners})
        if wanted not in types:
            return f"{who} expects {', '.join(types)} on {self.name}, which is {wanted}"
        clashes = [
            reason.strip("; ")
            for one in listeners
            for verdict, reason in [qos_check_compatible(COMMANDS, one.qos_profile)]
            if verdict == QoSCompatibility.ERROR
        ]
        if clashes:
            return f"{who} listens to {self.name} with an incompatible QoS: {'; '.join(clashes)}"
        return f"{who} listens to {self.name}, but is not connected"


def _send_stop(topic_name: str) -> None:
    """Send a velocity of zero through a context of its own, if anyone listens within a second."""
    context = open_context()
    node = Node("stop", context=context, start_parameter_services=False, enable_rosout=False)
    executor = SingleThreadedExecutor(context=context)
    try:
        executor.add_node(node)
        publisher = node.create_publisher(Twist, topic_name, COMMANDS)
        deadline_s = time.monotonic() + GONE_S
        while publisher.get_subscription_count() == 0 and time.monotonic() < deadline_s:
            executor.spin_once(timeout_sec=LOOK_S)
        publisher.publish(Twist())
        publisher.wait_for_all_acked(Duration(seconds=GONE_S))
    finally:
        executor.shutdown(timeout_sec=GONE_S)
        node.destroy_node()
        context.try_shutdown()
