"""Messages as frames: JSON with pictures in base64, or msgpack with raw arrays, agreed by the subprotocol.

Whatever the frame, either a message comes out or `BadFrame`. The action of a reply holds nothing but None,
booleans, integers of 64 bits, floats, text, lists and maps with text for keys, `MAX_DEPTH` levels at most,
and numpy arrays if they were sent as such. Of a repeated key the last one counts. msgpack can carry NaN and
infinities; JSON cannot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.agents import messages as wire
from proctor.agents.arrays import decode_picture, dtype_of, encode_picture, is_picture, read_array, sendable
from proctor.agents.messages import JSON, MSGPACK, BadFrame, WireFault
from proctor.core.answers import NOT_FINITE
from proctor.core.types import Observation, Sensor

Frame = str | bytes
Pictures = Literal["png", "jpeg"]

MAX_DEPTH = 32  # of nested lists and maps. A chunk of actions has three levels.
MAX_PROBLEM_CHARS = 200  # of the message about a bad frame, which may quote it
NOT_JSON = re.compile(r"[\[:,]\s*-?(NaN|Infinity)\b")  # as some writers of JSON put it
MIN_INT, MAX_INT = -(1 << 63), (1 << 64) - 1


class JsonCodec:
    """JSON text. Colour is PNG or JPEG, depth a 16-bit PNG, both in base64; other arrays are lists.

    JSON has no NaN and no infinity: each is written as null, and null in an array of floats is read as NaN.
    """

    subprotocol: ClassVar[str] = JSON

    def __init__(self, pictures: Pictures = "png") -> None:
        self._pictures = pictures
        self._encoder = msgspec.json.Encoder(enc_hook=self._write)
        self._from_agent = msgspec.json.Decoder(wire.FromAgent)
        self._from_evaluator = msgspec.json.Decoder(wire.FromEvaluator)

    def encode(self, message: wire.FromAgent | wire.FromEvaluator) -> str:
        """Return a message as text, or raise TypeError if something in it cannot be sent."""
        return self._encoder.encode(message).decode()

    def read_agent(self, frame: Frame) -> wire.FromAgent:
        """Return an agent's message, or raise BadFrame."""
        try:
            return _cleaned(_read(self._from_agent.decode, frame, str, AGENT_TYPES))
        except BadFrame as error:
            if error.kind == WireFault.MALFORMED and isinstance(frame, str) and NOT_JSON.search(frame):
                _refuse(
                    NOT_FINITE, "expected finite numbers, found NaN or Infinity, which JSON does not have"
                )
            raise

    def read_evaluator(self, frame: Frame) -> wire.FromEvaluator:
        """Return an evaluator's message, its pictures and lists not decoded yet, or raise BadFrame."""
        message: wire.FromEvaluator = _read(self._from_evaluator.decode, frame, str, EVALUATOR_TYPES)
        return message

    def formats(self, sensors: Mapping[str, Sensor]) -> dict[str, wire.Format]:
        """Return how arrays of these sensors are written."""
        return {
            name: _format(sensor, self._encoding(sensor.dtype, sensor.shape))
            for name, sensor in sensors.items()
        }

    def arrays(self, observation: Mapping[str, Any], formats: Mapping[str, wire.Format]) -> Observation:
        """Return an observation with arrays for base64 pictures and lists, or raise BadFrame."""
        found = dict(observation)
        for name in formats.keys() & observation.keys():
            found[name] = _array_of_text(name, observation[name], formats[name])
        return found

    def _encoding(self, dtype: str, shape: tuple[int, ...]) -> wire.Encoding:
        if not is_picture(dtype, shape):
            return "list"
        return self._pictures if dtype == "uint8" else "png"

    def _write(self, value: Any) -> Any:
        array = _numbers(value)
        encoding = self._encoding(array.dtype.name, array.shape)
        # msgspec writes bytes as base64, straight into the frame
        return array.tolist() if encoding == "list" else encode_picture(array, encoding)


class MsgpackCodec:
    """msgpack in binary frames. An array is `{"dtype": "<u2", "shape": [480, 640], "data": bytes}`.

    Such arrays may be anywhere in an observation or an action.
    """

    subprotocol: ClassVar[str] = MSGPACK

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_write_raw)
        self._from_agent = msgspec.msgpack.Decoder(wire.FromAgent)
        self._from_evaluator = msgspec.msgpack.Decoder(_FromEvaluatorUnread)
        self._array = msgspec.msgpack.Decoder(_RawArray)
        self._value = msgspec.msgpack.Decoder()

    def encode(self, message: wire.FromAgent | wire.FromEvaluator) -> bytes:
        """Return a message as bytes, or raise TypeError if something in it cannot be sent."""
        return self._encoder.encode(message)

    def read_agent(self, frame: Frame) -> wire.FromAgent:
        """Return an agent's message, or raise BadFrame."""
        return _cleaned(_read(self._from_agent.decode, frame, bytes, AGENT_TYPES))

    def read_evaluator(self, frame: Frame) -> wire.FromEvaluator:
        """Return an evaluator's message with its arrays, or raise BadFrame."""
        message = _read(self._from_evaluator.decode, frame, bytes, EVALUATOR_TYPES)
        if not isinstance(message, _GetActionUnread):
            known: wire.FromEvaluator = message
            return known
        observation = {
            name: _read(self._read_entry, raw, msgspec.Raw, EVALUATOR_TYPES)
            for name, raw in message.observation.items()
        }
        return wire.GetAction(
            session_id=message.session_id, request_id=message.request_id, observation=observation
        )

    def formats(self, sensors: Mapping[str, Sensor]) -> dict[str, wire.Format]:
        """Return how arrays of these sensors are written."""
        return {name: _format(sensor, "raw") for name, sensor in sensors.items()}

    def arrays(self, observation: Mapping[str, Any], formats: Mapping[str, wire.Format]) -> Observation:
        """Return the observation: `read_evaluator` has made its arrays."""
        del formats  # a raw array says itself what it is
        return dict(observation)

    def _read_entry(self, raw: msgspec.Raw) -> Any:
        """Read one entry of an observation, an array without copying it first."""
        try:
            array = self._array.decode(raw)
        except msgspec.ValidationError:
            return _clean(self._value.decode(raw), 0)
        return _array(array.dtype, array.shape, array.data)


Codec: TypeAlias = JsonCodec | MsgpackCodec


class _RawArray(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: list[int]
    data: memoryview  # a part of the frame, not a copy


class _GetActionUnread(msgspec.Struct, kw_only=True, tag_field="type", tag="get_action"):
    session_id: str
    request_id: int = 0
    observation: dict[str, msgspec.Raw]


_FromEvaluatorUnread: TypeAlias = (
    wire.Hello | wire.ResetEpisode | _GetActionUnread | wire.EpisodeEnd | wire.ErrorMessage
)
_ARRAY_KEYS = frozenset(_RawArray.__struct_fields__)

AGENT_TYPES = "action, hello or error"
EVALUATOR_TYPES = "reset_episode, get_action, episode_end, hello or error"


def _read(decode: Callable[[Any], Any], frame: Any, due: type, types: str) -> Any:
    if not isinstance(frame, due):
        wanted, found = ("text", "binary") if due is str else ("binary", "text")
        raise BadFrame(WireFault.WRONG_FRAME, f"expected a {wanted} frame, found a {found} one")
    try:
        return decode(frame)
    except msgspec.ValidationError as error:
        _refuse(WireFault.WRONG_MESSAGE, f"expected a message of type {types}: {error}")
    except (msgspec.DecodeError, UnicodeError) as error:
        _refuse(WireFault.MALFORMED, str(error))
    except RecursionError:
        _refuse(WireFault.TOO_DEEP, f"more than {MAX_DEPTH} nested lists or maps")


def _refuse(kind: str, problem: str) -> NoReturn:
    raise BadFrame(kind, problem[:MAX_PROBLEM_CHARS]) from None


def _cleaned(message: wire.FromAgent) -> wire.FromAgent:
    if isinstance(message, wire.ActionReply):
        return msgspec.structs.replace(message, action=_clean(message.action, 0))
    return message


def _clean(value: Any, depth: int) -> Any:
    """Return a value with arrays for encoded arrays, and refuse what JSON could not hold."""
    if depth > MAX_DEPTH:
        _refuse(WireFault.TOO_DEEP, f"more than {MAX_DEPTH} nested lists or maps")
    if isinstance(value, dict):
        if value.keys() == _ARRAY_KEYS:
            return _array(**value)
        if not all(isinstance(key, str) for key in value):
            _refuse(WireFault.WRONG_MESSAGE, "expected text for the keys of a map, found something else")
        return {key: _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, int) and not MIN_INT <= value <= MAX_INT:
        _refuse(WireFault.WRONG_MESSAGE, "expected integers of at most 64 bits, found a longer one")
    if value is None or isinstance(value, int | float | str):
        return value
    found = type(value).__name__
    _refuse(WireFault.WRONG_MESSAGE, f"expected numbers, text, lists, maps and arrays, found {found}")


def _array(dtype: Any, shape: Any, data: Any) -> NDArray[Any]:
    if not (isinstance(dtype, str) and isinstance(shape, list) and isinstance(data, bytes | memoryview)):
        _refuse(WireFault.MALFORMED, "an array is broken: dtype must be text, shape a list, data bytes")
    try:
        return read_array(dtype, shape, data)
    except ValueError as error:
        _refuse(WireFault.MALFORMED, f"an array is broken: {error}")


def _format(sensor: Sensor, encoding: wire.Encoding) -> wire.Format:
    return wire.Format(dtype=sensor.dtype, shape=sensor.shape, encoding=encoding)


def _array_of_text(name: str, value: Any, format_: wire.Format) -> NDArray[Any]:
    try:
        if format_.encoding != "list":
            return decode_picture(msgspec.convert(value, bytes), format_)
        array = np.asarray(value, dtype_of(format_.dtype))
        if array.size == 0 == math.prod(format_.shape):
            array = array.reshape(format_.shape)  # nested lists do not tell the sizes behind a 0
        if array.shape != format_.shape:
            raise ValueError(f"expected numbers of shape {list(format_.shape)}, found {list(array.shape)}")
    except (TypeError, ValueError, OverflowError) as error:
        _refuse(WireFault.MALFORMED, f"observation.{name}: {error}")
    return array


def _numbers(value: Any) -> NDArray[Any]:
    """Return numpy's numbers as an array that can be sent, or raise TypeError."""
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"cannot be sent: {type(value).__name__}")
    return sendable(np.asarray(value))


def _write_raw(value: Any) -> Any:
    array = _numbers(value)
    if isinstance(value, np.generic):
        return array.item()
    return {"dtype": array.dtype.str, "shape": array.shape, "data": array.data}
