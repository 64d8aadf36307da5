"""What callers of navigate_to may ask for."""

import math

import numpy as np
import pytest

from proctor.core.errors import UserError
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.skill.goal import NavigationGoal, asked_for, read_goal


def test_reads_position_heading_and_timeout():
    goal = read_goal([10, 20, 0], [0, 0, math.sin(0.6), math.cos(0.6)], 30)
    assert goal.position == (10.0, 20.0, 0.0)
    assert goal.xy == (10.0, 20.0)
    assert goal.yaw == pytest.approx(1.2)
    assert goal.timeout_s == 30.0


def test_heading_and_timeout_are_optional():
    goal = read_goal(np.array([1.0, 2.0, 0.5]))
    assert goal.position == (1.0, 2.0, 0.5)
    assert goal.yaw is None
    assert goal.timeout_s == 60.0


def test_a_goal_that_was_read_is_not_read_again():
    goal = NavigationGoal((1.0, 2.0, 0.0), 0.5, 30.0)
    assert asked_for({"goal": goal}) is goal
    for params in ({"goal": goal, "timeout": 3.0}, {"goal": [1.0, 2.0, 0.0]}):
        with pytest.raises(UserError, match="no parameter 'goal'; did you mean 'goal_pos'"):
            asked_for(params)


def test_a_quaternion_of_another_length_is_the_same_rotation():
    assert read_goal([0, 0, 0], [0, 0, 2, 2]).yaw == pytest.approx(math.pi / 2)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"goal_pos": None}, "goal_pos is None; expected [x, y, z]"),
        ({"goal_pos": "kitchen"}, "'kitchen'; expected [x, y, z]"),
        ({"goal_pos": [1]}, "1 numbers, [1]; expected [x, y, z]"),
        ({"goal_pos": [1, 2]}, "2 numbers, [1, 2]; expected [x, y, z]"),
        ({"goal_pos": [1, 2, 3, 4]}, "4 numbers"),
        ({"goal_pos": [1, math.nan, 0]}, "expected finite numbers"),
        ({"goal_pos": [1, math.inf, 0]}, "expected finite numbers"),
        ({"goal_pos": [1, 2, 0], "goal_quat": [0, 0, 0, 0]}, "goal_quat has the length 0"),
        ({"goal_pos": [1, 2, 0], "goal_quat": [0, 0, 1]}, "goal_quat has 3 numbers"),
        ({"goal_pos": [1, 2, 0], "goal_quat": [0, 0, math.nan, 1]}, "goal_quat is"),
        ({"goal_pos": [1, 2, 0], "timeout": 0}, "timeout is 0 s; expected more than 0"),
        ({"goal_pos": [1, 2, 0], "timeout": -3.0}, "timeout is -3 s"),
        ({"goal_pos": [1, 2, 0], "timeout": math.nan}, "timeout is"),
        ({"goal_pos": [1, 2, 0], "timeout": "soon"}, "timeout is"),
        ({"goal_pos": [[1, 2], [3, 4], [5, 6]]}, "expected [x, y, z]"),
    ],
)
def test_refuses_what_makes_no_sense(goal, words):
    with pytest.raises(NavigationFailure) as caught:
        read_goal(**goal)
    assert caught.value.reason is Reason.INVALID_GOAL
    assert words in str(caught.value)
