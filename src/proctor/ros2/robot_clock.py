"""The clock that governs a robot: simulated time in a simulation, else that of its messages."""

from __future__ import annotations

import time
from collections.abc import Callable

from rosgraph_msgs.msg import Clock

from proctor.ros2.convert import seconds
from proctor.ros2.node import RosNode
from proctor.ros2.qos import CLOCK

JUMP_S = 0.5
"""Messages overtake each other by less than this; a clock that is further back was set back."""


class RobotClock:
    """Hears `/clock`; where nobody publishes it, the stamps of the robot's messages tell the time.

    Args:
        node: Who listens.
        on_time: Is called after each message that tells the time, in the node's thread; also while the time
            stands still.
    """

    def __init__(self, node: RosNode, on_time: Callable[[], None] | None = None) -> None:
        self.now_s = 0.0
        """The newest time heard of."""
        self.jumps = 0
        """How often time went back: the simulator was started or reset anew."""
        self.is_simulated = False
        """Whether `/clock` is heard."""
        self.heard_s = time.monotonic()
        """When the time was heard of last, on this machine's clock."""
        self._node, self.on_time = node, on_time
        node.create_subscription(Clock, "/clock", self._hear, CLOCK)

    def hear_stamp(self, stamp_s: float) -> None:
        """Take in the stamp of a message of the robot."""
        if not self.is_simulated:
            self._take(stamp_s)

    def _hear(self, message: Clock) -> None:
        self.hear(seconds(message.clock))

    def hear(self, stamp_s: float) -> None:
        """Take in the time of the simulation."""
        if not self.is_simulated:
            self.is_simulated, self.now_s = True, stamp_s
        self._take(stamp_s)

    def _take(self, stamp_s: float) -> None:
        if stamp_s < self.now_s - JUMP_S:
            self.jumps += 1
            self.now_s = stamp_s
        self.now_s = max(self.now_s, stamp_s)
        self.heard_s = time.monotonic()
        if self.on_time is not None:
            self.on_time()

    def diagnosis(self) -> str:
        """Return why the time is not heard of."""
        silent_s = time.monotonic() - self.heard_s
        if not self.is_simulated:
            return "neither /clock nor stamped messages of the robot tell the time"
        publishers = self._node.get_publishers_info_by_topic("/clock")
        if not publishers:
            return f"nobody publishes /clock any more (silent for {silent_s:.1f} s): has the simulator ended?"
        who = ", ".join(sorted({f"{p.node_namespace.rstrip('/')}/{p.node_name}" for p in publishers}))
        return f"/clock was silent for {silent_s:.1f} s, though {who} publishes it: does the simulator hang?"
