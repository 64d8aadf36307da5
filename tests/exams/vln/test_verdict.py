"""Classes of failures on hand-made drives, each with near misses that must not be taken for it."""

import math

import msgspec
import numpy as np
import pytest

from proctor.core.geometry import pose_after
from proctor.core.types import Action, Pose2, Vector3
from proctor.exams.results import EpisodeResult, Fault
from proctor.exams.vln import goal_distances
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.verdict import verdict_of

LETTERS = {"S": Action.STOP, "F": Action.FORWARD, "L": Action.LEFT, "R": Action.RIGHT}
LEFT, RIGHT, BACK = "L" * 6, "R" * 6, "L" * 12
"""Turns by 90° and by 180°."""

# 3 m ahead, then 4 m to the left.
CORNER = [(0.25 * i, 0) for i in range(13)] + [(3, 0.25 * i) for i in range(1, 17)]
GOAL = (3, 4)


def ahead(metres):
    return "F" * round(4 * metres)


def record(poses, text, *, goal=GOAL, bumps=(), fault=None, reason=None, threshold=1.0):
    """Return the record of a drive."""
    away = [math.dist((p.x, p.y), goal) for p in poses]
    success = text.endswith("S") and away[-1] < threshold
    return EpisodeResult(
        episode_id="e",
        scene_id="s",
        instruction="Go.",
        status="error" if fault else "success" if success else "failure",
        success=success,
        failure_reason=reason or (None if success else "stopped_far" if text.endswith("S") else "timeout"),
        error=fault,
        final_distance_to_goal=away[-1],
        steps=len(text),
        collision_count=len(bumps),
        trajectory=[Vector3(p.x, p.y, 0) for p in poses],
        headings=[p.yaw for p in poses],
        collision_steps=list(bumps),
        actions=[int(LETTERS[letter.upper()]) for letter in text],
        metrics={"navigation_error": away[-1], "oracle_success": float(min(away) < threshold)},
        distance="euclidean",
        seed=0,
    )


def poses_of(text, start=Pose2(0, 0, 0)):  # noqa: B008  (frozen)
    """Drive letters. A lower-case f is a bump: it does not move."""
    poses = [start]
    for letter in text:
        poses.append(poses[-1] if letter == "f" else pose_after(LETTERS[letter], poses[-1]))
    return poses


def drive(text, *, goal=GOAL, reference=CORNER, threshold=1.0, **more):
    """Return the verdict on a drive from the origin, looking along +x."""
    bumps = [step for step, letter in enumerate(text, 1) if letter == "f"]
    result = record(poses_of(text), text, goal=goal, bumps=bumps, threshold=threshold, **more)
    path = None if reference is None else [Vector3(x, y, 0) for x, y in reference]
    episode = Episode(goal_position=Vector3(*goal, 0), success_threshold=threshold, reference_path=path)
    return verdict_of(episode, result)


def parts(found):
    return found.kind, found.step, found.sentence


def test_success_says_how_near_and_how_many_bumps():
    assert parts(drive(ahead(3) + LEFT + ahead(3.5) + "S")) == (
        "success",
        33,
        "Stopped 0.5 m from the goal (straight-line distance).",
    )
    found = drive("f" + ahead(3) + LEFT + ahead(3.5) + "S")
    assert found.sentence == "Stopped 0.5 m from the goal (straight-line distance), with 1 bump."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("S", "Said STOP at the start."),
        ("", "Did nothing."),
        ("LLRRS", "Never went forward: only turned, then said STOP."),
        ("LLRR", "Never went forward: only turned, until its steps ran out."),
        ("fLfS", "Never left the start: 2 attempts to go forward led nowhere, then said STOP."),
        ("f" * 30, "Never left the start: 30 attempts to go forward led nowhere, until its steps ran out."),
    ],
)
def test_never_moved(text, sentence):
    assert parts(drive(text)) == ("never_moved", len(text), sentence)


def test_a_record_without_headings_has_no_turns():
    text = ahead(3) + RIGHT + ahead(3) + "S"
    result = record(poses_of(text), text)
    old = msgspec.structs.replace(result, headings=[])
    path = [Vector3(x, y, 0) for x, y in CORNER]
    episode = Episode(goal_position=Vector3(*GOAL, 0), success_threshold=1.0, reference_path=path)
    assert verdict_of(episode, result).kind == "wrong_first_turn"
    assert verdict_of(episode, old).kind == "stopped_far"


def test_one_step_is_a_movement():
    assert drive("FS").kind == "stopped_early"


def test_passed_the_goal_and_drove_on():
    found = drive(ahead(3) + LEFT + ahead(7) + "S")
    assert parts(found) == (
        "passed_goal",
        12 + 6 + 16,
        "Came within 0.0 m of the goal after step 34 but did not stop there; "
        "stopped 3.0 m from the goal (straight-line distance).",
    )


def test_passed_the_goal_by_less_than_the_threshold_only():
    detour = ahead(3) + LEFT + ahead(2.75)  # 1.25 m short of the goal, then back
    assert drive(detour + BACK + ahead(2) + "S").kind != "passed_goal"
    assert drive(detour + "FF" + BACK + ahead(2) + "S").kind == "passed_goal"


def test_standing_at_the_goal_without_a_stop():
    found = drive(ahead(3) + LEFT + ahead(3.75))
    assert (found.kind, found.step) == ("passed_goal", 33)
    assert found.sentence == (
        "Was 0.2 m from the goal (straight-line distance) when the steps ran out, within the threshold, "
        "but never said STOP."
    )


@pytest.mark.parametrize(
    ("text", "step", "clause"),
    [
        (ahead(3) + RIGHT + ahead(4), 13, "Turned right at step 13 where the reference goes left"),
        (ahead(6), 13, "Went straight on at step 13 where the reference goes left"),
        (ahead(1) + RIGHT + ahead(3), 5, "Turned right at step 5 where the reference goes straight on"),
        (RIGHT + ahead(3), 1, "Turned right at step 1 where the reference goes straight on"),
    ],
)
@pytest.mark.parametrize("end", ["S", ""])
def test_wrong_first_turn(text, step, clause, end):
    found = drive(text + end)
    assert (found.kind, found.step) == ("wrong_first_turn", step)
    assert found.sentence.startswith(f"{clause}; ended ")


def test_a_departure_that_did_not_get_far():
    to_the_left = [(0, 0), (-2, 2), (-4, 4)]  # behind the robot, on the left
    found = drive("FFFF" + "L" * 3 + "F" + "S", reference=to_the_left, goal=(-4, 4))
    assert found.sentence.startswith("Went straight on at step 1 where the reference goes left; ended ")


def test_driving_back_past_the_start_is_a_wrong_first_turn():
    found = drive(ahead(3) + BACK + ahead(5) + "S")
    assert found.kind == "wrong_first_turn"
    assert found.sentence.startswith("Turned back at step 37 where the reference goes straight on")


def test_a_turn_that_was_taken_back_is_not_wrong():
    returned = ahead(3) + RIGHT + ahead(2) + BACK + ahead(3.5)
    assert drive(returned + "S").kind == "stopped_early"
    assert drive(returned + "S").sentence == (
        "Stopped on the way after 4.5 of 7.0 m, 2.5 m from the goal (straight-line distance)."
    )


def test_a_shortcut_within_a_metre_is_no_wrong_turn():
    assert drive(ahead(2.25) + LEFT + ahead(1.5) + "S").kind == "stopped_early"


def test_the_second_turn_of_the_reference_is_not_the_first():
    z = [*CORNER, *((3 + 0.25 * i, 4) for i in range(1, 17))]
    found = drive(ahead(3) + LEFT + ahead(4) + LEFT + ahead(3) + "S", reference=z, goal=(7, 4))
    assert parts(found) == (
        "stopped_far",
        35,
        "Turned left at step 35 where the reference goes right; "
        "stopped 7.0 m from the goal (straight-line distance).",
    )
    assert drive(ahead(3) + RIGHT + ahead(3) + "S", reference=z, goal=(7, 4)).kind == "wrong_first_turn"


def test_a_reference_that_begins_with_a_turn():
    up = [(0, 0.25 * i) for i in range(17)]
    found = drive(ahead(3) + "S", reference=up, goal=(0, 4))
    assert found.sentence.startswith("Went straight on at step 1 where the reference goes left")


CIRCLE = ("F" + "LL") * 12
"""Once around, 25 cm at a time: 3 m of way."""


def test_looping():
    found = drive(CIRCLE * 2)
    assert found.kind == "looped"
    assert found.step <= 37
    assert "over ground it had covered before" in found.sentence
    assert drive(CIRCLE * 2 + "S", reference=None).kind == "looped"


def test_once_around_or_to_and_fro_is_no_loop():
    assert drive(CIRCLE).kind == "timeout"
    to_and_fro = ahead(2.75) + BACK + ahead(2.75) + "S"
    assert drive(to_and_fro).kind == "stopped_far"


def test_the_same_way_three_times_is_a_loop():
    assert drive(ahead(2.5) + BACK + ahead(2.5) + BACK + ahead(2.5) + "S").kind == "looped"


def test_turning_on_the_spot_is_no_loop():
    assert drive("FF" + "L" * 100).kind == "timeout"


@pytest.mark.parametrize("end", ["S", ""])
def test_stuck(end):
    found = drive(ahead(2) + "f" * 10 + end)
    assert (found.kind, found.step) == ("stuck", 9)
    assert found.sentence.startswith(
        "Got stuck at step 9: 10 of its last 12 attempts to go forward were bumps; ended 4."
    )


def test_nearly_stuck():
    assert drive("FFFF" + "f" * 7 + "S").kind == "stopped_early"  # 9 steps within half a metre
    assert drive("FFFF" + "f" * 8 + "S").kind == "stuck"
    assert drive("FFFF" + "f" * 20 + LEFT + ahead(0.75) + "S").kind != "stuck"  # got loose
    assert drive("FFFF" + "LR" * 10 + "S").kind == "stopped_early"  # stood still without a bump


def test_what_began_first_is_named():
    assert drive(ahead(3) + RIGHT + ahead(3) + "f" * 20).kind == "wrong_first_turn"
    assert drive(CIRCLE * 3 + ahead(1) + "f" * 20).kind == "looped"
    assert drive(ahead(1) + "f" * 20 + "S").kind == "stuck"


def test_stopped_early_needs_the_path_nearby():
    assert parts(drive(ahead(3) + LEFT + ahead(1) + "S")) == (
        "stopped_early",
        23,
        "Stopped on the way after 4.0 of 7.0 m, 3.0 m from the goal (straight-line distance).",
    )


def test_stopped_after_a_retreat_is_not_early():
    found = drive(ahead(3) + LEFT + ahead(2) + BACK + ahead(1.25) + "S")
    assert (found.kind, found.step) == ("stopped_far", 26)
    assert found.sentence == (
        "Was 2.0 m from the goal after step 26 and went away from it; "
        "stopped 3.2 m from the goal (straight-line distance)."
    )


def test_timeout_on_the_way_and_off_it():
    assert parts(drive(ahead(3) + LEFT + ahead(1))) == (
        "timeout",
        22,
        "Ran out of steps after 22, 3.0 m from the goal (straight-line distance).",
    )
    z = [*CORNER, *((3 + 0.25 * i, 4) for i in range(1, 17))]
    found = drive(ahead(3) + LEFT + ahead(7), reference=z, goal=(7, 4))
    assert (found.kind, found.step) == ("timeout", 35)
    assert found.sentence.startswith(
        "Went straight on at step 35 where the reference goes right; ran out of steps"
    )


def test_an_episode_that_a_collision_ended():
    found = drive(ahead(1) + "f", reason="collision")
    assert found.kind == "collided"
    assert found.sentence.startswith("Bumped into something at step 5, which ended the episode")


def test_without_a_reference_path():
    assert drive(ahead(3) + LEFT + ahead(1) + "S", reference=None).kind == "stopped_early"
    assert drive(BACK + ahead(3) + "S", reference=None).kind == "stopped_far"
    assert drive(ahead(3) + LEFT + ahead(6) + "S", reference=None).kind == "passed_goal"
    assert drive(ahead(3) + RIGHT + ahead(3), reference=None).kind == "timeout"
    assert drive(ahead(2) + "f" * 12, reference=None).kind == "stuck"


def test_a_reference_of_one_point_is_none():
    assert drive(ahead(1) + "S", reference=[(0, 0)]).kind == "stopped_early"


@pytest.mark.parametrize("side", ["agent", "evaluator"])
def test_faults_come_before_everything(side):
    fault = Fault(side=side, kind="invalid_action", message="Traceback\nValueError: expected an integer")
    found = drive("FF", fault=fault)
    assert (found.kind, found.step) == (f"{side}_fault", 2)
    assert found.sentence.endswith("ValueError: expected an integer")
    assert ("step 3" in found.sentence) == (side == "agent")


def test_without_the_dataset_there_is_still_a_sentence():
    text = ahead(1) + "S"
    result = record(poses_of(text), text)
    text = "Stopped 4.5 m from the goal (straight-line distance)."
    assert parts(verdict_of(None, result)) == ("stopped_far", 5, text)


def test_the_way_to_the_goal_is_searched_only_where_the_sentence_needs_it(monkeypatch):
    monkeypatch.setattr(goal_distances, "goal_distances", None)
    for text in (ahead(3) + LEFT + ahead(3.5) + "S", "LLS", ahead(3) + RIGHT + ahead(4) + "S", CIRCLE * 2):
        drive(text)
    drive(ahead(2) + "f" * 10)
    with pytest.raises(TypeError):
        drive(ahead(1) + "S")


def test_a_path_turned_and_moved_in_the_world_gets_the_same_class():
    turn, shift = math.radians(77), np.array([40.0, -7.0])
    frame = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    goal = frame @ GOAL + shift
    reference = [Vector3(*(frame @ point + shift), 0) for point in CORNER]
    episode = Episode(goal_position=Vector3(*goal, 0), reference_path=reference)
    for text in (ahead(3) + RIGHT + ahead(4) + "S", CIRCLE * 2, ahead(3) + LEFT + ahead(1) + "S"):
        result = record(poses_of(text, Pose2(*shift, turn)), text, goal=goal)
        assert parts(verdict_of(episode, result))[:2] == parts(drive(text))[:2]


@pytest.mark.parametrize("reason", ["no_stop", "collision"])  # files of earlier versions say collision
def test_a_prediction_without_stop_neither_collided_nor_ran_out_of_steps(reason):
    found = drive(ahead(3) + LEFT + ahead(1), reason=reason)
    assert parts(found) == (
        "no_stop",
        22,
        "Ended without STOP after step 22, 3.0 m from the goal (straight-line distance).",
    )
    found = drive(ahead(3) + LEFT + ahead(4), reason=reason)
    assert found.sentence == (
        "Was 0.0 m from the goal (straight-line distance) at the end, within the threshold, "
        "but never said STOP."
    )
    assert drive("LL", reason=reason).sentence == "Never went forward: only turned, and never said STOP."
