"""Frames: a length of four bytes, most significant first, and a JSON object in UTF-8."""

from __future__ import annotations

import json
import struct
from typing import Any, NoReturn

from o3de_sim.constants import MAX_FRAME_BYTES

Message = dict[str, Any]
LENGTH = struct.Struct(">I")


class WireError(ValueError):
    """Bytes that are no frame. What comes after them cannot be read either."""


def encode(message: Message) -> bytes:
    """Return the bytes of a message; WireError if it is too long, or holds what is not JSON, such as NaN."""
    try:
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"cannot be written as JSON: {error}") from None
    if len(body) > MAX_FRAME_BYTES:
        raise WireError(f"{len(body)} bytes are more than the {MAX_FRAME_BYTES} of a frame")
    return LENGTH.pack(len(body)) + body


class FrameReader:
    """Takes bytes as they come, in pieces of any size, and gives the messages that are complete."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def is_amid_frame(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._bytes)

    def feed(self, data: bytes) -> list[Message]:
        """Add some bytes and return the messages that are complete."""
        self._bytes += data
        messages = []
        while len(self._bytes) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._bytes)
            if length > MAX_FRAME_BYTES:
                raise WireError(f"a frame of {length} bytes; at most {MAX_FRAME_BYTES} are taken")
            end = LENGTH.size + length
            if len(self._bytes) < end:
                break
            messages.append(_decode(bytes(self._bytes[LENGTH.size : end])))
            del self._bytes[:end]
        return messages


def _decode(body: bytes) -> Message:
    try:
        message = json.loads(body.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too deep, or an endless number
        raise WireError(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise WireError(f"expected a JSON object, found {type(message).__name__}")
    return message


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number here")
