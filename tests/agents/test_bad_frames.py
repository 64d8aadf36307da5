"""No frame does harm: either a message comes of it, or `BadFrame`."""

import datetime

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_values import BOTH, CODECS, DTYPES, KEYS, PACKED, PLAIN, action_of

from proctor.agents.codec import MAX_DEPTH
from proctor.agents.messages import BadFrame, Format, GetAction, WireFault
from proctor.core.answers import NOT_FINITE
from proctor.core.types import Sensor

NESTED = 100_000
ACTION = '{"type": "action", "action": %s}'


def fault_of(read, *args):
    with pytest.raises(BadFrame) as caught:
        read(*args)
    assert len(str(caught.value)) <= 200
    return caught.value.kind, str(caught.value)


@pytest.mark.parametrize(
    ("frame", "kind", "problem"),
    [
        ("", WireFault.MALFORMED, "truncated"),
        ("FORWARD", WireFault.MALFORMED, "invalid character"),
        (ACTION % "NaN", NOT_FINITE, "found NaN or Infinity"),
        (ACTION % "-Infinity", NOT_FINITE, "found NaN or Infinity"),
        (ACTION % '"NaN", ', WireFault.MALFORMED, "malformed"),
        (ACTION % '"\\ud800"', WireFault.MALFORMED, ""),
        (ACTION % '"\ud800"', WireFault.MALFORMED, "surrogates"),
        ("\ufeff" + ACTION % "1", WireFault.MALFORMED, "invalid character"),
        (ACTION % "1" + "{}", WireFault.MALFORMED, "trailing"),
        (ACTION % "1e999", WireFault.WRONG_MESSAGE, "out of range"),
        (ACTION % (2**64), WireFault.WRONG_MESSAGE, "64 bits"),
        (ACTION % f"[{-(2**63) - 1}]", WireFault.WRONG_MESSAGE, "64 bits"),
        (ACTION % ("9" * 5000), WireFault.WRONG_MESSAGE, "out of range"),
        (ACTION % ("[" * NESTED), WireFault.TOO_DEEP, "nested lists or maps"),
        (ACTION % ('{"a":' * NESTED), WireFault.TOO_DEEP, "nested lists or maps"),
        (
            '{"type": "action", "action": 1, "more": ' + "[" * NESTED,
            WireFault.TOO_DEEP,
            "nested lists or maps",
        ),
        ("[]", WireFault.WRONG_MESSAGE, "expected a message of type action, hello or error: "),
        ('{"action": "FORWARD"}', WireFault.WRONG_MESSAGE, "missing required field `type`"),
        ('{"type": "action"}', WireFault.WRONG_MESSAGE, "missing required field `action`"),
        ('{"type": "%s"}' % ("x" * 10_000), WireFault.WRONG_MESSAGE, "of type action, hello or error"),
        ('{"type": "get_action", "observation": {}}', WireFault.WRONG_MESSAGE, "'get_action'"),
        (b"{}", WireFault.WRONG_FRAME, "expected a text frame, found a binary one"),
        (ACTION % '{"dtype": "<f4", "shape": [1], "data": "AAAA"}', WireFault.MALFORMED, "array is broken"),
    ],
)
def test_bad_frames_of_json(frame, kind, problem):
    found_kind, found_problem = fault_of(CODECS["json"].read_agent, frame)
    assert found_kind == kind
    assert problem in found_problem


def packed(action):
    return msgpack.packb({"type": "action", "action": action}, datetime=True)


def packed_array(dtype="<f4", shape=(1,), data=bytes(4)):
    return packed({"dtype": dtype, "shape": shape, "data": data})


HEAD = b"\x82" + msgpack.packb("type") + msgpack.packb("action") + msgpack.packb("action")


@pytest.mark.parametrize(
    ("frame", "kind", "problem"),
    [
        (b"", WireFault.MALFORMED, "truncated"),
        (b"\xc1", WireFault.MALFORMED, "invalid opcode"),
        (HEAD + b"\xdd\xff\xff\xff\xff", WireFault.MALFORMED, "truncated"),
        (HEAD + b"\xa2\xff\xfe", WireFault.MALFORMED, "utf-8"),
        (HEAD + b"\x81\x80\x01", WireFault.MALFORMED, "hashable"),
        (HEAD + b"\x91" * NESTED, WireFault.TOO_DEEP, "nested lists or maps"),
        (HEAD + b"\x81\xa1a" * NESTED, WireFault.TOO_DEEP, "nested lists or maps"),
        ("{}", WireFault.WRONG_FRAME, "expected a binary frame, found a text one"),
        (msgpack.packb([1]), WireFault.WRONG_MESSAGE, "of type action, hello or error"),
        (packed(b"FORWARD"), WireFault.WRONG_MESSAGE, "found bytes"),
        (packed({1: 2}), WireFault.WRONG_MESSAGE, "keys of a map"),
        (packed([{b"a": 2}]), WireFault.WRONG_MESSAGE, "keys of a map"),
        (packed(msgpack.ExtType(5, b"x")), WireFault.WRONG_MESSAGE, "found Ext"),
        (
            packed([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]),
            WireFault.WRONG_MESSAGE,
            "found datetime",
        ),
        (packed_array(dtype="O"), WireFault.MALFORMED, "dtype of numbers such as '<f4', found 'O'"),
        (packed_array(dtype="a4"), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype="(1,)<f4"), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype="<f4,<f4", data=bytes(8)), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype="M8[s]", data=bytes(8)), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype="c8", data=bytes(8)), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype="x" * 1000), WireFault.MALFORMED, "dtype of numbers"),
        (packed_array(dtype=["<f4"]), WireFault.MALFORMED, "dtype must be text"),
        (packed_array(data="text"), WireFault.MALFORMED, "data bytes"),
        (packed_array(data=[0.0]), WireFault.MALFORMED, "data bytes"),
        (packed_array(shape=1), WireFault.MALFORMED, "shape a list"),
        (packed_array(shape=[2]), WireFault.MALFORMED, "needs 8 bytes, found 4"),
        (packed_array(data=bytes(8)), WireFault.MALFORMED, "needs 4 bytes, found 8"),
        (packed_array(shape=[-1]), WireFault.MALFORMED, "integer from 0"),
        (packed_array(shape=[-1, -1]), WireFault.MALFORMED, "integer from 0"),
        (packed_array(shape=[1.0]), WireFault.MALFORMED, "integer from 0"),
        (packed_array(shape=[True]), WireFault.MALFORMED, "integer from 0"),
        (packed_array(shape=[1] * 9), WireFault.MALFORMED, "at most 8 sizes"),
        (packed_array(shape=[1] * 100_000), WireFault.MALFORMED, "at most 8 sizes"),
        (packed_array(shape=[2**62, 2]), WireFault.MALFORMED, "needs "),
        (packed_array(shape=[2**63, 0], data=b""), WireFault.MALFORMED, "array is broken"),
        (packed_array(shape=[2**32, 2**32, 0], data=b""), WireFault.MALFORMED, "array is broken"),
    ],
)
def test_bad_frames_of_msgpack(frame, kind, problem):
    found_kind, found_problem = fault_of(PACKED.read_agent, frame)
    assert found_kind == kind
    assert problem in found_problem


@BOTH
def test_nesting_has_an_end_long_before_pythons_own(codec):
    def nested(levels):
        action = 1
        for level in range(levels):
            action = [action] if level % 2 else {"a": action}
        return action

    assert action_of(codec, nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    kind, _ = fault_of(action_of, codec, nested(MAX_DEPTH + 1))
    assert kind == WireFault.TOO_DEEP


def test_of_a_key_that_is_there_twice_the_last_one_counts():
    frame = '{"type": "action", "action": 1, "action": {"a": 1, "a": 2}}'
    assert CODECS["json"].read_agent(frame).action == {"a": 2}


@pytest.mark.parametrize(
    ("value", "format_"),
    [
        ("no base64!", Format(dtype="uint8", shape=(2, 2, 3), encoding="png")),
        ("AAAA", Format(dtype="uint8", shape=(2, 2, 3), encoding="png")),
        ("AAAA", Format(dtype="uint8", shape=(2, 2, 3), encoding="jpeg")),
        ("AAAA", Format(dtype="float32", shape=(1,), encoding="png")),
        ("AAAA", Format(dtype="float32", shape=(1,), encoding="raw")),
        (5, Format(dtype="uint8", shape=(2, 2, 3), encoding="png")),
        (None, Format(dtype="uint8", shape=(2, 2, 3), encoding="png")),
        ([1, 2], Format(dtype="float32", shape=(3,), encoding="list")),
        ([[1, 2], [3]], Format(dtype="float32", shape=(2, 2), encoding="list")),
        ([256], Format(dtype="uint8", shape=(1,), encoding="list")),
        ([None], Format(dtype="int32", shape=(1,), encoding="list")),
        ([{}], Format(dtype="int32", shape=(1,), encoding="list")),
        (["x"], Format(dtype="float32", shape=(1,), encoding="list")),
        ([1], Format(dtype="O", shape=(1,), encoding="list")),
        ("AAAA", Format(dtype="U4", shape=(), encoding="list")),
    ],
)
def test_broken_arrays_in_json(value, format_):
    kind, problem = fault_of(CODECS["json"].arrays, {"it": value}, {"it": format_})
    assert kind == WireFault.MALFORMED
    assert problem.startswith("observation.it: ")


@BOTH
def test_sensors_that_an_observation_leaves_out_stay_out(codec):
    formats = codec.formats({"rgb": Sensor(dtype="uint8", shape=(2, 2, 3))})
    assert codec.arrays({"step": 1}, formats) == {"step": 1}


# Frames that look like messages, made of all that can be written

ANY_FORMAT = st.builds(
    Format,
    dtype=st.sampled_from([*DTYPES, "O", "U4", ">f4"]) | st.text(max_size=4),
    shape=st.lists(st.integers(-2, 4), max_size=4).map(tuple),
    encoding=st.sampled_from(["png", "jpeg", "list", "raw"]),
)
MESSAGE_LIKE = st.fixed_dictionaries(
    {"type": st.sampled_from(["action", "hello", "error", "get_action", "reset_episode", "episode_end"])},
    optional={
        "session_id": PLAIN,
        "request_id": PLAIN,
        "action": PLAIN,
        "observation": PLAIN | st.dictionaries(KEYS, PLAIN, max_size=3),
        "observation_format": PLAIN,
        "protocol": PLAIN,
        "version": PLAIN,
        "sensors": PLAIN,
        "metrics": PLAIN,
    },
)
PACKED_ARRAY = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["<f4", "|u1", "O", ">i8"]) | PLAIN,
        "shape": st.lists(st.integers(-1, 2**64 - 1), max_size=4) | PLAIN,
        "data": st.binary(max_size=16) | PLAIN,
    }
)


def read_all(codec, frame, formats):
    """Read a frame in every way there is; nothing but `BadFrame` may come of it."""
    for read in (codec.read_agent, codec.read_evaluator):
        try:
            message = read(frame)
        except BadFrame as bad:
            assert bad.kind in {*map(str, WireFault), NOT_FINITE}  # noqa: PT017  (mostly there is none)
            continue
        if isinstance(message, GetAction):
            for announced in (formats, dict.fromkeys(message.observation, next(iter(formats.values())))):
                try:
                    codec.arrays(message.observation, announced)
                except BadFrame as bad:
                    assert bad.kind == WireFault.MALFORMED  # noqa: PT017


@BOTH
@settings(max_examples=60)
@given(frame=st.binary(max_size=60) | st.text(max_size=60), format_=ANY_FORMAT)
def test_any_frame_is_a_message_or_refused(codec, frame, format_):
    read_all(codec, frame, {"it": format_})


@BOTH
@settings(max_examples=100)
@given(message=MESSAGE_LIKE, array=PACKED_ARRAY, format_=ANY_FORMAT, cut=st.integers(0, 400))
def test_anything_like_a_message_is_one_or_refused(codec, message, array, format_, cut):
    if codec is PACKED:
        message = {**message, "action": [array], "observation": {"a": array, "b": {"c": [array]}}}
        frame = msgspec.msgpack.encode(message)
    else:
        frame = msgspec.json.encode(message).decode()
    read_all(codec, frame, {"it": format_})
    read_all(codec, frame[:cut], {"it": format_})
