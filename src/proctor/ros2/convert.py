"""ROS 2's messages and our types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion

from proctor.core.types import Pose2, Scan

UNIT = 0.01
"""Quaternions of drivers that reckon in single precision, or round, are this near to length 1."""


def seconds(stamp: Time) -> float:
    """Return a stamp in seconds."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


def stamp(time_s: float) -> Time:
    """Return seconds as a stamp."""
    nanoseconds = round(time_s * 1e9)
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


def check_rotation(q: Quaternion) -> None:
    """Check an orientation that somebody sent.

    Raises:
        ValueError: It is none: its length is not 1.
    """
    length = math.hypot(q.x, q.y, q.z, q.w)
    if not abs(length - 1) < UNIT:
        raise ValueError(f"its orientation is a quaternion of length {length:g}, expected 1")


def yaw_of(q: Quaternion) -> float:
    """Return the heading of an orientation."""
    return math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))


def quaternion(yaw: float) -> Quaternion:
    """Return a heading as an orientation."""
    return Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2))


def pose2(pose: Any) -> Pose2:
    """Return a geometry_msgs/Pose as a pose on the floor."""
    return Pose2(pose.position.x, pose.position.y, yaw_of(pose.orientation))


def scan_of(message: Any) -> Scan:
    """Return a sensor_msgs/LaserScan as a scan.

    Raises:
        ValueError: It tells nothing. One that is all infinite does: there is nothing near.
    """
    ranges = np.asarray(message.ranges, float)
    if not len(ranges):
        raise ValueError("its scans have no beams")
    if np.isnan(ranges).all():
        raise ValueError(f"all {len(ranges)} ranges of the scan are NaN: the scanner is broken")
    if not (math.isfinite(message.angle_min) and math.isfinite(message.angle_increment)):
        raise ValueError("the angles of the scan are not finite")
    return Scan(ranges, message.angle_min, message.angle_increment, message.range_min, message.range_max)
