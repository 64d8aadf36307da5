"""Conversions between ROS 2 messages and our types, pictures included."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion
from numpy.typing import NDArray

from proctor.core.types import Pose2, Scan

Rgb: TypeAlias = NDArray[np.uint8]
Depth: TypeAlias = NDArray[np.uint16]

COLOURS = {"rgb8": (0, 1, 2), "rgba8": (0, 1, 2), "bgr8": (2, 1, 0), "bgra8": (2, 1, 0)}
"""Where red, green and blue are in a pixel."""
DEPTHS = {"16UC1": "u2", "32FC1": "f4"}  # unsigned millimetres, and metres
MAX_MM = 65535


def seconds(stamp: Time) -> float:
    """Return a stamp in seconds."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


def stamp(time_s: float) -> Time:
    """Return seconds as a stamp."""
    nanoseconds = round(time_s * 1e9)
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


def check_rotation(q: Quaternion) -> None:
    """Raise ValueError unless the quaternion has length 1."""
    length = math.hypot(q.x, q.y, q.z, q.w)
    if not abs(length - 1) < 0.01:  # drivers round, or compute in single precision
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
    """Convert a sensor_msgs/LaserScan. A scan that is all infinite is valid: nothing is near."""
    ranges = np.asarray(message.ranges, float)
    if not len(ranges):
        raise ValueError("its scans have no beams")
    if np.isnan(ranges).all():
        raise ValueError(f"all {len(ranges)} ranges of the scan are NaN: the scanner is broken")
    if not (math.isfinite(message.angle_min) and math.isfinite(message.angle_increment)):
        raise ValueError("the angles of the scan are not finite")
    return Scan(ranges, message.angle_min, message.angle_increment, message.range_min, message.range_max)


def rgb_of(message: Any) -> Rgb:
    """Return a colour picture as RGB, shape (H, W, 3); ValueError if its encoding or sizes are wrong.

    The array shares the memory of a message that is rgb8 without padding: each that a subscription hands out
    has its own.
    """
    order = COLOURS.get(message.encoding)
    if order is None:
        raise ValueError(_unknown(message.encoding, "colour", COLOURS))
    pixels = _rows(message, len(message.encoding) - 1, np.dtype(np.uint8))
    pixels = pixels.reshape(message.height, message.width, -1)
    if message.encoding == "rgb8":
        return np.ascontiguousarray(pixels)
    rgb = np.empty((message.height, message.width, 3), np.uint8)
    for channel, source in enumerate(order):  # one by one, since numpy is slow at loops over three items
        rgb[..., channel] = pixels[..., source]
    return rgb


def depth_of(message: Any, far_m: float | None = None) -> Depth:
    """Return a depth picture (16UC1 mm or 32FC1 m) in millimetres, shape (H, W); 0 is no return.

    No return is also what is not a number, infinite, negative, beyond what 16 bits hold (65.535 m), or at the
    camera's far clip distance `far_m` or beyond, which simulators send where there is nothing.
    """
    kind = DEPTHS.get(message.encoding)
    if kind is None:
        raise ValueError(_unknown(message.encoding, "depth", DEPTHS))
    numbers = np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
    depth = _rows(message, 1, numbers)
    # The background, up to rounding.
    limit_mm = MAX_MM + 1.0 if far_m is None else min(MAX_MM + 1.0, 1000 * far_m * (1 - 1e-4))
    if message.encoding == "32FC1":
        with np.errstate(over="ignore", invalid="ignore"):
            depth_mm = np.rint(depth * np.float32(1000))
            depth_mm *= depth_mm < limit_mm  # infinity becomes NaN
            return np.fmax(depth_mm, 0, out=depth_mm).astype(np.uint16)  # and NaN 0
    native = np.require(depth, np.uint16, ["C", "A"])
    return native if limit_mm > MAX_MM else np.where(native < limit_mm, native, np.uint16(0))


def _rows(message: Any, channels: int, numbers: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers of a picture, row by row, without the padding."""
    height, width, step = message.height, message.width, message.step
    row = width * channels * numbers.itemsize
    if height == 0 or width == 0:
        raise ValueError(f"a picture of {width}x{height}, expected at least one pixel")
    if step < row:
        raise ValueError(
            f"step is {step} bytes, but a row of {width} pixels of {message.encoding} needs {row}: expected "
            f"step >= {row}"
        )
    if len(message.data) != height * step:
        raise ValueError(
            f"{len(message.data)} bytes of data, expected {height * step}: {height} rows of {step} bytes"
        )
    data = np.frombuffer(message.data, np.uint8).reshape(height, step)
    return data[:, :row].view(numbers)


def _unknown(encoding: str, what: str, known: dict[str, Any]) -> str:
    return f"the encoding is '{encoding}', expected that of a {what}: {', '.join(known)}"


def resource_of(message: Any, field_of_version_2: str) -> Any:
    """Return what holds `uri`: a field of the message in version 2 of the interfaces, itself in version 1."""
    return getattr(message, field_of_version_2, message)
