"""The clock that governs a robot: simulated time in a simulation, else that of its messages."""

from __future__ import annotations

from collections.abc import Callable

from rosgraph_msgs.msg import Clock

from proctor.worlds.ros2.node.convert import seconds
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.qos import CLOCK
from proctor.worlds.ros2.node.topic import Topic

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
