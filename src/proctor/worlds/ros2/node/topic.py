"""Topics: the newest message, velocities that are sent, why there is no peer, and the robot's clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from geometry_msgs.msg import Twist
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible
from rclpy.topic_endpoint_info import TopicEndpointInfo
from rosgraph_msgs.msg import Clock

from proctor.worlds.ros2.node.convert import seconds
from proctor.worlds.ros2.node.node import (
    CLOCK,
    COMMANDS,
    PROFILE_FILE,
    PROFILE_VARIABLES,
    SENSORS,
    RosNode,
    open_context,
)

Value = TypeVar("Value")
GONE_S = 1.0  # so long a last message may take to reach those who listen


def type_name(message_type: Any) -> str:
    """Return the name of a type of messages as the graph has it: `geometry_msgs/msg/Twist`."""
    return f"{message_type.__module__.split('.')[0]}/msg/{message_type.__name__}"


def elsewhere(node: RosNode, topic_name: str, wanted_type: str) -> str:
    """Return where a topic of that name is, if it is in another namespace."""
    last = topic_name.rpartition("/")[2]
    others = [
        name
        for name, types in node.get_topic_names_and_types()
        if name.rpartition("/")[2] == last and name != topic_name and wanted_type in types
    ]
    return f", but there is {', '.join(others)}: is the namespace right?" if others else ""


class Stamped(NamedTuple, Generic[Value]):
    """A value and the stamp of its message."""

    stamp_s: float
    value: Value


class Topic(Generic[Value]):
    """Keeps the newest value of a topic, below the node's namespace unless the name begins with a slash.

    Other threads may read it: stamp and value are replaced in one assignment. To get both, read `newest`.
    `read` returns the stamp of a message in seconds and its value, or None to ignore the message; a
    ValueError says what is wrong with it. `on_value` is called after each value, in the node's thread.
    """

    def __init__(
        self,
        node: RosNode,
        message_type: Any,
        name: str,
        read: Callable[[Any], tuple[float, Value] | None],
        *,
        on_value: Callable[[Stamped[Value]], None] | None = None,
        qos: QoSProfile = SENSORS,
    ) -> None:
        self._node, self._read, self._on_value = node, read, on_value
        self.newest: Stamped[Value | None] = Stamped(0.0, None)
        self.count = 0  # values that came
        self.problem: str | None = None  # what is wrong with the newest message, if anything
        self.lost = 0  # messages that were sent and never came, as far as is known
        self._heard_s, self._ignored = time.monotonic(), 0
        events = SubscriptionEventCallbacks(message_lost=self._lose)
        try:
            self.subscription = node.create_subscription(
                message_type, name, self.hear, qos, event_callbacks=events
            )
        except UnsupportedEventTypeError:  # not every DDS tells what it has lost
            self.subscription = node.create_subscription(message_type, name, self.hear, qos)

    @property
    def name(self) -> str:
        """The full name of the topic."""
        return str(self.subscription.topic_name)

    @property
    def value(self) -> Value | None:
        """The newest value, None before there is one."""
        return self.newest.value

    @property
    def stamp_s(self) -> float:
        """The stamp of the value, 0 before there is one."""
        return self.newest.stamp_s

    def forget(self) -> None:
        """Drop the value: what comes next is of another episode or another simulator."""
        self.newest, self.problem, self._ignored = Stamped(0.0, None), None, 0

    def sources(self) -> list[str]:
        """Return the names of the nodes that publish it.

        One that was killed stays for some seconds, but not beside its successor of the same name.
        """
        return node_names(self._node.get_publishers_info_by_topic(self.name))

    def diagnosis(self) -> str:
        """Return why there is no new message, as far as the graph of nodes tells."""
        publishers = self._node.get_publishers_info_by_topic(self.name)
        if not publishers:
            return f"nobody publishes {self.name}{elsewhere(self._node, self.name, self._type_name())}"
        who = ", ".join(self.sources())
        wanted = self._type_name()
        types = sorted({p.topic_type for p in publishers} - {wanted})
        if types and len(types) == len({p.topic_type for p in publishers}):
            return f"{self.name} is {', '.join(types)}, expected {wanted} (published by {who})"
        own = self.subscription.qos_profile
        clashes = _clashes((publisher.qos_profile, own) for publisher in publishers)
        if len(clashes) == len(publishers):
            return f"{self.name} is published by {who} with an incompatible QoS: {'; '.join(clashes)}"
        if self.value is None and self._ignored:
            return f"{self.name}: all {self._ignored} messages are empty, without time (published by {who})"
        if self.problem is not None:
            return f"{self.name}: {self.problem} (published by {who})"
        silent_s = time.monotonic() - self._heard_s
        count = f"{len(publishers)} publisher{'s' * (len(publishers) > 1)}"
        lost = f"; {self.lost} messages of it got lost" if self.lost else ""
        return f"{self.name} has {count} ({who}), but was silent for {silent_s:.1f} s{lost}"

    def _type_name(self) -> str:
        return type_name(self.subscription.msg_type)

    def hear(self, message: Any) -> None:
        """Take in a message; the subscription does this, in the node's thread."""
        self._heard_s = time.monotonic()
        try:
            read = self._read(message)
        except ValueError as error:
            self.problem = str(error)
            return
        if read is None:
            self._ignored += 1
            return
        self.newest = Stamped(*read)
        self.problem, self._ignored = None, 0
        self.count += 1
        if self._on_value is not None:
            self._on_value(Stamped(*read))

    def _lose(self, event: Any) -> None:
        self.lost = event.total_count
        self._node.get_logger().warning(
            f"messages of {self.name} get lost. If they are pictures, start who sends them with "
            f"{PROFILE_VARIABLES[0]}={PROFILE_FILE}, and with at least 20 MB free in /dev/shm",
            once=True,
        )


class TwistTopic:
    """Sends velocities to a robot, from any thread."""

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
        who = ", ".join(node_names(listeners))
        types = sorted({one.topic_type for one in listeners})
        if wanted not in types:
            return f"{who} expects {', '.join(types)} on {self.name}, which is {wanted}"
        clashes = _clashes((COMMANDS, one.qos_profile) for one in listeners)
        if clashes:
            return f"{who} listens to {self.name} with an incompatible QoS: {'; '.join(clashes)}"
        return f"{who} listens to {self.name}, but is not connected"


def _clashes(pairs: Iterable[tuple[QoSProfile, QoSProfile]]) -> list[str]:
    """Return why publishers (the first of each pair) do not reach subscriptions."""
    verdicts = (qos_check_compatible(*pair) for pair in pairs)
    return [reason.strip("; ") for verdict, reason in verdicts if verdict == QoSCompatibility.ERROR]


def node_names(endpoints: Iterable[TopicEndpointInfo]) -> list[str]:
    """Return the names of nodes that publish or listen. Topics are discovered before their nodes' names."""
    names = (f"{one.node_namespace.rstrip('/')}/{one.node_name}" for one in endpoints)
    unknown = "_NODE_NAME_UNKNOWN_"  # of rmw, until it has discovered the node
    return sorted({"a node of unknown name" if unknown in name else name for name in names})


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
            executor.spin_once(timeout_sec=0.02)
        publisher.publish(Twist())
        publisher.wait_for_all_acked(Duration(seconds=GONE_S))
    finally:
        executor.shutdown(timeout_sec=GONE_S)
        node.destroy_node()
        context.try_shutdown()


BLIND_S, WATCH_S = 0.5, 0.1
"""A robot whose time is that of its messages is stopped after so long without any, for it may still move; and
how often to look."""
EARLY = 0.9  # ticks of the clock are due after this share of their period, for stamps are rounded
JUMP_S = 0.5  # messages overtake each other by less than this; a clock that is further back was set back


class RobotClock:
    """Listens to `/clock`; where nobody publishes it, the stamps of the robot's messages are the time.

    `on_time` is called after each message with a time, in the node's thread, also while the time stands
    still.
    """

    def __init__(self, node: RosNode, on_time: Callable[[], None] | None = None) -> None:
        self.now_s = 0.0  # the newest time heard of
        self.jumps = 0  # how often time went back: the simulator was started or reset anew
        self.is_simulated = False  # whether `/clock` is heard
        self._on_time = on_time
        self._topic: Topic[bool] = Topic(
            node, Clock, "/clock", _read_clock, on_value=lambda newest: self.hear(newest.stamp_s), qos=CLOCK
        )

    def hear_stamp(self, stamp_s: float) -> None:
        """Take in the stamp of a message of the robot; 0 is the stamp of one that has none."""
        if stamp_s > 0 and not self.is_simulated:
            self._take(stamp_s)

    def diagnosis(self) -> str:
        """Return why `/clock` is silent, as far as the graph of nodes tells."""
        return self._topic.diagnosis()

    def hear(self, stamp_s: float) -> None:
        """Take in a time of `/clock`, as told by someone who hears it."""
        self.is_simulated = True
        self._take(stamp_s)

    def _take(self, stamp_s: float) -> None:
        if stamp_s < self.now_s - JUMP_S:
            self.jumps += 1
            self.now_s = stamp_s
        self.now_s = max(self.now_s, stamp_s)
        if self._on_time is not None:
            self._on_time()


def _read_clock(message: Clock) -> tuple[float, bool]:
    return seconds(message.clock), True
