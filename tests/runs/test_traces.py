"""Traces as files: every bit comes back, and what is not a trace is refused with one message."""

import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.errors import InvalidFile
from proctor.core.types import Action, Vector3
from proctor.exams.driving import DrivingState
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.trace import Trace
from proctor.exams.vln.exam import VlnExam
from proctor.runs.traces import decode_trace, encode_trace

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)
states = st.builds(
    DrivingState,
    position=st.builds(Vector3, numbers, numbers, numbers),
    yaw=st.none() | numbers,
    collision=st.booleans(),
    more=st.dictionaries(st.text(), numbers | st.booleans() | st.text(), max_size=3),
)


def trace_of(first, steps):
    trace = Trace(first)
    for action, state in steps:
        trace.add(action, state, 0.5)
    return trace


@given(first=st.none() | states, steps=st.lists(st.tuples(st.sampled_from(Action), states), max_size=5))
def test_every_bit_of_a_trace_comes_back(first, steps):
    trace, exam = trace_of(first, steps), VlnExam()
    again = decode_trace(exam, encode_trace(exam, "an id", trace), "a.trace")
    assert again.states == trace.states
    assert again.actions == trace.actions
    assert again.latencies_s == trace.latencies_s


def example():
    state = DrivingState(position=Vector3(0, 0, 0))
    return encode_trace(VlnExam(), "ep", trace_of(state, [(Action.STOP, state)]))


def changed(**fields):
    content = msgspec.msgpack.decode(zlib.decompress(example()))
    return zlib.compress(msgspec.msgpack.encode(content | fields))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it was cut off"),
        (example()[:-3], "it was cut off"),
        (b"not a trace at all", "not a trace"),
        (zlib.compress(b"neither"), "not a trace"),
        (changed(version=99), "a trace of version 99; this Proctor reads version 1"),
        (changed(exam="cooking"), "a trace of the exam 'cooking', expected 'vln'"),
        (changed(actions=[0, 0, 0]), "expected a state for each of 3 actions, found 2"),
        (changed(actions=["FLY"]), "not a trace of the exam 'vln'"),
        (changed(states={}), "expected a state for each of 1 actions, found 0"),
        (changed(states={"position": [1, 2]}), "not a trace of the exam 'vln'"),
    ],
)
def test_what_is_not_a_trace_of_this_version_is_refused(content, said):
    with pytest.raises(InvalidFile, match=said) as caught:
        decode_trace(VlnExam(), content, "x/ep.trace")
    assert str(caught.value).startswith("x/ep.trace")


def test_a_trace_of_another_exam_is_refused():
    with pytest.raises(InvalidFile, match="expected 'pick_and_place'"):
        decode_trace(PickPlaceExam(), example(), "ep.trace")
