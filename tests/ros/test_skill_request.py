"""What clients of the skill server ask for is read whole, or refused with a reason."""

import pytest
from skill_clients import skill_goal

from proctor.core.errors import UserError
from proctor.navigation.skill.goal import NavigationGoal
from proctor.worlds.ros2.skill.skill_server import LONGEST_VALUE, SkillGoal, read_request


def read(*calls):
    return read_request(skill_goal(*calls).skill_request)


def test_values_are_json():
    (call,) = read(("navigate_to", {"goal_pos": "[10, 20, 0]", "timeout": "60.0"}))
    assert call == ("navigate_to", NavigationGoal((10, 20, 0), None, 60.0))


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([], "1 to 100 skills, found 0"),
        ([("navigat_to", {})], "did you mean 'navigate_to'"),
        ([("navigate_to", {})], "goal_pos is None"),
        ([("navigate_to", {"goal_pos": "[1, 2"})], r"skill_list\[0\]: the parameter 'goal_pos' is not JSON"),
        ([("navigate_to", {"goal_pos": "north"})], "not JSON"),
        ([("navigate_to", {"goal_pos": "[1, NaN, 0]"})], "not JSON"),
        ([("navigate_to", {"goal_pos": "[" * LONGEST_VALUE})], "not JSON"),
        ([("navigate_to", {"x" * 10**6: 1})], "no parameter '.{60}'$"),
        ([("x" * 10**6, {})], "unknown skill '.{60}';"),
        ([("navigate_to", {"goal_pos": [1]})], "expected \\[x, y, z\\]"),
        ([("navigate_to", {"goal_pos": [1, 2]})], "2 numbers"),
        ([("navigate_to", {"goal_pos": [1, 2, 0], "time_out": 3})], "did you mean 'timeout'"),
        ([("navigate_to", {"goal_pos": [1, 2, 0], "timeout": -3})], "timeout is -3"),
        ([("navigate_to", {"goal_pos": " " * (LONGEST_VALUE + 1)})], "at most 10000"),
        ([("navigate_to", {"goal_pos": [0, 0, 0]}), ("dance", {})], "unknown skill 'dance'"),
        ([("navigate_to", {"goal_pos": [0, 0, 0]})] * 101, "found 101"),
    ],
)
def test_what_makes_no_sense_is_refused(calls, told):
    with pytest.raises(UserError, match=told):
        read(*calls)


def test_a_parameter_that_is_given_twice_is_refused():
    request = skill_goal(("navigate_to", {"goal_pos": [0, 0, 0]})).skill_request
    request.skill_list[0].params *= 2
    with pytest.raises(UserError, match="given twice"):
        read_request(request)


def test_the_same_goal_asked_for_again_has_its_whole_time_again():
    first = SkillGoal(None, read(("navigate_to", {"goal_pos": [1, 2, 0], "timeout": 60})), 0.0)
    first.elapsed_s = 50.0
    (again,) = read(("navigate_to", {"goal_pos": [1, 2, 0], "timeout": 30}))
    assert first.followed_by(again).goal.timeout_s == 80.0
    (elsewhere,) = read(("navigate_to", {"goal_pos": [1, 3, 0], "timeout": 30}))
    assert first.followed_by(elsewhere) == elsewhere
