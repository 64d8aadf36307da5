"""Numpy arrays in msgpack, as openpi and vla-eval write them.

Both write a map with a mark in it, `{"__ndarray__": true, "data": …, "dtype": "<f4", "shape": …}`. openpi's
keys are msgpack *bin*, vla-eval's are *str*: neither takes the other's for an array, and neither complains.
So each is written its own, and both are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import numpy as np

from proctor.agents.arrays import read_array
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.types import Array

T = TypeVar("T")
MAX_BYTES = 256 << 10
"""Of the numbers in one reply: a chunk of a hundred actions takes less than a tenth of it."""


def openpi_encoder() -> msgspec.msgpack.Encoder:
    """Return an encoder that writes arrays with keys of bytes."""
    return msgspec.msgpack.Encoder(enc_hook=lambda value: _write(value, str.encode))


def vla_eval_encoder() -> msgspec.msgpack.Encoder:
    """Return an encoder that writes arrays with keys of text."""
    return msgspec.msgpack.Encoder(enc_hook=lambda value: _write(value, str))


def unpack(frame: bytes, type_: type[T], expected: str) -> T:
    """Decode a reply, or raise BadFrame."""
    try:
        return msgspec.msgpack.decode(frame, type=type_)
    except msgspec.ValidationError as error:
        raise BadFrame(WireFault.WRONG_MESSAGE, f"expected {expected}: {error}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadFrame(WireFault.MALFORMED, f"not msgpack: {error}") from None
    except RecursionError:
        raise BadFrame(WireFault.TOO_DEEP, "maps nested without end") from None


def read_numbers(packed: msgspec.Raw) -> Array:
    """Return an array, a list of numbers, or a number from the wire as an array, or raise BadFrame."""
    if len(bytes(packed)) > MAX_BYTES:
        raise BadFrame(WireFault.TOO_BIG, f"numbers of more than {MAX_BYTES} bytes")
    try:
        value = msgspec.msgpack.decode(packed)
        numbers = np.asarray(_unpacked(value) if isinstance(value, dict) else value)
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise BadFrame(WireFault.MALFORMED, f"expected numbers: {error}") from None
    except RecursionError:
        raise BadFrame(WireFault.TOO_DEEP, "lists nested without end") from None
    if numbers.dtype.kind not in "biuf":
        raise BadFrame(WireFault.MALFORMED, f"expected numbers, found {type(value).__name__}")
    return numbers.astype(np.float64)


def _write(value: Any, key: Callable[[str], str | bytes]) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"cannot be sent: {type(value).__name__}")
    parts = {"__ndarray__": True, "data": value.tobytes(), "dtype": value.dtype.str, "shape": value.shape}
    return {key(name): part for name, part in parts.items()}


def _unpacked(packed: dict[Any, Any]) -> Any:
    parts = {key.decode() if isinstance(key, bytes) else key: part for key, part in packed.items()}
    if "__npgeneric__" in parts:
        return parts.get("data")
    if "nd" in parts:
        raise ValueError("found arrays as the package msgpack_numpy writes them, which openpi does not use")
    if "__ndarray__" not in parts:
        raise ValueError(f"found a map with the keys {sorted(map(str, parts))[:8]!s:.100}")
    name, shape, data = parts.get("dtype"), parts.get("shape"), parts.get("data")
    if not (isinstance(name, str) and isinstance(shape, list) and isinstance(data, bytes)):
        raise ValueError("an array needs the text 'dtype', the list 'shape' and the bytes 'data'")
    return read_array(name, shape, data)
