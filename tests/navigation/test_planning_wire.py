"""What travels between loop and planner, and the requests themselves."""

import math

import msgspec
import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.maps.failure import Reason
from proctor.navigation.path import Leg, Path
from proctor.navigation.process.requests import (
    LARGEST_MESSAGE,
    LENGTH,
    CancelCall,
    FailureAnswer,
    Frames,
    Motion,
    PathAnswer,
    PathRequest,
    TrajectoryAnswer,
    TrajectoryCall,
    TrajectoryRequest,
    decode_answer,
    decode_call,
    frame,
)
from proctor.navigation.timing.trajectory import Trajectory

LEG = Leg(np.array([[0.0, 0.0], [1.0, 0.0], [1.5, 0.5]]), np.array([0.0, 0.1, 0.8]), np.zeros(3))
PATH = Path(raw=LEG.points, legs=(LEG, LEG), planner="grid", margin_m=0.05, clearance_m=0.3)


def body(message):
    (only,) = Frames().add(frame(message))
    return only


def test_arrays_arrive_as_they_were_sent_and_can_be_written_to():
    request = TrajectoryRequest(path=PATH, start=Motion(np.float64(0.1), 0.2, 0.3))
    back = decode_call(body(TrajectoryCall(3, request)))
    assert back.id == 3
    assert back.request.start == Motion(0.1, 0.2, 0.3)
    assert np.array_equal(back.request.path.legs[1].points, LEG.points)
    assert back.request.path.raw.flags.writeable

    sent = Trajectory([0.0, 1.0], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]])
    trajectory = decode_answer(body(TrajectoryAnswer(4, sent, 0.25))).trajectory
    assert list(trajectory) == list(sent)


def test_messages_may_come_in_any_pieces():
    stream = b"".join(
        map(frame, [PathAnswer(1, PATH), FailureAnswer(2, Reason.NO_PATH, "none"), CancelCall(3)])
    )
    whole = Frames().add(stream)
    assert len(whole) == 3
    for size in (1, 3, 7, len(stream) - 1):
        frames = Frames()
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [message for piece in pieces for message in frames.add(piece)] == whole


def test_messages_are_bounded():
    with pytest.raises(ValueError, match="expected at most"):
        Frames().add(LENGTH.pack(LARGEST_MESSAGE + 1))
    long = msgspec.structs.replace(PATH, raw=np.zeros((LARGEST_MESSAGE // 16 + 1, 2)))
    with pytest.raises(UserError, match="too long"):
        frame(PathAnswer(1, long))


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": Motion(math.nan, 0.0, 0.0)},
        {"goal_xy": (0.0, math.inf)},
        {"radius_m": -0.1},
        {"margin_m": math.nan},
        {"timeout_s": 0.0},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wrong):
    good = {"start": Motion(0.0, 0.0, 0.0), "goal_xy": (1.0, 1.0)}
    assert PathRequest(**good).planner == "grid"
    with pytest.raises(UserError, match="expected"):
        PathRequest(**good | wrong)
