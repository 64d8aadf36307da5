"""Both ways to write messages: what goes in comes out."""

import json
import math

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from wire_values import BOTH, CODECS, DTYPES, KEYS, PACKED, PLAIN, action_of

from proctor.agents.codec import JsonCodec
from proctor.agents.messages import (
    ActionReply,
    EpisodeEnd,
    ErrorMessage,
    GetAction,
    Hello,
    ResetEpisode,
)
from proctor.core.types import Sensor

SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: arrays_of.arrays(dtype, SHAPES))
PICTURES = arrays_of.arrays(np.uint8, (5, 4, 3)) | arrays_of.arrays(np.uint16, (5, 4))
OBSERVATIONS = st.dictionaries(KEYS, ARRAYS | PICTURES | PLAIN, max_size=4)


def sent(codec, observation):
    """Return an observation as an agent gets it."""
    sensors = {
        name: Sensor(dtype=value.dtype.name, shape=value.shape)
        for name, value in observation.items()
        if isinstance(value, np.ndarray)
    }
    reset = ResetEpisode(session_id="s", episode={}, observation_format=codec.formats(sensors))
    formats = codec.read_evaluator(codec.encode(reset)).observation_format
    frame = codec.encode(GetAction(session_id="s", request_id=1, observation=observation))
    message = codec.read_evaluator(frame)
    assert (message.session_id, message.request_id) == ("s", 1)
    return codec.arrays(message.observation, formats)


def assert_same(found, expected):
    if isinstance(expected, np.ndarray):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f")
        found[...] = 0  # a policy may write to it
    else:
        assert found == expected


@BOTH
@settings(max_examples=40)
@given(observation=OBSERVATIONS)
def test_any_observation_arrives_as_it_was(codec, observation):
    if codec is not PACKED:  # JSON has one word for all that is no number
        for value in observation.values():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                value[np.isinf(value)] = math.nan
    found = sent(codec, observation)
    assert found.keys() == observation.keys()
    for name, value in observation.items():
        assert_same(found[name], value)


@settings(max_examples=15)
@given(observation=st.fixed_dictionaries({"depth": arrays_of.arrays(np.uint16, (5, 4)), "more": PLAIN}))
def test_jpeg_is_for_colour_only(observation):
    shade = np.full((16, 16, 3), 120, np.uint8)
    found = sent(JsonCodec("jpeg"), {"rgb": shade, **observation})
    assert np.abs(found["rgb"].astype(int) - 120).max() <= 2
    assert_same(found["depth"], observation["depth"])
    assert found["more"] == observation["more"]


@BOTH
@settings(max_examples=40)
@given(action=PLAIN)
def test_any_action_arrives_as_it_was(codec, action):
    assert action_of(codec, action) == action


@settings(max_examples=40)
@given(qpos=ARRAYS, more=PLAIN)
def test_arrays_anywhere_in_an_action(qpos, more):
    found = action_of(PACKED, {"type": "joint_position", "qpos": qpos, "chunk": [[qpos], {"more": more}]})
    assert found["type"] == "joint_position"
    assert_same(found["qpos"], qpos)
    assert_same(found["chunk"][0][0], qpos)
    assert found["chunk"][1] == {"more": more}
    assert_same(action_of(PACKED, qpos), qpos)


def test_arrays_anywhere_in_an_observation():
    found = sent(PACKED, {"object_info": {"positions": [np.arange(3.0)]}})
    assert_same(found["object_info"]["positions"][0], np.arange(3.0))


@BOTH
@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.uint8).reshape(2, 4, 3)[:, ::-1],
        np.arange(12, dtype=">u2").reshape(3, 4),
        np.arange(12, dtype=">f8"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(1.5, np.float32),
        np.zeros((0, 4, 3), np.uint8),
        np.broadcast_to(np.uint16(7), (3, 4)),
    ],
    ids=[
        "backwards",
        "big-endian depth",
        "big-endian",
        "columns first",
        "no dimension",
        "empty",
        "one for all",
    ],
)
def test_arrays_that_lie_strangely_in_memory(codec, array):
    assert_same(sent(codec, {"it": array})["it"], array.astype(array.dtype.newbyteorder("=")))


def test_on_the_wire_arrays_are_little_endian_maps():
    frame = PACKED.encode(ActionReply(action=np.array([[1, 2]], ">u2")))
    assert msgpack.unpackb(frame)["action"] == {"dtype": "<u2", "shape": [1, 2], "data": b"\1\0\2\0"}


def test_dtypes_may_be_written_in_other_ways():
    for name, data in (("uint16", b"\1\0"), ("u2", b"\1\0"), (">u2", b"\0\1")):
        array = {"dtype": name, "shape": [1], "data": data}
        found = PACKED.read_agent(msgpack.packb({"type": "action", "action": array})).action
        assert_same(found, np.array([1], np.uint16))


@BOTH
def test_numbers_of_numpy_are_numbers(codec):
    action = {"a": np.float32(0.5), "b": np.int64(-3), "c": np.bool_(True), "d": np.uint8(255)}
    found = action_of(codec, action)
    assert found == {"a": 0.5, "b": -3, "c": True, "d": 255}
    assert [type(value) for value in found.values()] == [float, int, bool, int]


def test_what_is_no_number_is_null_in_json_and_nan_for_the_agent():
    ranges = np.array([math.nan, math.inf, -math.inf, 2.0])
    frame = CODECS["json"].encode(GetAction(session_id="s", observation={"ranges": ranges, "one": math.nan}))
    assert json.loads(frame)["observation"] == {"ranges": [None, None, None, 2.0], "one": None}
    assert_same(sent(CODECS["json"], {"ranges": ranges})["ranges"], np.array([math.nan] * 3 + [2.0]))
    assert_same(sent(PACKED, {"ranges": ranges})["ranges"], ranges)


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        np.array([object()]),
        np.array(["a"]),
        np.zeros(2, complex),
        np.zeros(2, "M8[s]"),
        np.longdouble(1),
        {1j},
    ],
)
def test_what_has_no_place_in_a_message_is_told_to_the_programmer(codec, value):
    with pytest.raises(TypeError, match="cannot be sent"):
        codec.encode(ActionReply(action=value))


@BOTH
@pytest.mark.parametrize(
    "message",
    [
        Hello(protocol="proctor", version=1, sensors={"rgb": Sensor(dtype="uint8", shape=(4, 4, 3))}),
        ErrorMessage(kind="oom", message="内存不足"),
    ],
)
def test_messages_of_both_sides(codec, message):
    assert codec.read_agent(codec.encode(message)) == message
    assert codec.read_evaluator(codec.encode(message)) == message


@BOTH
def test_messages_of_the_evaluator(codec):
    for message in (
        ResetEpisode(session_id="s", episode={"instruction": {"text": "去厨房", "language": "zh"}}),
        EpisodeEnd(session_id="s", status="success", metrics={"spl": 0.5}, num_steps=3),
    ):
        assert codec.read_evaluator(codec.encode(message)) == message


def test_pictures_are_announced_as_they_are_written():
    sensors = {
        "rgb": Sensor(dtype="uint8", shape=(4, 4, 3)),
        "depth": Sensor(dtype="uint16", shape=(4, 4)),
        "qpos": Sensor(dtype="float64", shape=(10,)),
    }
    found = {
        codec.subprotocol + pictures: [format_.encoding for format_ in codec.formats(sensors).values()]
        for codec, pictures in ((JsonCodec(), ""), (JsonCodec("jpeg"), ".jpeg"), (PACKED, ""))
    }
    assert found == {
        "proctor.v1.json": ["png", "png", "list"],
        "proctor.v1.json.jpeg": ["jpeg", "png", "list"],
        "proctor.v1.msgpack": ["raw", "raw", "raw"],
    }
