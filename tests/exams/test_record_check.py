"""Numbers that no exam can have measured are found in every field, and named."""

import math

import msgspec
import pytest
from msgspec.structs import replace

from proctor.core.types import Vector3
from proctor.exams.record_check import LARGEST_NUMBER, record_problem
from proctor.exams.results import EpisodeResult, Thinking, Timing
from proctor.exams.vln.exam import VlnExam

TOO_LARGE = 2 * LARGEST_NUMBER


class Hand(msgspec.Struct):
    at: list[Vector3]
    forces: dict[str, tuple[float, ...]]


class HandResult(EpisodeResult, frozen=True, kw_only=True):
    """Of an exam with a field of its own."""

    hand: Hand


GOOD = HandResult(
    episode_id="e",
    scene_id="s",
    instruction="Go.",
    status="failure",
    success=False,
    failure_reason="timeout",
    error=None,
    final_distance_to_goal=1.0,
    steps=2,
    collision_count=0,
    trajectory=[Vector3(0, 0, 0), Vector3(1, 0, 0), Vector3(2, 0, 0)],
    headings=[0.0, 0.1, 0.2],
    actions=[1, 1],
    metrics={"success": 0.0, "spl": 0.0, "path_length": 2.0},
    seed=0,
    timing=Timing(env_s=1.0, policy_s=1.0, evaluator_s=1.0, act_s=[0.1, 0.2], decision_s=[0.1], cpu_s=2.0),
    thinking=Thinking(charged_s=[0.5, 0.5], simulated_s=3.0),
    hand=Hand(at=[Vector3(0, 0, 1)], forces={"left": (0.0, 1.0)}),
)


def with_number(number):
    """Return records that have a number in one place, by the name of the place."""
    timing, thinking = GOOD.timing, GOOD.thinking
    return {
        "final_distance_to_goal": replace(GOOD, final_distance_to_goal=number),
        "collision_count": replace(GOOD, collision_count=number),
        "metrics.path_length": replace(GOOD, metrics={**GOOD.metrics, "path_length": number}),
        "trajectory[1].z": replace(
            GOOD, trajectory=[Vector3(0, 0, 0), Vector3(1, 0, number), Vector3(2, number, 0)]
        ),
        "headings[2]": replace(GOOD, headings=[0.0, 0.0, number]),
        "timing.act_s[1]": replace(GOOD, timing=replace(timing, act_s=[0.1, number])),
        "timing.decision_s[0]": replace(GOOD, timing=replace(timing, decision_s=[number])),
        "timing.cpu_s": replace(GOOD, timing=replace(timing, cpu_s=number)),
        "thinking.charged_s[1]": replace(GOOD, thinking=replace(thinking, charged_s=[0.0, number])),
        "thinking.simulated_s": replace(GOOD, thinking=replace(thinking, simulated_s=number)),
        "hand.at[0].y": replace(GOOD, hand=Hand(at=[Vector3(0, number, 1)], forces={})),
        "hand.forces.left[1]": replace(GOOD, hand=Hand(at=[], forces={"left": (0.0, number)})),
    }


def test_a_record_that_an_exam_can_have_written_has_no_problem():
    assert record_problem(VlnExam, GOOD) is None
    at_the_limit = replace(GOOD, headings=[LARGEST_NUMBER, -LARGEST_NUMBER, 0.0])
    assert record_problem(VlnExam, at_the_limit) is None


@pytest.mark.parametrize("place", list(with_number(0.0)))
@pytest.mark.parametrize("number", [TOO_LARGE, -TOO_LARGE, math.inf, -math.inf, math.nan])
def test_a_number_that_cannot_be_is_found_and_named(place, number):
    field, text = record_problem(VlnExam, with_number(number)[place])
    assert field == place
    assert text == f"expected a number within ±1e+09, found {number:g}"


def test_of_two_infinite_numbers_the_first_is_named():
    found = record_problem(VlnExam, replace(GOOD, headings=[0.0, math.inf, -math.inf]))
    assert found[0] == "headings[1]"


@pytest.mark.parametrize("score", [-0.1, 1.1])
def test_a_score_is_from_0_to_1(score):
    metrics = {**GOOD.metrics, "spl": score}
    found = record_problem(VlnExam, replace(GOOD, metrics=metrics))
    assert found == ("metrics.spl", f"expected a number from 0 to 1, found {score:g}")
