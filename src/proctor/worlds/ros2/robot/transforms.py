"""Where frames are in each other, as `/tf` and `/tf_static` tell."""

from __future__ import annotations

import math
from typing import Any

from tf2_msgs.msg import TFMessage

from proctor.core.geometry import pose_out_of
from proctor.core.types import Pose2
from proctor.worlds.ros2.node.convert import yaw_of
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.qos import SENSORS, sensor_qos

ALL_LATCHED = sensor_qos("RELIABLE", "TRANSIENT_LOCAL", 100)
"""Each robot has its own publisher of static transforms, and all of them send at once when we subscribe."""
MOST_FRAMES = 1000
MAP_FRAME = "map"


class Transforms:
    """Keeps the newest transform of each frame; older ones are not remembered."""

    def __init__(self, node: RosNode) -> None:
        self._parents: dict[str, tuple[str, Any]] = {}
        node.create_subscription(TFMessage, "/tf", self._hear, SENSORS)
        node.create_subscription(TFMessage, "/tf_static", self._hear, ALL_LATCHED)

    def pose_of(self, frame: str, parent: str) -> Pose2 | None:
        """Return where a frame is in another one, seen from above, or None if nobody tells."""
        pose, name, parent = Pose2(0.0, 0.0, 0.0), _plain(frame), _plain(parent)
        for _ in range(32):  # a longer chain is a ring
            if name == parent:
                return pose
            if name not in self._parents:
                return None
            name, transform = self._parents[name]
            step = Pose2(transform.translation.x, transform.translation.y, yaw_of(transform.rotation))
            pose = pose_out_of(step, pose)
        return None

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
