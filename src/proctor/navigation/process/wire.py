"""The messages between the control loop and the planning process, and their bytes.

A message is its length in four bytes and then msgpack, which can hold data only. A map is too large for
that: its array travels as the descriptor of a file in memory, beside the first byte of its message.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import msgspec
import numpy as np

from proctor.core.errors import UserError
from proctor.navigation.failure import Reason
from proctor.navigation.path import Path
from proctor.navigation.process.requests import PathRequest, TrajectoryRequest
from proctor.navigation.timing.trajectory import Trajectory

LARGEST_MESSAGE = 1 << 24
"""Bytes: a path of some hundred thousand points."""
LENGTH = struct.Struct("<I")


class MapLayout(msgspec.Struct, frozen=True):
    """Which map a request is about."""

    serial: int
    """Differs for every map that is sent; the array comes with the first message that names it."""
    rows: int
    columns: int
    resolution_m: float
    origin_x: float
    origin_y: float


class PathCall(msgspec.Struct, frozen=True, tag=True):
    """Plan a path."""

    id: int
    map: MapLayout
    request: PathRequest


class TrajectoryCall(msgspec.Struct, frozen=True, tag=True):
    """Give a path its times."""

    id: int
    request: TrajectoryRequest


class CancelCall(msgspec.Struct, frozen=True, tag=True):
    """Give up what is being worked on."""

    id: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Everything is compiled."""


class PathAnswer(msgspec.Struct, frozen=True, tag=True):
    """A path was found."""

    id: int
    path: Path


class TrajectoryAnswer(msgspec.Struct, frozen=True, tag=True):
    """A trajectory was made."""

    id: int
    trajectory: Trajectory
    took_s: float
    """Wall time that making it took."""


class FailureAnswer(msgspec.Struct, frozen=True, tag=True):
    """It cannot be done."""

    id: int
    reason: Reason
    message: str


Call: TypeAlias = PathCall | TrajectoryCall | CancelCall
Result: TypeAlias = PathAnswer | TrajectoryAnswer | FailureAnswer
Answer: TypeAlias = Ready | Result


def frame(message: Call | Answer) -> bytes:
    """Return a message as it is sent.

    Raises:
        UserError: It is too long.
    """
    body = msgspec.msgpack.encode(message, enc_hook=_plain)
    if len(body) > LARGEST_MESSAGE:
        raise UserError(f"a path or trajectory of {len(body)} bytes is too long to plan with")
    return LENGTH.pack(len(body)) + body


class Frames:
    """Cuts a stream of bytes into the bodies of messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, data: bytes) -> list[bytes]:
        """Take what came, and return the messages that are complete now.

        Raises:
            ValueError: A message is longer than any that is ever sent.
        """
        self._bytes += data
        bodies = []
        while len(self._bytes) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._bytes)
            if length > LARGEST_MESSAGE:
                raise ValueError(f"a message of {length} bytes, expected at most {LARGEST_MESSAGE}")
            end = LENGTH.size + length
            if len(self._bytes) < end:
                break
            bodies.append(bytes(self._bytes[LENGTH.size : end]))
            del self._bytes[:end]
        return bodies


def _plain(value: Any) -> Any:
    """Return what msgpack has for an array, a trajectory or a numpy number."""
    if isinstance(value, np.ndarray):
        return value.shape, np.ascontiguousarray(value, dtype=float).tobytes()
    if isinstance(value, Trajectory):
        return value.times_s, value.poses, value.velocities
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"a message cannot hold a {type(value).__name__}")


def _restored(kind: Any, value: Any) -> Any:
    """Return the array or trajectory that `_plain` took apart."""
    if kind is Trajectory:
        return Trajectory(*(_restored(np.ndarray, part) for part in value))
    shape, data = value
    # A copy, since compiled functions take arrays that can be written to.
    return np.frombuffer(data).reshape(shape).copy()


decode_call = msgspec.msgpack.Decoder(Call, dec_hook=_restored).decode
decode_answer = msgspec.msgpack.Decoder(Answer, dec_hook=_restored).decode
