"""sensor_msgs/Image and numpy arrays: colour as RGB, depth in millimetres."""

from __future__ import annotations

import array
import math
from typing import Any, TypeAlias

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import Image
from std_msgs.msg import Header

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


def image_message(picture: Rgb | Depth, encoding: str, stamp: Time, frame_id: str) -> Any:
    """Return a picture as a message.

    Args:
        picture: RGB, uint8 (H, W, 3), or depth in millimetres, uint16 (H, W).
        encoding: One of `COLOURS` or of `DEPTHS`. In 32FC1, no return is infinity.
        stamp: When it was taken.
        frame_id: The camera's optical frame.

    Raises:
        ValueError: The encoding is unknown, or not for such an array.
    """
    if encoding in COLOURS:
        _expect(picture, np.uint8, 3, encoding)
        pixels: NDArray[Any] = _colours(picture, encoding)
    elif encoding in DEPTHS:
        _expect(picture, np.uint16, 2, encoding)
        pixels = picture.astype("<u2", copy=False)
        if encoding == "32FC1":
            pixels = np.where(picture > 0, picture.astype("<f4") / np.float32(1000), np.float32(math.inf))
    else:
        raise ValueError(_unknown(encoding, "picture", COLOURS | DEPTHS))
    height, width = picture.shape[:2]
    message = Image(header=Header(stamp=stamp, frame_id=frame_id), encoding=encoding)
    message.height, message.width = height, width
    message.step = pixels.nbytes // height
    data = array.array("B")  # of any other kind, each number would be checked
    data.frombytes(np.ascontiguousarray(pixels).view(np.uint8).data)
    message.data = data
    return message


def _colours(rgb: NDArray[Any], encoding: str) -> Rgb:
    if encoding == "rgb8":
        return rgb
    pixels = np.empty((*rgb.shape[:2], len(encoding) - 1), np.uint8)
    for channel, target in enumerate(COLOURS[encoding]):
        pixels[..., target] = rgb[..., channel]
    pixels[..., 3:] = 255
    return pixels


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


def _expect(picture: NDArray[Any], kind: type, dimensions: int, encoding: str) -> None:
    fits = picture.dtype == kind and picture.ndim == dimensions and picture.size > 0
    if not fits or (dimensions == 3 and picture.shape[2] != 3):
        shape = "(H, W, 3)" if dimensions == 3 else "(H, W)"
        raise ValueError(
            f"{encoding} is made of {np.dtype(kind)} {shape}, found {picture.dtype} {picture.shape}"
        )


def _unknown(encoding: str, what: str, known: dict[str, Any]) -> str:
    return f"the encoding is '{encoding}', expected that of a {what}: {', '.join(known)}"
