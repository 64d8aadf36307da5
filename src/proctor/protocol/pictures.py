"""Pictures as files: colour in PNG or JPEG, depth in 16-bit PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from proctor.protocol.messages import Format

JPEG_QUALITY = 90


def encode_picture(pixels: NDArray[Any], encoding: str) -> bytes:
    """Return uint8 (H, W, 3) or uint16 (H, W) pixels as a PNG file, or colour as a JPEG one."""
    file = io.BytesIO()
    if encoding == "jpeg":
        Image.fromarray(pixels).save(file, "JPEG", quality=JPEG_QUALITY)
    else:
        Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def decode_picture(data: bytes, format_: Format) -> NDArray[Any]:
    """Return the pixels of a picture file.

    Raises:
        ValueError: It is no picture, or not of the size and kind that were announced.
    """
    with Image.open(io.BytesIO(data), formats=["PNG", "JPEG"]) as image:
        pixels = np.array(image, dtype=format_.dtype)  # a copy, so that it may be written to
    if pixels.shape != tuple(format_.shape):
        raise ValueError(f"expected pixels of shape {format_.shape}, found {pixels.shape}")
    return pixels
