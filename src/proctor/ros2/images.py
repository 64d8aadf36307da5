"""Reads sensor_msgs/Image into numpy arrays: colour as RGB, depth in millimetres."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rgb: TypeAlias = NDArray[np.uint8]
Depth: TypeAlias = NDArray[np.uint16]

COLOURS = {"rgb8": (0, 1, 2), "rgba8": (0, 1, 2), "bgr8": (2, 1, 0), "bgra8": (2, 1, 0)}
"""Where red, green and blue are in a pixel."""
DEPTHS = {"16UC1": "u2", "32FC1": "f4"}
"""Unsigned millimetres, and metres."""
MAX_MM = 65535
NEAR_FAR_CLIP = 1e-4
"""What is within this share of the far clip distance is background."""


def rgb_of(message: Any) -> Rgb:
    """Return a colour picture as RGB, shape (H, W, 3).

    The array shares the memory of a message that is rgb8 without padding: each that a subscription hands
    out has its own.

    Raises:
        ValueError: The picture is of another kind, or its sizes do not fit each other.
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
    """Return a depth picture in millimetres, shape (H, W); 0 is no return.

    No return is also what is not a number, infinite, negative, beyond what 16 bits hold (65.535 m), or at
    the far clip distance or beyond.

    Args:
        message: The picture: 16UC1 in millimetres or 32FC1 in metres.
        far_m: The camera's far clip distance, which simulators send where there is nothing.

    Raises:
        ValueError: The picture is of another kind, or its sizes do not fit each other.
    """
    kind = DEPTHS.get(message.encoding)
    if kind is None:
        raise ValueError(_unknown(message.encoding, "depth", DEPTHS))
    numbers = np.dtype(kind).newbyteorder(">" if message.is_bigendian else "<")
    depth = _rows(message, 1, numbers)
    limit_mm = MAX_MM + 1.0 if far_m is None else min(MAX_MM + 1.0, 1000 * far_m * (1 - NEAR_FAR_CLIP))
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
