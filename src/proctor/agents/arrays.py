"""Arrays of numbers as raw bytes with a dtype and a shape, the way numpy-minded wire formats carry them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_DIMENSIONS = 8


def _known_dtypes() -> dict[str, np.dtype[Any]]:
    """Return what a dtype may be called: `<u2`, `|u1`, `>f4`, `u2`, `uint16`."""
    known: dict[str, np.dtype[Any]] = {}
    for code in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
        for order in "<>|=":
            known[f"{order}{code}"] = np.dtype(f"{order}{code}")
        known[code] = known[np.dtype(code).name] = np.dtype(f"<{code}")
    return known


DTYPES = _known_dtypes()
"""All that can be sent. A name from the wire is looked up here; numpy itself would also make records,
objects and dates of it."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype of a name from the wire.

    Raises:
        ValueError: It is no dtype of plain numbers.
    """
    if name not in DTYPES:
        raise ValueError(f"expected a dtype of numbers such as '<f4', found '{name:.40}'")
    return DTYPES[name]


def sendable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is sent: little-endian, rows one after another. Copies only if it must.

    Raises:
        TypeError: It does not hold plain numbers.
    """
    if array.dtype.str not in DTYPES:
        raise TypeError(f"an array of {array.dtype} cannot be sent")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def read_array(dtype: str, shape: Sequence[int], data: bytes | memoryview) -> NDArray[Any]:
    """Return a new array, which may be written to, in the byte order of this machine.

    Raises:
        ValueError: The bytes do not make up such an array.
    """
    kind = dtype_of(dtype)
    if len(shape) > MAX_DIMENSIONS or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"expected a shape of at most {MAX_DIMENSIONS} sizes, each an integer from 0")
    found_bytes, due_bytes = memoryview(data).nbytes, math.prod(shape) * kind.itemsize
    if found_bytes != due_bytes:
        raise ValueError(f"shape {list(shape)} of {kind} needs {due_bytes} bytes, found {found_bytes}")
    flat = np.frombuffer(data, kind).astype(kind.newbyteorder("="))
    return flat.reshape(shape)
