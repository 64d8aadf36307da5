import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pick_place_states import ATTEMPT, HELD, START, TARGET, NoTask, bare, episode, measure, started

from proctor.core.registry import BUILT_IN, load, names
from proctor.core.types import Vector3
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.metrics import (
    ClampedCommands,
    CompletionRate,
    Drops,
    FinalDistance,
    FinalSuccess,
    HandPath,
    ObjectCollisions,
    ObjectDisplacement,
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    Placed,
    Reached,
    SelfCollisions,
    TableCollisions,
    TimeToSuccess,
)
from proctor.exams.pick_place.stages import grasp_progress, lift_progress, place_progress, reach_progress

ALL = {name: load("manipulation_metric", name) for name in BUILT_IN["manipulation_metric"]}
RATES = {"success", "success_any_step", "reached", "grasped", "lifted", "placed"}


# The registry


def test_the_names_are_those_of_the_results():
    assert list(names("manipulation_metric")) == [
        *("success", "success_any_step", "completion_rate", "trajectory_similarity", "ee_similarity"),
        *("reached", "grasped", "lifted", "placed", "time_to_success_s", "drops", "table_collisions"),
        *("object_collisions", "self_collisions", "hand_path_m", "clamped_commands"),
        *("object_displacement_m", "final_distance_m", "steps"),
    ]


def test_rates_are_what_is_0_or_1():
    assert {name for name, metric_class in ALL.items() if metric_class.is_rate} == RATES


@pytest.mark.parametrize("name", ALL)
def test_a_metric_starts_anew_with_every_episode_and_ends_in_json(name):
    reference = {"qpos_sequence": [[0.0] * 7], "ee_pose_sequence": [[0, 0, 0, 1, 0, 0, 0]]}
    once, twice = started(ALL[name], episode(reference=reference)), started(ALL[name])
    full = {
        "touched": {"furniture": True, "objects": True, "self": True},
        "clamped": ["lift"],
        "success": True,
        "time_s": 1.0,
        "phase": "place",
        "qpos": np.ones(10),
        "ee_pose": np.ones(7),
    }
    for state in ATTEMPT:
        twice.update({**state, **full})
    twice.reset(episode(reference=reference), NoTask())
    for state in ATTEMPT[:2]:
        once.update(state)
        twice.update(state)
    np.testing.assert_equal(once.get_metric(), twice.get_metric())
    assert type(once.get_metric()) is float
    json.dumps(once.get_metric())


@pytest.mark.parametrize("name", ALL)
def test_without_a_step_a_metric_describes_the_start(name):
    value = measure(ALL[name], [])
    if name in ("trajectory_similarity", "ee_similarity", "time_to_success_s"):
        assert math.isnan(value)
    elif name == "final_distance_m":
        assert value == pytest.approx(math.dist(START, TARGET))
    else:
        assert value == 0.0


# Success and stages


def test_success_has_the_documented_signature():
    metric = PickPlaceSuccess(lift_height=0.2, place_tolerance=0.03)
    assert (metric.lift_height, metric.place_tolerance) == (0.2, 0.03)
    assert PickPlaceSuccess(0.2, 0.03).place_tolerance == 0.03
    metric.reset(episode(lift_height=0.15, place_tolerance=0.04), NoTask())
    assert (metric.lift_height, metric.place_tolerance) == (0.15, 0.04)
    assert list(metric.initial_object_pos) == START
    assert list(metric.target_location) == TARGET
    flags = (metric.object_grasped, metric.object_lifted, metric.object_placed, metric.success)
    assert flags == (False, False, False, False)


def test_success_goes_stage_by_stage_on_bare_states():
    metric = started(PickPlaceSuccess)
    seen = []
    for state in ATTEMPT:
        metric.update(state)
        seen.append((metric.object_grasped, metric.object_lifted, metric.object_placed, metric.get_metric()))
    assert seen == [
        (False, False, False, 0.0),
        (True, False, False, 0.0),
        (True, True, False, 0.0),
        (True, True, False, 0.0),
        (True, True, True, 1.0),
    ]


def test_no_stage_can_be_skipped():
    assert measure(PickPlaceSuccess, [bare(TARGET)]) == 0.0
    assert measure(PickPlaceSuccess, [bare(**HELD), bare(TARGET, **HELD)]) == 0.0
    assert measure(PickPlaceSuccess, [bare((0.7, 0.2, 0.95)), bare(TARGET)]) == 0.0


def test_a_gripper_must_be_closed_for_a_grasp():
    wide = [bare(**{**HELD, "gripper": 0.03}), *ATTEMPT[2:]]
    for state in wide:
        state["gripper_state"] = 0.03
    assert measure(PickPlaceSuccess, wide) == 0.0
    assert measure(PickPlaceSuccess, [{**state, "gripper_closed_below": 0.035} for state in wide]) == 1.0
    assert measure(PickPlaceSuccess, [{**state, "gripper_closed_below": 0.03} for state in wide]) == 0.0


def test_lifting_and_placing_are_strict():
    high = [bare(**HELD), bare((0.5, 0.0, 2.0), **HELD)]
    for dx, expected in ((0.25, 0.0), (0.2499, 1.0)):
        placed = [*high, bare((0.5 + dx, 0.0, 0.8))]
        assert (
            measure(PickPlaceSuccess, placed, episode(target=[0.5, 0, 0.8], place_tolerance=0.25)) == expected
        )
    for dz, expected in ((0.25, 0.0), (0.2501, 1.0)):
        lifted = [bare(**HELD), bare((0.5, 0.0, 0.8 + dz), **HELD), bare(TARGET)]
        assert measure(ALL["lifted"], lifted, episode(lift_height=0.25)) == expected


def test_what_the_environment_knows_better_decides():
    told = [{**state, "object_in_target": False} for state in ATTEMPT]
    assert measure(PickPlaceSuccess, told) == 0.0
    far = [*ATTEMPT[:4], {**bare((3, 3, 0.8)), "object_in_target": True}]
    assert measure(PickPlaceSuccess, far) == 1.0
    assert measure(PickPlaceSuccess, [{**state, "initial_object_z": 0.9} for state in ATTEMPT]) == 0.0


def test_without_a_target_lifting_is_the_task():
    lift_only = episode(target=None)
    assert measure(PickPlaceSuccess, ATTEMPT[:3], lift_only) == 1.0
    assert measure(PickPlaceSuccess, ATTEMPT[:2], lift_only) == 0.0
    assert math.isnan(measure(Placed, ATTEMPT, lift_only))
    assert math.isnan(measure(FinalDistance, ATTEMPT, lift_only))


def test_where_the_object_stands_may_be_left_to_the_scene():
    an_episode = PickAndPlaceEpisode(
        "e",
        task_goal={"target_object": {"name": "cup"}, "target_location": {"position": TARGET}},
        scene_objects=[{"name": "bowl", "position": [9, 9, 9]}, {"name": "cup", "position": START}],
    )
    assert measure(PickPlaceSuccess, ATTEMPT, an_episode) == 1.0
    assert measure(ObjectDisplacement, ATTEMPT, an_episode) == pytest.approx(math.hypot(0.2, 0.21))


def test_stages_are_told_one_by_one():
    names_in_order = ("reached", "grasped", "lifted", "placed")
    values = [[measure(ALL[name], ATTEMPT[:n]) for name in names_in_order] for n in range(6)]
    assert values == [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ]


def test_reached_goes_by_phase_and_else_by_distance():
    assert measure(Reached, [bare(ee=(0.5, 0.0, 0.84))]) == 1.0
    assert measure(Reached, [bare(ee=(0.5, 0.0, 0.84), phase="reach")]) == 0.0
    assert measure(Reached, [bare(phase="grasp"), bare(phase="reach")]) == 1.0
    assert measure(Reached, [bare(ee=(0.5, 0.0, 0.84), object_center=[0.5, 0.0, 0.9])]) == 0.0


def test_the_headline_is_the_last_step():
    assert measure(FinalSuccess, [bare(success=True)]) == 1.0
    assert measure(FinalSuccess, [bare(success=True), bare(success=False)]) == 0.0
    assert measure(FinalSuccess, [bare()]) == 0.0


def test_time_to_success_is_the_first_one():
    states = [bare(success=s, time_s=t) for s, t in ((False, 0.1), (True, 0.2), (True, 0.3))]
    assert measure(TimeToSuccess, states) == 0.2
    assert math.isnan(measure(TimeToSuccess, states[:1]))


# Completion


def test_progress_is_the_documented_one_on_bare_states():
    metric = started(PickPlaceCompletionRate)
    assert (metric.phase, metric.progress) == ("reach", 0.0)
    cases = [
        (bare(ee=(0.5, 0.0, 1.0), phase="reach"), 0.6),
        (bare(ee=(0.5, 0.0, 2.0), phase="reach"), 0.0),
        (bare(gripper=0.03, phase="grasp"), 0.25),
        (bare(gripper=0.05, phase="grasp"), 0.0),
        (bare((0.5, 0, 0.84), phase="lift", initial_object_z=0.8, target_lift_height=0.1), 0.4),
        (bare((0.5, 0, 0.7), phase="lift", initial_object_z=0.8, target_lift_height=0.1), 0.0),
        (bare((0.5, 0, 2.0), phase="lift", initial_object_z=0.8, target_lift_height=0.1), 1.0),
        (bare((0.7, 0.24, 0.8), phase="place", target_position=TARGET, place_tolerance=0.05), 0.2),
        (bare((0.7, 0.3, 0.8), phase="place", target_position=TARGET, place_tolerance=0.05), 0.0),
    ]
    for state, expected in cases:
        metric.update(state)
        assert metric.get_metric() == pytest.approx(expected, abs=1e-12)
        assert metric.progress == metric.get_metric()
        assert metric.phase == state["phase"]


def test_what_a_state_does_not_say_comes_from_the_episode():
    an_episode = episode(lift_height=0.2, place_tolerance=0.1)
    assert measure(
        PickPlaceCompletionRate, [bare((0.5, 0, 0.85), phase="lift")], an_episode
    ) == pytest.approx(0.25)
    assert measure(
        PickPlaceCompletionRate, [bare((0.7, 0.25, 0.8), phase="place")], an_episode
    ) == pytest.approx(0.5)
    assert measure(PickPlaceCompletionRate, [bare()]) == pytest.approx(0.8)


def test_a_hand_that_closed_on_a_wide_object_has_closed():
    state = bare(gripper=0.03, gripper_closed_below=0.03, phase="grasp")
    assert measure(PickPlaceCompletionRate, [state]) == pytest.approx(1.0)


def test_inside_of_a_container_counts_as_there():
    state = bare(phase="place", target_distance=0.0, target_position=TARGET)
    assert measure(PickPlaceCompletionRate, [state]) == 1.0


def test_completion_counts_finished_phases_and_never_decreases():
    states = [
        (bare(ee=(0.5, 0.0, 1.05), phase="reach"), 0.125),
        (bare(gripper=0.02, phase="grasp"), 0.375),
        (bare((0.5, 0.0, 0.85), phase="lift"), 0.625),
        (bare((0.5, 0.0, 0.82), phase="lift"), 0.625),
        (bare((0.6, 0.1, 0.8), ee=(3, 0, 0), phase="reach"), 0.625),
        (bare((0.7, 0.225, 0.8), phase="place"), 0.875),
        (bare((0.7, 0.225, 0.8), phase="place", success=True), 1.0),
        (bare(phase="reach"), 1.0),
    ]
    whole, thin = started(PickPlaceCompletionRate), started(CompletionRate)
    for state, expected in states:
        whole.update(state)
        thin.update(state)
        assert whole.completion_rate == pytest.approx(expected)
        assert thin.get_metric() == whole.completion_rate


def test_without_a_target_a_lifted_object_completes_the_task():
    assert measure(CompletionRate, [bare(phase="place", target_position=None)], episode(target=None)) == 1.0


def test_an_unknown_phase_changes_nothing():
    metric = started(PickPlaceCompletionRate)
    metric.update(bare(ee=(0.5, 0.0, 1.0), phase="reach"))
    metric.update(bare(phase="rest"))
    assert (metric.phase, metric.progress) == ("reach", pytest.approx(0.6))


anything = st.floats(allow_nan=True, allow_infinity=True)


@given(anything, anything)
def test_progress_stays_between_0_and_1(value, whole):
    for progress in (
        reach_progress(value),
        grasp_progress(value, closed_below_m=whole),
        lift_progress(value, lift_height_m=whole),
        place_progress(value, tolerance_m=whole),
    ):
        assert 0.0 <= progress <= 1.0


def test_what_is_no_number_is_no_progress():
    nan = math.nan
    assert reach_progress(nan) == grasp_progress(nan) == 0.0
    assert lift_progress(nan, lift_height_m=0.1) == place_progress(nan, tolerance_m=0.05) == 0.0


# Counts and lengths


def heights(*steps):
    return [
        bare((0.5, 0.0, z), grasped=grasped, object_supported=supported) for z, grasped, supported in steps
    ]


@pytest.mark.parametrize(
    ("steps", "drops"),
    [
        ([(0.8, True, True), (1.0, True, False), (0.85, False, False), (0.8, False, True)], 1),
        ([(1.0, True, False), (0.97, False, False), (0.93, False, True)], 1),
        ([(1.0, True, False), (0.951, False, True)], 0),
        ([(1.0, True, False), (0.9, False, True)], 1),
        ([(0.8, True, True), (0.8, False, True), (0.0, False, True)], 0),  # put down, pushed off later
        ([(1.0, True, False), (1.0, False, False), (1.0, True, False), (0.9, True, False)], 0),
        ([(1.0, True, False), (0.9, False, False), (0.8, False, False), (0.0, False, True)], 1),
        (
            [
                (1.0, True, False),
                (0.9, False, True),
                (0.9, True, True),
                (1.1, True, False),
                (0.8, False, True),
            ],
            2,
        ),
        ([(1.0, False, False), (0.8, False, True)], 0),
        ([(1.0, True, False), (0.7, True, False), (0.69, False, True)], 0),  # carried down
    ],
)
def test_a_drop_is_a_lost_hold_and_a_fall_of_more_than_5_cm(steps, drops):
    assert measure(Drops, heights(*steps)) == drops


def test_collisions_are_counted_by_what_was_touched():
    def touched(*what):
        return bare(touched={name: name in what for name in ("furniture", "objects", "self")})

    states = [touched("furniture"), touched("furniture", "objects"), touched(), touched("furniture", "self")]
    counts = [measure(kind, states) for kind in (TableCollisions, ObjectCollisions, SelfCollisions)]
    assert counts == [3.0, 1.0, 1.0]


def test_lengths_and_counts():
    states = [
        bare(ee=(0, 0, 0), clamped=["lift"]),
        bare(ee=(3, 4, 0), clamped=[]),
        bare(ee=(3, 4, 1), clamped=["arm"]),
    ]
    assert measure(HandPath, states) == 6.0
    assert measure(ClampedCommands, states) == 2.0
    assert measure(ALL["steps"], states) == 3.0
    assert measure(ObjectDisplacement, ATTEMPT) == pytest.approx(math.hypot(0.2, 0.21))
    assert measure(FinalDistance, ATTEMPT) == pytest.approx(0.01)
    assert measure(FinalDistance, [bare(target_distance=0.25)]) == 0.25


@pytest.mark.parametrize("name", ALL)
def test_states_may_hold_arrays_and_vectors(name):
    reference = {"qpos_sequence": [[0.1] * 7], "ee_pose_sequence": [[0, 0, 0.1, 1, 0, 0, 0]]}
    lists = bare(target_position=TARGET, phase="place", qpos=[0.0] * 10, ee_pose=[0.0, 0, 0, 1, 0, 0, 0])
    keys = ("object_position", "ee_position", "target_position", "qpos", "ee_pose")
    arrays = {**lists, **{key: np.array(lists[key]) for key in keys}, "position": Vector3(0.0, 0.0, 0.0)}
    found = [measure(ALL[name], [state], episode(reference=reference)) for state in (lists, arrays)]
    assert found[0] == pytest.approx(found[1], nan_ok=True)
