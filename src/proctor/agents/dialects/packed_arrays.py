"""Numpy arrays in msgpack, as the policy servers of others write them.

| who | an array is a map with |
|---|---|
| openpi, RoboArena | `__ndarray__`, `data`, `dtype`, `shape`, whose keys are msgpack *bin* |
| vla-eval | the same, but the keys are *str*: neither takes the other's for an array, and neither complains |
| VLN-CE-Docker, XPolicyLab, GR00T | `nd`, `type`, `kind`, `shape`, `data`: the package msgpack_numpy |
| GR00T, older | `__ndarray_class__` and `as_npy`, the bytes of a .npy file |

So each server is written its own. The first two are read as one form, the last two as another. An array of
Python objects, which msgpack_numpy and .npy files would unpickle, is refused in all of them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from proctor.agents.arrays import read_array
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.types import Array

T = TypeVar("T")
MAX_BYTES = 256 << 10
"""Of the numbers in one reply: a chunk of a hundred actions takes less than a tenth of it."""
PICKLED = "found an array of Python objects, which only unpickling could read; send plain numbers"


def array_encoder(write_array: Callable[[NDArray[Any]], dict[Any, Any]]) -> msgspec.msgpack.Encoder:
    """Return an encoder that writes arrays by one of the functions below, and numpy's numbers as numbers."""

    def write(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
            raise NotImplementedError(f"cannot be sent: {getattr(value, 'dtype', type(value).__name__)}")
        return write_array(value)

    return msgspec.msgpack.Encoder(enc_hook=write)


def vla_eval_array(array: NDArray[Any]) -> dict[Any, Any]:
    """Write an array with keys of text."""
    return {"__ndarray__": True, "data": array.tobytes(), "dtype": array.dtype.str, "shape": array.shape}


def openpi_array(array: NDArray[Any]) -> dict[Any, Any]:
    """Write an array with keys of bytes."""
    return {key.encode(): part for key, part in vla_eval_array(array).items()}


def msgpack_numpy_array(array: NDArray[Any]) -> dict[Any, Any]:
    """Write an array as the package msgpack_numpy does."""
    described = {b"nd": True, b"type": array.dtype.str, b"kind": b"", b"shape": array.shape}
    return {**described, b"data": array.tobytes()}


def gr00t_array(array: NDArray[Any]) -> dict[Any, Any]:
    """Write an array as a .npy file, which GR00T's servers of all versions read."""
    file = io.BytesIO()
    npy.write_array(file, array, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


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
    with _as_bad_frames("expected numbers"):
        value = msgspec.msgpack.decode(packed)
        return _floats(np.asarray(_unpacked(value) if isinstance(value, dict) else value), value)


def read_value(packed: bytes | msgspec.Raw) -> Any:
    """Return lists and maps with the arrays of msgpack_numpy and .npy files in them, or raise BadFrame."""
    if len(bytes(packed)) > MAX_BYTES:
        raise BadFrame(WireFault.TOO_BIG, f"a reply of more than {MAX_BYTES} bytes")
    with _as_bad_frames("not the msgpack of this server"):
        return _with_arrays(msgspec.msgpack.decode(packed))


def as_numbers(value: Any) -> Array:
    """Return a number, a list or an array of `read_value` as an array of floats, or raise BadFrame."""
    with _as_bad_frames("expected numbers"):
        return _floats(np.asarray(value), value)


@contextmanager
def _as_bad_frames(problem: str) -> Iterator[None]:
    try:
        yield
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise BadFrame(WireFault.MALFORMED, f"{problem}: {error}") from None
    except RecursionError:
        raise BadFrame(WireFault.TOO_DEEP, "lists or maps nested without end") from None


def _floats(numbers: NDArray[Any], value: Any) -> Array:
    if numbers.dtype.kind not in "biuf":
        raise BadFrame(WireFault.MALFORMED, f"expected numbers, found {type(value).__name__}")
    return numbers.astype(np.float64)


def _unpacked(packed: dict[Any, Any]) -> Any:
    parts = _with_text_keys(packed)
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


def _with_text_keys(packed: dict[Any, Any]) -> dict[Any, Any]:
    return {key.decode() if isinstance(key, bytes) else key: part for key, part in packed.items()}


def _with_arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_arrays(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = _with_text_keys(value)
    if "nd" in parts:
        return _read_msgpack_numpy(parts)
    if "__ndarray_class__" in parts:
        return _read_npy(parts.get("as_npy"))
    return {key: _with_arrays(part) for key, part in parts.items()}


def _read_msgpack_numpy(parts: dict[Any, Any]) -> Any:
    name, shape, data = parts.get("type"), parts.get("shape", []), parts.get("data")
    if parts.get("kind") in (b"O", "O"):
        raise ValueError(PICKLED)
    name = name.decode() if isinstance(name, bytes) else name
    if not (isinstance(name, str) and isinstance(shape, list) and isinstance(data, bytes)):
        raise ValueError("an array needs the text 'type', the list 'shape' and the bytes 'data'")
    return read_array(name, shape, data)


def _read_npy(data: Any) -> Any:
    """Read a .npy file. numpy itself would make room for whatever size the file's header claims."""
    if not isinstance(data, bytes):
        raise ValueError("an array needs the bytes 'as_npy'")
    file = io.BytesIO(data)
    try:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, is_column_major, kind = read_header(file)
    except Exception as error:  # noqa: BLE001  (the header is a Python literal: it fails in many ways)
        raise ValueError(f"not a .npy file: {error!s:.100}") from None
    if kind.hasobject:
        raise ValueError(PICKLED)
    array = read_array(kind.str, shape[::-1] if is_column_major else shape, data[file.tell() :])
    return array.T if is_column_major else array
