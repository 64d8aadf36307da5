"""Messages as frames: JSON with pictures in base64, or msgpack with raw arrays.

JSON is what everybody can write; msgpack is what is fast. Which of them is spoken is agreed by the
WebSocket subprotocol.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from proctor.core.types import Observation, Sensor
from proctor.protocol.faults import BadFrame, WireFault
from proctor.protocol.messages import JSON, MSGPACK, ActionReply, Encoding, Format, FromAgent, FromEvaluator
from proctor.protocol.pictures import decode_picture, encode_picture

Frame = str | bytes
Pictures = Literal["png", "jpeg"]


class Codec(Protocol):
    """One way to write messages."""

    subprotocol: ClassVar[str]

    def encode(self, message: FromAgent | FromEvaluator) -> Frame:
        """Write a message; arrays in it are written by their `Format`."""

    def read_agent(self, frame: Frame) -> FromAgent:
        """Read what an agent sent.

        Raises:
            BadFrame: It cannot be understood.
        """

    def read_evaluator(self, frame: Frame) -> FromEvaluator:
        """Read what an evaluator sent; arrays of an observation are still as on the wire.

        Raises:
            BadFrame: It cannot be understood.
        """

    def formats(self, sensors: Mapping[str, Sensor]) -> dict[str, Format]:
        """Tell how arrays of these kinds are written."""

    def arrays(self, observation: Mapping[str, Any], formats: Mapping[str, Format]) -> Observation:
        """Make arrays of what a `get_action` brought.

        Raises:
            BadFrame: A picture or an array is broken.
        """


class JsonCodec:
    """JSON text. Colour is PNG or JPEG, depth a 16-bit PNG, both in base64; other arrays are lists."""

    subprotocol: ClassVar[str] = JSON

    def __init__(self, pictures: Pictures = "png") -> None:
        self._pictures = pictures
        self._encoder = msgspec.json.Encoder(enc_hook=self._write)
        self._from_agent = msgspec.json.Decoder(FromAgent)
        self._from_evaluator = msgspec.json.Decoder(FromEvaluator)

    def encode(self, message: FromAgent | FromEvaluator) -> str:
        """Write a message as text."""
        return self._encoder.encode(message).decode()

    def read_agent(self, frame: Frame) -> FromAgent:
        """Read what an agent sent."""
        message: FromAgent = _read(self._from_agent.decode, frame, str)
        return message

    def read_evaluator(self, frame: Frame) -> FromEvaluator:
        """Read what an evaluator sent."""
        message: FromEvaluator = _read(self._from_evaluator.decode, frame, str)
        return message

    def formats(self, sensors: Mapping[str, Sensor]) -> dict[str, Format]:
        """Tell how arrays of these kinds are written."""
        return {name: _format(sensor, self._encoding(sensor)) for name, sensor in sensors.items()}

    def arrays(self, observation: Mapping[str, Any], formats: Mapping[str, Format]) -> Observation:
        """Make arrays of base64 pictures and lists."""
        found = dict(observation)
        for name in formats.keys() & observation.keys():
            found[name] = _array_of_text(name, observation[name], formats[name])
        return found

    def _encoding(self, sensor: Sensor) -> Encoding:
        if sensor.dtype == "uint8" and len(sensor.shape) == 3 and sensor.shape[2] == 3:
            return self._pictures
        return "png" if sensor.dtype == "uint16" and len(sensor.shape) == 2 else "list"

    def _write(self, value: Any) -> Any:
        """Write what JSON has no word for."""
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray):
            raise NotImplementedError(f"cannot be sent to an agent: {type(value).__name__}")
        encoding = self._encoding(Sensor(dtype=str(value.dtype), shape=value.shape))
        if encoding == "list":
            return value.tolist()
        return base64.b64encode(encode_picture(value, encoding)).decode()


class MsgpackCodec:
    """msgpack in binary frames. An array is `{"dtype": "<u2", "shape": [480, 640], "data": bytes}`."""

    subprotocol: ClassVar[str] = MSGPACK

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_write_raw)
        self._from_agent = msgspec.msgpack.Decoder(FromAgent)
        self._from_evaluator = msgspec.msgpack.Decoder(FromEvaluator)

    def encode(self, message: FromAgent | FromEvaluator) -> bytes:
        """Write a message as bytes."""
        return self._encoder.encode(message)

    def read_agent(self, frame: Frame) -> FromAgent:
        """Read what an agent sent."""
        message: FromAgent = _read(self._from_agent.decode, frame, bytes)
        if isinstance(message, ActionReply):
            return msgspec.structs.replace(message, action=_with_arrays(message.action))
        return message

    def read_evaluator(self, frame: Frame) -> FromEvaluator:
        """Read what an evaluator sent."""
        message: FromEvaluator = _read(self._from_evaluator.decode, frame, bytes)
        return message

    def formats(self, sensors: Mapping[str, Sensor]) -> dict[str, Format]:
        """Tell how arrays of these kinds are written."""
        return {name: _format(sensor, "raw") for name, sensor in sensors.items()}

    def arrays(self, observation: Mapping[str, Any], formats: Mapping[str, Format]) -> Observation:
        """Make arrays of raw bytes."""
        del formats  # a raw array says itself what it is
        return {name: _with_arrays(value) for name, value in observation.items()}


def _read(decode: Callable[[Any], Any], frame: Frame, due: type) -> Any:
    if not isinstance(frame, due):
        wanted, found = ("text", "binary") if due is str else ("binary", "text")
        raise BadFrame(WireFault.WRONG_FRAME, f"expected a {wanted} frame, found a {found} one")
    try:
        return decode(frame)
    except msgspec.ValidationError as error:
        raise BadFrame(WireFault.WRONG_MESSAGE, str(error)) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadFrame(WireFault.MALFORMED, str(error)) from None
    except RecursionError:
        raise BadFrame(WireFault.TOO_DEEP, "lists or maps inside of each other without end") from None


def _format(sensor: Sensor, encoding: Encoding) -> Format:
    return Format(dtype=sensor.dtype, shape=sensor.shape, encoding=encoding)


def _array_of_text(name: str, value: Any, format_: Format) -> Any:
    try:
        if format_.encoding == "list":
            return np.asarray(value, dtype=format_.dtype)
        return decode_picture(base64.b64decode(value, validate=True), format_)
    except (TypeError, ValueError, OSError) as error:
        raise BadFrame(WireFault.MALFORMED, f"observation.{name}: {error}") from None


def _write_raw(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise NotImplementedError(f"cannot be sent: {type(value).__name__}")
    return {"dtype": value.dtype.str, "shape": value.shape, "data": np.ascontiguousarray(value).data}


def _with_arrays(value: Any) -> Any:
    """Make an array of what is written as one, and leave all else as it is."""
    if not (isinstance(value, dict) and value.keys() == {"dtype", "shape", "data"}):
        return value
    try:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "biuf":
            raise ValueError(f"expected numbers, found dtype {dtype}")
        return np.frombuffer(value["data"], dtype).reshape(value["shape"]).copy()
    except (TypeError, ValueError) as error:
        raise BadFrame(WireFault.MALFORMED, f"an array is broken: {error}") from None
