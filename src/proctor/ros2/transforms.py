"""Where frames are on the floor, as `/tf` and `/tf_static` tell."""

from __future__ import annotations

import math
from typing import Any

from rclpy.qos import QoSProfile
from tf2_msgs.msg import TFMessage

from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2
from proctor.ros2.convert import yaw_of
from proctor.ros2.node import RosNode
from proctor.ros2.qos import LATCHED, SENSORS

MANY = 100
ALL_LATCHED = QoSProfile(
    reliability=LATCHED.reliability, durability=LATCHED.durability, history=LATCHED.history, depth=MANY
)
"""Each robot has its own publisher of static transforms, and all of them speak at once when we come."""
MOST_FRAMES = 1000
DEEPEST = 32
"""Frames between one that is asked for and one that it is asked in; a longer chain is a ring."""


class Transforms:
    """Keeps the newest transform of each frame; what was before is not remembered.

    Args:
        node: Who listens.
    """

    def __init__(self, node: RosNode) -> None:
        self._parents: dict[str, tuple[str, Any]] = {}
        node.create_subscription(TFMessage, "/tf", self._hear, SENSORS)
        node.create_subscription(TFMessage, "/tf_static", self._hear, ALL_LATCHED)

    def pose_of(self, frame: str, parent: str) -> Pose2 | None:
        """Return where a frame is in another one, seen from above, or None if nobody tells."""
        pose, name, parent = Pose2(0.0, 0.0, 0.0), _plain(frame), _plain(parent)
        for _ in range(DEEPEST):
            if name == parent:
                return pose
            if name not in self._parents:
                return None
            name, transform = self._parents[name]
            step = Pose2(transform.translation.x, transform.translation.y, yaw_of(transform.rotation))
            pose = pose_out_of(step, pose)
        return None

    def forget(self, frame: str) -> None:
        """Forget where a frame is."""
        self._parents.pop(_plain(frame), None)

    def _hear(self, message: TFMessage) -> None:
        for told in message.transforms:
            place, turn = told.transform.translation, told.transform.rotation
            child = _plain(told.child_frame_id)
            finite = math.isfinite(place.x + place.y + turn.x + turn.y + turn.z + turn.w)
            if finite and (child in self._parents or len(self._parents) < MOST_FRAMES):
                self._parents[child] = _plain(told.header.frame_id), told.transform


def _plain(frame: str) -> str:
    """Return a frame's name without the slash that older robots begin it with."""
    return frame.removeprefix("/")
