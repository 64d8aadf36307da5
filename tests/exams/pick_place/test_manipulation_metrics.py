import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pick_place_states import (
    ATTEMPT,
    HELD,
    SCORES,
    START,
    TARGET,
    NoTask,
    bare,
    episode,
    measure,
    score,
    started,
    trace_of,
)
from random_attempts import attempt

from proctor.core.errors import SimulationError
from proctor.core.types import Vector3
from proctor.exams.pick_place.documented_metrics import (
    PickPlaceCompletionRate,
    PickPlaceSuccess,
    PickPlaceTrajectorySimilarity,
)
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.exams.pick_place.exam import PickPlaceExam
from proctor.exams.pick_place.metrics import METRICS
from proctor.exams.pick_place.results import record_of
from proctor.exams.pick_place.stages import TaskCriteria, phase_progress
from proctor.exams.pick_place.state import PHASES, PickPlaceState, read_state
from proctor.exams.step_metrics import TaskOfTrace, metric_of_class

DOCUMENTED = (PickPlaceSuccess, PickPlaceCompletionRate, PickPlaceTrajectorySimilarity)
RATES = {"success", "success_any_step", "reached", "grasped", "lifted", "placed"}
RECORDED = json.loads((Path(__file__).parents[2] / "data" / "random_attempts.json").read_text())
"""What the step-by-step metrics of version 0.1.0 gave for `random_attempts`."""


# All metrics


def test_the_names_are_those_of_the_results():
    assert list(SCORES) == [
        *("success", "success_any_step", "completion_rate", "trajectory_similarity", "ee_similarity"),
        *("reached", "grasped", "lifted", "placed", "time_to_success_s", "drops", "table_collisions"),
        *("object_collisions", "self_collisions", "hand_path_m", "clamped_commands"),
        *("object_displacement_m", "final_distance_m", "steps"),
    ]


def test_rates_are_what_is_0_or_1():
    assert {metric.name for metric in METRICS if metric.is_rate} == RATES


@pytest.mark.parametrize("seed", range(len(RECORDED)))
def test_scores_stages_and_keypoints_are_those_of_the_version_before(seed):
    fields, infos = attempt(seed)
    an_episode, recorded = PickAndPlaceEpisode(**fields), RECORDED[seed]
    trace = trace_of(infos)
    values = {name: value(an_episode, trace, None) for name, value in SCORES.items()}
    assert {name: value for name, value in values.items() if math.isfinite(value)} == pytest.approx(
        recorded["metrics"], rel=1e-12
    )
    assert record_of(an_episode, trace)["pick_place"].stages == recorded["stages"]
    success, completion, similarity = (started(metric_class, an_episode) for metric_class in DOCUMENTED)
    for info in infos:
        for metric in (success, completion, similarity):
            metric.update(info)
    assert similarity.keypoints == recorded["keypoints"]
    np.testing.assert_equal(similarity.get_metric(), values["trajectory_similarity"])
    assert (success.get_metric(), completion.completion_rate) == (
        values["success_any_step"],
        values["completion_rate"],
    )


@pytest.mark.parametrize("metric_class", DOCUMENTED)
def test_a_documented_metric_starts_anew_with_every_episode_and_ends_in_json(metric_class):
    reference = {"qpos_sequence": [[0.0] * 7], "ee_pose_sequence": [[0, 0, 0, 1, 0, 0, 0]]}
    once, twice = started(metric_class, episode(reference=reference)), started(metric_class)
    full = {"success": True, "time_s": 1.0, "phase": "place", "qpos": np.ones(10), "ee_pose": np.ones(7)}
    for state in ATTEMPT:
        twice.update({**state, **full})
    twice.reset(episode(reference=reference), NoTask())
    for state in ATTEMPT[:2]:
        once.update(state)
        twice.update(state)
    np.testing.assert_equal(once.get_metric(), twice.get_metric())
    assert type(once.get_metric()) is float
    json.dumps(once.get_metric())


@pytest.mark.parametrize("name", SCORES)
def test_without_a_step_a_metric_describes_the_start(name):
    value = score(name, [])
    assert type(value) is float
    if name in ("trajectory_similarity", "ee_similarity", "time_to_success_s"):
        assert math.isnan(value)
    elif name == "final_distance_m":
        assert value == pytest.approx(math.dist(START, TARGET))
    else:
        assert value == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_a_state_can_be_written_and_read_back(seed):
    for state in trace_of(attempt(seed)[1]).states:
        stored = msgspec.msgpack.decode(msgspec.msgpack.encode(state))
        assert msgspec.convert(stored, PickPlaceState) == state


def test_a_state_keeps_what_else_an_env_tells_if_it_is_a_number_or_a_word():
    told = attempt(1)[1][0] | {
        "weight": np.float64(0.5),
        "mood": "good",
        "picture": np.ones(4),
        "bad": math.nan,
    }
    trace = trace_of([told])
    assert trace.states[0].more == {"weight": 0.5, "mood": "good"}
    info = PickPlaceExam.as_info(episode(), trace, 0)
    assert (info["weight"], info["step"], info["collision_count"]) == (0.5, 0, int(told["collision"]))
    assert info["position"] == Vector3(*told["position"])
    assert info["object_position"] == tuple(told["object_position"])


@pytest.mark.parametrize("seed", range(8))
def test_a_documented_metric_can_be_computed_over_a_trace(seed):
    fields, infos = attempt(seed)
    an_episode, trace, exam = PickAndPlaceEpisode(**fields), trace_of(infos), PickPlaceExam()
    names = {PickPlaceSuccess: "success_any_step", PickPlaceTrajectorySimilarity: "trajectory_similarity"}
    for metric_class, name in names.items():
        metric = metric_of_class("documented", metric_class, exam.as_info)
        value = metric.score(an_episode, trace, exam.distance(an_episode))
        np.testing.assert_equal(value, SCORES[name](an_episode, trace, None))


def test_metrics_of_others_may_ask_for_distances_and_the_tolerance():
    task = TaskOfTrace(PickPlaceExam().distance(episode(place_tolerance=0.04)))
    assert task.success_threshold_m(None) == 0.04
    assert task.distance_m(Vector3(0, 0, 0), Vector3(0, 3, 4)) == 5.0
    assert math.isnan(task.shortest_path_m(None))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"phase": "rest"}, r"info\['phase'\]: expected one of .*'reach'.*, found 'rest'"),
        ({"gripper_state": math.nan}, r"info\['gripper_state'\]: expected a finite number, found nan"),
        ({"object_position": [0.0, 0.0]}, r"info\['object_position'\]: expected finite x, y and z"),
        ({"object_grasped": None}, r"info\['object_grasped'\]: expected true or false, found None"),
        ({"target_distance": math.inf}, r"info\['target_distance'\]: expected a finite number"),
        ({"qpos": [0.0, math.nan]}, r"info\['qpos'\]: expected finite numbers"),
        ({"qpos": "joints"}, r"info\['qpos'\]: expected finite numbers"),
        ({"touched": True}, r"info\['touched'\]: expected a dict of flags, found True"),
        ({"clamped": "lift"}, r"info\['clamped'\]: expected a list of names, found 'lift'"),
    ],
)
def test_what_cannot_be_measured_is_the_evaluators_fault(wrong, said):
    with pytest.raises(SimulationError, match=said):
        read_state(attempt(1)[1][0] | wrong)


@pytest.mark.parametrize(
    "key", ["phase", "yaw", "ee_position", "target_distance", "target_position", "collision"]
)
def test_what_the_exam_measures_must_be_told(key):
    told = attempt(1)[1][0]
    del told[key]
    with pytest.raises(SimulationError, match=key):
        read_state(told)


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
        assert score("lifted", lifted, episode(lift_height=0.25)) == expected


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
    assert math.isnan(score("placed", ATTEMPT, lift_only))
    assert math.isnan(score("final_distance_m", ATTEMPT, lift_only))


def test_where_the_object_stands_may_be_left_to_the_scene():
    an_episode = PickAndPlaceEpisode(
        "e",
        task_goal={"target_object": {"name": "cup"}, "target_location": {"position": TARGET}},
        scene_objects=[{"name": "bowl", "position": [9, 9, 9]}, {"name": "cup", "position": START}],
    )
    assert measure(PickPlaceSuccess, ATTEMPT, an_episode) == 1.0
    assert score("object_displacement_m", ATTEMPT, an_episode) == pytest.approx(math.hypot(0.2, 0.21))


def test_stages_are_told_one_by_one():
    names_in_order = ("reached", "grasped", "lifted", "placed")
    values = [[score(name, ATTEMPT[:n]) for name in names_in_order] for n in range(6)]
    assert values == [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ]


def test_reached_goes_by_phase():
    assert score("reached", [bare(ee=(0.5, 0.0, 0.84), phase="reach")]) == 0.0
    assert score("reached", [bare(phase="grasp"), bare(phase="reach")]) == 1.0


def test_where_a_state_tells_no_phase_reached_goes_by_distance():
    def is_seen(**state):
        metric = started(PickPlaceTrajectorySimilarity)
        metric.update(bare(qpos=[0.0] * 10, **state))
        return metric.keypoints["grasp_start"] == 0

    assert is_seen(ee=(0.5, 0.0, 0.84))
    assert is_seen(grasped=True)
    assert is_seen(phase="grasp")
    assert not is_seen(ee=(0.5, 0.0, 0.84), phase="reach")
    assert not is_seen(ee=(0.5, 0.0, 0.84), object_center=[0.5, 0.0, 0.9])


def test_the_headline_is_the_last_step():
    assert score("success", [bare(success=True)]) == 1.0
    assert score("success", [bare(success=True), bare(success=False)]) == 0.0
    assert score("success", [bare()]) == 0.0


def test_time_to_success_is_the_first_one():
    states = [bare(success=s, time_s=t) for s, t in ((False, 0.1), (True, 0.2), (True, 0.3))]
    assert score("time_to_success_s", states) == 0.2
    assert math.isnan(score("time_to_success_s", states[:1]))


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
    metric = started(PickPlaceCompletionRate)
    for index, (state, expected) in enumerate(states, 1):
        metric.update(state)
        assert metric.completion_rate == pytest.approx(expected)
        assert score("completion_rate", [state for state, _ in states[:index]]) == metric.completion_rate


def test_without_a_target_a_lifted_object_completes_the_task():
    assert score("completion_rate", [bare(phase="place", target_position=None)], episode(target=None)) == 1.0


def test_an_unknown_phase_changes_nothing():
    metric = started(PickPlaceCompletionRate)
    metric.update(bare(ee=(0.5, 0.0, 1.0), phase="reach"))
    metric.update(bare(phase="rest"))
    assert (metric.phase, metric.progress) == ("reach", pytest.approx(0.6))


anything = st.floats(allow_nan=True, allow_infinity=True)


def progress_of(value, whole):
    """The progress in each phase, where what is measured and what it is measured by are these."""
    for phase in PHASES:
        state = PickPlaceState(
            **{"position": (0.0, 0.0, 0.0), "yaw": 0.0, "object_grasped": False, "collision": False},
            **{"ee_position": (value, 0.0, 0.0), "object_position": (0.0, 0.0, value), "phase": phase},
            **{"gripper_state": value, "gripper_closed_below": whole, "target_lift_height": whole},
            **{"target_distance": value, "place_tolerance": whole},
        )
        yield phase_progress(state, TaskCriteria())


@given(anything, anything)
def test_progress_stays_between_0_and_1(value, whole):
    assert all(0.0 <= progress <= 1.0 for progress in progress_of(value, whole))


def test_what_is_no_number_is_no_progress():
    assert list(progress_of(math.nan, 0.03)) == [0.0, 0.0, 0.0, 0.0]


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
    assert score("drops", heights(*steps)) == drops


def test_collisions_are_counted_by_what_was_touched():
    def touched(*what):
        return bare(touched={name: name in what for name in ("furniture", "objects", "self")})

    states = [touched("furniture"), touched("furniture", "objects"), touched(), touched("furniture", "self")]
    counts = [score(f"{name}_collisions", states) for name in ("table", "object", "self")]
    assert counts == [3.0, 1.0, 1.0]


def test_lengths_and_counts():
    states = [
        bare(ee=(0, 0, 0), clamped=["lift"]),
        bare(ee=(3, 4, 0), clamped=[]),
        bare(ee=(3, 4, 1), clamped=["arm"]),
    ]
    assert score("hand_path_m", states) == 6.0
    assert score("clamped_commands", states) == 2.0
    assert score("steps", states) == 3.0
    assert score("object_displacement_m", ATTEMPT) == pytest.approx(math.hypot(0.2, 0.21))
    assert score("final_distance_m", ATTEMPT) == pytest.approx(0.01)
    assert score("final_distance_m", [bare(target_distance=0.25)]) == 0.25


@pytest.mark.parametrize("metric", [*SCORES, *DOCUMENTED])
def test_states_may_hold_arrays_and_vectors(metric):
    reference = {"qpos_sequence": [[0.1] * 7], "ee_pose_sequence": [[0, 0, 0.1, 1, 0, 0, 0]]}
    lists = bare(target_position=TARGET, phase="place", qpos=[0.0] * 10, ee_pose=[0.0, 0, 0, 1, 0, 0, 0])
    keys = ("object_position", "ee_position", "target_position", "qpos", "ee_pose")
    arrays = {**lists, **{key: np.array(lists[key]) for key in keys}, "position": Vector3(0.0, 0.0, 0.0)}
    value = score if isinstance(metric, str) else measure
    found = [value(metric, [state], episode(reference=reference)) for state in (lists, arrays)]
    assert found[0] == pytest.approx(found[1], nan_ok=True)
