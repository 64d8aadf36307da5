"""What travels between loop and planner, and the requests themselves."""

import math

import msgspec
import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Leg, Path, RobotMotion, Trajectory
from proctor.navigation.process.plan import (
    MAX_MESSAGE_BYTES,
    PlanAnswer,
    PlanRequest,
    decode_answer,
    decode_request,
    encode,
)

LEG = Leg(np.array([[0.0, 0.0], [1.0, 0.0], [1.5, 0.5]]), np.array([0.0, 0.1, 0.8]), np.zeros(3))
PATH = Path(raw=LEG.points, legs=(LEG, LEG), planner="grid", margin_m=0.05, clearance_m=0.3)


def test_arrays_arrive_as_they_were_sent_and_can_be_written_to():
    back = decode_request(encode(PlanRequest(id=3, path=PATH, start=RobotMotion(np.float64(0.1), 0.2, 0.3))))
    assert back.id == 3
    assert back.start == RobotMotion(0.1, 0.2, 0.3)
    assert np.array_equal(back.path.legs[1].points, LEG.points)
    assert back.path.raw.flags.writeable

    sent = Trajectory([0.0, 1.0], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 0]])
    answer = decode_answer(encode(PlanAnswer(id=4, path=PATH, trajectory=sent)))
    assert list(answer.trajectory) == list(sent)
    assert np.array_equal(answer.path.raw, PATH.raw)


def test_failures_arrive_with_their_reason():
    sent = PlanAnswer(id=2, failure=NavigationFailure(Reason.NO_PATH, "none"))
    failure = decode_answer(encode(sent)).failure
    assert (failure.reason, str(failure)) == (Reason.NO_PATH, "none")


def test_messages_are_bounded():
    long = msgspec.structs.replace(PATH, raw=np.zeros((MAX_MESSAGE_BYTES // 16 + 1, 2)))
    with pytest.raises(UserError, match="too long"):
        encode(PlanAnswer(id=1, path=long))


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": RobotMotion(math.nan, 0.0, 0.0)},
        {"goal_xy": (0.0, math.inf)},
        {"radius_m": -0.1},
        {"margin_m": math.nan},
        {"timeout_s": 0.0},
        {"goal_yaw": math.nan},
        {"path": PATH},  # and a goal
        {"goal_xy": None},
    ],
)
def test_a_request_that_makes_no_sense_is_refused(wrong):
    good = {"start": RobotMotion(0.0, 0.0, 0.0), "goal_xy": (1.0, 1.0)}
    assert PlanRequest(**good).planner == "grid"
    with pytest.raises(UserError, match="expected"):
        PlanRequest(**good | wrong)
