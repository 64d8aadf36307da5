"""Arrays on the wire: raw numbers with a dtype and a shape, picture files, and laser scans.

A dtype's name from the wire is looked up in a table: numpy itself would also make records, objects and dates
of it. The header of a picture is compared with what was announced before anything is unpacked.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from proctor.agents.messages import BadFrame, Format, WireFault
from proctor.core.types import Observation, Scan

MAX_DIMENSIONS = 8
MAX_PIXELS = 1 << 24
"""Of a picture that is decoded: 4096 x 4096. A file of a few bytes can announce any size."""
JPEG_QUALITY = 90
UNREADABLE = (OSError, SyntaxError, TypeError, LookupError, EOFError, struct.error, zlib.error, Warning)
"""What Pillow raises on damaged files; its warnings only where they are made errors."""
PILLOW_MODES = {"uint8": "RGB", "uint16": "I;16"}


def _known_dtypes() -> dict[str, np.dtype[Any]]:
    """Return dtypes by all names that they may have: `<u2`, `|u1`, `>f4`, `u2`, `uint16`."""
    known: dict[str, np.dtype[Any]] = {}
    for code in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
        for order in "<>|=":
            known[f"{order}{code}"] = np.dtype(f"{order}{code}")
        known[code] = known[np.dtype(code).name] = np.dtype(f"<{code}")
    return known


DTYPES = _known_dtypes()


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of a name from the wire, or raise ValueError."""
    if name not in DTYPES:
        raise ValueError(f"expected a dtype of numbers such as '<f4', found '{name:.40}'")
    return DTYPES[name]


def sendable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array little-endian and row by row, as it is sent. Copies only if it must.

    Raises a TypeError if it does not hold plain numbers.
    """
    if array.dtype.str not in DTYPES:
        raise TypeError(f"an array of {array.dtype} cannot be sent")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def read_array(dtype: str, shape: Sequence[int], data: bytes | memoryview) -> NDArray[Any]:
    """Return a new, writable array in the byte order of this machine; a ValueError if they do not fit."""
    kind = dtype_of(dtype)
    if len(shape) > MAX_DIMENSIONS or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"expected a shape of at most {MAX_DIMENSIONS} sizes, each an integer from 0")
    found_bytes, due_bytes = memoryview(data).nbytes, math.prod(shape) * kind.itemsize
    if found_bytes != due_bytes:
        raise ValueError(f"shape {list(shape)} of {kind} needs {due_bytes} bytes, found {found_bytes}")
    return np.frombuffer(data, kind).astype(kind.newbyteorder("=")).reshape(shape)


def is_picture(dtype: str, shape: tuple[int, ...]) -> bool:
    """Return whether such arrays can be written as a picture: uint8 (H, W, 3) or uint16 (H, W)."""
    if 0 in shape:
        return False
    return (dtype == "uint8" and len(shape) == 3 and shape[2] == 3) or (dtype == "uint16" and len(shape) == 2)


def is_colour(value: Any) -> TypeGuard[NDArray[np.uint8]]:
    """Return whether this is a colour picture."""
    return isinstance(value, np.ndarray) and value.ndim == 3 and is_picture(value.dtype.name, value.shape)


def colour_pictures(observation: Mapping[str, Any]) -> dict[str, NDArray[np.uint8]]:
    """Return the entries of an observation that are colour pictures."""
    return {name: value for name, value in observation.items() if is_colour(value)}


def encode_picture(pixels: NDArray[Any], encoding: str) -> bytes:
    """Return colour as a PNG or JPEG file, depth as a 16-bit PNG file."""
    if encoding == "png":
        return _png(pixels)
    file = io.BytesIO()
    # The colours keep their full resolution: edges of small objects stay where they are.
    Image.fromarray(pixels).save(file, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return file.getvalue()


def decode_picture(data: bytes, format_: Format) -> NDArray[Any]:
    """Return the pixels of a picture file in a writable array; a ValueError if it is not as announced."""
    if not is_picture(format_.dtype, format_.shape) or math.prod(format_.shape[:2]) > MAX_PIXELS:
        raise ValueError(f"no picture can be of {format_.dtype} {list(format_.shape)}")
    # Not by `Image.open`, which warns of big pictures before one can ask how big they are.
    reader = JpegImageFile if format_.encoding == "jpeg" else PngImageFile
    try:
        with reader(io.BytesIO(data)) as image:
            height, width = format_.shape[:2]
            due, found = (width, height, PILLOW_MODES[format_.dtype]), (*image.size, image.mode)
            if due != found:
                raise ValueError("expected a picture of {}x{} {}, found {}x{} {}".format(*due, *found))
            return np.array(image)
    except UNREADABLE as error:
        raise ValueError(f"a {format_.encoding} file that cannot be read: {error}") from None


def _png(pixels: NDArray[Any]) -> bytes:
    """Write a PNG whose rows are unfiltered.

    On rendered pictures this takes half the time of Pillow's writer, which tries five filters on each
    row, and the files are as small.
    """
    height, width = pixels.shape[:2]
    rows = np.empty((height, 1 + pixels[0].size * pixels.itemsize), np.uint8)
    rows[:, 0] = 0  # the filter of each row: none
    big_endian = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">"))
    rows[:, 1:] = big_endian.view(np.uint8).reshape(height, -1)
    colour_type = 2 if pixels.ndim == 3 else 0
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, colour_type, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.data, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def named_scans(observation: Observation) -> Observation:
    """Return an observation in which scans are maps. A named tuple would be sent as a list."""
    return {
        name: value._asdict() if isinstance(value, Scan) else value for name, value in observation.items()
    }


def read_scan(fields: Any) -> Scan:
    """Return the scan that was sent, or raise BadFrame. From JSON, beams without a return are NaN."""
    try:
        ranges = np.asarray(fields["ranges"], np.float64)
        return Scan(ranges, *(float(fields[name]) for name in Scan._fields[1:]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadFrame(WireFault.MALFORMED, f"observation.scan: {type(error).__name__} {error}") from None
