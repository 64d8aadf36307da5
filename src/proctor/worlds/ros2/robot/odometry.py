"""Where a robot is and how it moves, by its odometry, and where frames are in each other, by `/tf`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from typing import Any, NamedTuple

import numpy as np
from tf2_msgs.msg import TFMessage

from proctor.core.geometry import pose_out_of, wrap_angle
from proctor.core.types import Array, Pose2
from proctor.worlds.ros2.node.convert import check_rotation, pose2, seconds, yaw_of
from proctor.worlds.ros2.node.node import SENSORS, RosNode, sensor_qos
from proctor.worlds.ros2.node.topic import JUMP_S

SAME_S = 1e-3
GAP_S = 0.15
"""Between two messages that are further apart nobody knows where the robot was: it may have turned."""
STALE_S = 0.5
"""What is older than this, in the robot's time, no longer tells where it is: it is not driven on by that."""
EXTRAPOLATED_S = 0.1  # a robot is taken to go on as it did for this long after the newest message


class Moved(NamedTuple):
    """One message of the odometry."""

    stamp_s: float
    pose_odom: Pose2
    velocity: Array  # [vx, vy, omega] in the robot's frame

    def after(self, passed_s: float) -> Pose2:
        """Return where the robot is after a while if it goes on like this."""
        (vx, vy, omega), pose = self.velocity.tolist(), self.pose_odom
        middle = pose.yaw + omega * passed_s / 2
        cos, sin = math.cos(middle), math.sin(middle)
        x, y = pose.x + (cos * vx - sin * vy) * passed_s, pose.y + (sin * vx + cos * vy) * passed_s
        return Pose2(x, y, pose.yaw + omega * passed_s)


def read_odometry(message: Any, heard_s: float) -> tuple[float, Moved] | None:
    """Read a nav_msgs/Odometry; None if it is one of the empty ones that simulators send when they start.

    `heard_s`, the robot's time now, stands for the stamp of a message that has none (0). ValueError: a number
    is not finite, or the orientation is not a rotation.
    """
    if is_empty(message):
        return None
    stamp_s = seconds(message.header.stamp) or heard_s
    pose, twist = pose2(message.pose.pose), message.twist.twist
    velocity = np.array([twist.linear.x, twist.linear.y, twist.angular.z])
    if not (math.isfinite(pose.x + pose.y + pose.yaw) and np.isfinite(velocity).all()):
        raise ValueError(f"expected finite numbers, found the pose {pose} and the velocity {velocity}")
    check_rotation(message.pose.pose.orientation)
    return stamp_s, Moved(stamp_s, pose, velocity)


def is_empty(message: Any) -> bool:
    """Tell whether odometry has neither a time nor a pose: O3DE sends such messages when it starts."""
    at, turned = message.pose.pose.position, message.pose.pose.orientation
    numbers = (at.x, at.y, at.z, turned.x, turned.y, turned.z)
    is_origin = all(abs(number) < 1e-6 for number in numbers) and abs(turned.w - 1.0) < 1e-3
    return is_origin and message.header.stamp.sec == 0


class Track:
    """Where a robot was in the last seconds, in its odometry frame."""

    def __init__(self) -> None:
        self._moves: deque[Moved] = deque(maxlen=128)  # two seconds at 60 Hz

    def add(self, moved: Moved) -> None:
        """Take in a message; one that was overtaken by newer ones is left out."""
        if self._moves:
            late_s = self._moves[-1].stamp_s - moved.stamp_s
            if late_s > JUMP_S:
                self._moves.clear()  # time began anew
            elif late_s > 0:
                return
            elif late_s == 0:
                self._moves.pop()
        self._moves.append(moved)

    def covers(self, time_s: float) -> bool:
        """Tell whether there were messages shortly before and after a time, or at it."""
        index = bisect_left(self._moves, time_s - SAME_S, key=lambda moved: moved.stamp_s)
        if index == len(self._moves):
            return False
        after_s = self._moves[index].stamp_s
        return abs(after_s - time_s) <= SAME_S or (
            index > 0 and after_s - self._moves[index - 1].stamp_s <= GAP_S
        )

    def newest_speeds(self) -> tuple[float, float]:
        """Return m/s and rad/s of the last moments, by poses alone: wheels that slip do not count."""
        if len(self._moves) < 2:
            return 0.0, 0.0
        newest = self._moves[-1]
        index = bisect_left(self._moves, newest.stamp_s - 0.1, key=lambda moved: moved.stamp_s)
        before = self._moves[min(index, len(self._moves) - 2)]
        passed_s, a, b = newest.stamp_s - before.stamp_s, before.pose_odom, newest.pose_odom
        return math.dist((a.x, a.y), (b.x, b.y)) / passed_s, abs(wrap_angle(b.yaw - a.yaw)) / passed_s

    def at(self, time_s: float) -> Pose2 | None:
        """Return where the robot was at a time, or is by now as far as can be told; None if not known."""
        if not self._moves:
            return None
        newest = self._moves[-1]
        if time_s >= newest.stamp_s:
            return newest.after(min(time_s - newest.stamp_s, EXTRAPOLATED_S))
        index = bisect_left(self._moves, time_s, key=lambda moved: moved.stamp_s)
        if index == 0:
            return self._moves[0].pose_odom
        before, after = self._moves[index - 1], self._moves[index]
        share = (time_s - before.stamp_s) / (after.stamp_s - before.stamp_s)
        a, b = before.pose_odom, after.pose_odom
        yaw = a.yaw + share * wrap_angle(b.yaw - a.yaw)
        return Pose2(a.x + share * (b.x - a.x), a.y + share * (b.y - a.y), yaw)


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
