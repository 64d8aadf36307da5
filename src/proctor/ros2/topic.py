"""One topic that is listened to: its newest message, and why there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
from rclpy.qos import QoSCompatibility, QoSProfile, qos_check_compatible

from proctor.ros2.node import RosNode
from proctor.ros2.profile import FILE, VARIABLES
from proctor.ros2.qos import SENSORS

Value = TypeVar("Value")


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


class Newest(NamedTuple, Generic[Value]):
    """A value and the stamp of its message; both are of the same message."""

    stamp_s: float
    value: Value | None


class Topic(Generic[Value]):
    """Keeps the newest value of a topic.

    Other threads may read it: stamp and value are replaced in one assignment. Who needs both reads `newest`.

    Args:
        node: Who listens.
        message_type: The class of its messages.
        name: Its name, below the node's namespace unless it begins with a slash.
        read: Returns the stamp of a message in seconds and its value, or None if the message is to be
            ignored; a ValueError says what is wrong with the message.
        on_value: Is called after each value, in the node's thread.
        qos: How to listen.
    """

    def __init__(
        self,
        node: RosNode,
        message_type: Any,
        name: str,
        read: Callable[[Any], tuple[float, Value] | None],
        *,
        on_value: Callable[[], None] | None = None,
        qos: QoSProfile = SENSORS,
    ) -> None:
        self._node, self._read, self._on_value = node, read, on_value
        self.newest: Newest[Value] = Newest(0.0, None)
        self.count = 0
        """Values that came."""
        self.problem: str | None = None
        """What is wrong with the newest message, if anything."""
        self.lost = 0
        """Messages that were sent and never came, as far as is known."""
        self._heard_s, self._ignored = time.monotonic(), 0
        events = SubscriptionEventCallbacks(message_lost=self._lose)
        try:
            self._subscription = node.create_subscription(
                message_type, name, self.hear, qos, event_callbacks=events
            )
        except UnsupportedEventTypeError:  # not every DDS tells what it has lost
            self._subscription = node.create_subscription(message_type, name, self.hear, qos)

    @property
    def name(self) -> str:
        """The full name of the topic."""
        return str(self._subscription.topic_name)

    @property
    def value(self) -> Value | None:
        """The newest value, None before there is one."""
        return self.newest.value

    @property
    def stamp_s(self) -> float:
        """The stamp of the value, 0 before there is one."""
        return self.newest.stamp_s

    @property
    def subscription(self) -> Any:
        """The subscription of rclpy."""
        return self._subscription

    def forget(self) -> None:
        """Drop the value: what comes next is of another episode or another simulator."""
        self.newest, self.problem, self._ignored = Newest(0.0, None), None, 0

    def sources(self) -> list[str]:
        """Return the names of the nodes that publish it.

        One that was killed stays for some seconds, but not beside its successor of the same name.
        """
        publishers = self._node.get_publishers_info_by_topic(self.name)
        return sorted({f"{one.node_namespace.rstrip('/')}/{one.node_name}" for one in publishers})

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
        clashes = [
            reason.strip("; ")
            for publisher in publishers
            for verdict, reason in [
                qos_check_compatible(publisher.qos_profile, self._subscription.qos_profile)
            ]
            if verdict == QoSCompatibility.ERROR
        ]
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
        return type_name(self._subscription.msg_type)

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
        self.newest = Newest(*read)
        self.problem, self._ignored = None, 0
        self.count += 1
        if self._on_value is not None:
            self._on_value()

    def _lose(self, event: Any) -> None:
        self.lost = event.total_count
        self._node.get_logger().warning(
            f"messages of {self.name} get lost. If they are pictures, start who sends them with "
            f"{VARIABLES[0]}={FILE}, and with at least 20 MB free in /dev/shm",
            once=True,
        )
