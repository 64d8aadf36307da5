import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pick_place_states import HELD, NoTask, bare, episode, measure, score, started

from proctor.exams import dtw
from proctor.exams.dtw import STRIP, IncrementalDtw, dtw_distance
from proctor.exams.pick_place.documented_metrics import PickPlaceTrajectorySimilarity
from proctor.exams.pick_place.similarity import control_points, ee_points, matched_keypoints, similarity
from proctor.robots.stretch import CONTROLS, qpos_of_controls

# DTW


numbers = st.floats(-3, 3)


@st.composite
def sequences(draw, *, count=2, width=None, largest=12, elements=numbers):
    width = width or draw(st.integers(1, 4))
    lengths = [draw(st.integers(1, largest)) for _ in range(count)]
    return [draw(arrays(float, (length, width), elements=elements)) for length in lengths]


def dtw_by_hand(a, b):
    table = np.full((len(a) + 1, len(b) + 1), np.inf)
    table[0, 0] = 0.0
    for i, p in enumerate(a, 1):
        for j, q in enumerate(b, 1):
            table[i, j] = math.dist(p, q) + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return table[-1, -1]


@given(sequences())
def test_dtw_is_exact(pair):
    assert dtw_distance(*pair) == pytest.approx(dtw_by_hand(*pair), abs=1e-9)
    assert dtw_distance(*pair) == pytest.approx(dtw_distance(*pair[::-1]), abs=1e-9)


LENGTHS = (1, 2, 3, STRIP - 1, STRIP, STRIP + 1, STRIP + 2, 2 * STRIP + 1, 200)


@pytest.mark.parametrize("lengths", list(product(LENGTHS, LENGTHS)))
def test_dtw_of_whole_sequences_is_that_of_the_incremental_one(lengths, monkeypatch):
    rng = np.random.default_rng(sum(lengths))
    a, b = (np.cumsum(rng.normal(size=(length, 10)), axis=0) for length in lengths)
    rows = IncrementalDtw(len(b))
    for point in a:
        rows.add(np.linalg.norm(b - point, axis=1))
    assert dtw_distance(a, b) == pytest.approx(rows.distance, rel=1e-12)
    monkeypatch.setattr(dtw, "LARGEST_TABLE", 0)
    assert dtw_distance(a, b) == pytest.approx(rows.distance, rel=1e-12)


@given(sequences(count=1, elements=st.floats(-1e6, 1e6)), st.data())
def test_dtw_with_the_same_points_held_for_longer_is_exactly_0(alone, data):
    (points,) = alone
    times = data.draw(st.lists(st.integers(1, 4), min_size=len(points), max_size=len(points)))
    assert dtw_distance(np.repeat(points, times, axis=0), points) == 0.0


# Similarity

wild = st.floats(allow_nan=True, allow_infinity=True)


@given(sequences(width=7, elements=wild))
def test_similarity_is_a_number_from_0_to_1_for_every_input(pair):
    for points in (control_points, ee_points):
        value = similarity(points(pair[0]), points(pair[1]))
        assert 0.0 <= value <= 1.0


@given(sequences(count=1, width=7, elements=wild))
def test_similarity_with_itself_is_exactly_1(alone):
    for points in (control_points, ee_points):
        assert similarity(points(alone[0]), points(alone[0])) == 1.0


@given(sequences(width=3), st.lists(st.floats(0, 5), min_size=2, max_size=6))
def test_similarity_falls_as_a_joint_that_should_keep_still_moves_more(pair, factors):
    reference, field = pair
    field = np.resize(field, reference.shape)
    still = np.zeros_like(reference)
    straight = np.hstack([reference, still])
    values = [
        similarity(np.hstack([reference, factor * field]), straight) for factor in sorted([0.0, *factors])
    ]
    assert values[0] == 1.0
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))


@given(sequences(width=3), st.lists(st.floats(0, 0.5), min_size=2, max_size=6))
def test_similarity_falls_as_a_path_is_perturbed_by_less_than_half_the_way_between_its_points(pair, factors):
    reference, field = pair
    apart = min(
        (math.dist(p, q) for i, p in enumerate(reference) for q in reference[:i]),
        default=1.0,
    )
    assume(apart > 1e-3)
    field = np.resize(field, reference.shape)
    largest = np.linalg.norm(field, axis=1).max()
    assume(largest > 1e-3)
    field *= apart / largest
    values = [similarity(reference + factor * field, reference) for factor in sorted([0.0, *factors])]
    assert values[0] == 1.0
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))


@given(sequences(width=3))
def test_similarity_is_never_below_what_the_perturbation_explains(pair):
    reference, field = pair
    field = np.resize(field, reference.shape)
    mean = np.linalg.norm(field, axis=1).mean()
    assert similarity(reference + field, reference) >= math.exp(-mean / 0.25) - 1e-12


def way(steps=40):
    """The controls of a plausible attempt: drive, lift, stretch, turn, close."""
    s = np.linspace(0, 1, steps)[:, None]
    return np.hstack([0.3 * s, 0 * s, 0.5 * s**2, 0.5 + 0.3 * s, 0.4 * np.sqrt(s), 0.5 * s, 0.04 * (1 - s)])


@pytest.mark.parametrize("seed", range(5))
def test_similarity_falls_as_a_plausible_path_is_shaken_more(seed):
    field = np.random.default_rng(seed).normal(size=way().shape) / 50
    values = [similarity(control_points(way() + f * field), control_points(way())) for f in range(8)]
    assert values[0] == 1.0
    assert all(later < earlier for earlier, later in pairwise(values))


def test_every_control_is_measured_in_its_own_range():
    origin = np.zeros((1, 7))
    for index, control in enumerate(CONTROLS):
        moved = origin.copy()
        angle = control.name in ("base_theta", "wrist_yaw")
        moved[0, index] = math.pi if angle else control.high - control.low
        assert similarity(control_points(moved), control_points(origin)) == pytest.approx(math.exp(-4))


def test_the_length_of_a_sequence_does_not_matter_but_its_poses_do():
    shifted = [[0.25, 0, 0, 0, 0, 0, 0]]
    for length in (1, 10, 300):
        value = similarity(control_points(shifted * length), control_points([[0.0] * 7] * 7))
        assert value == pytest.approx(math.exp(-1))


def test_poses_of_the_hand_are_compared_by_place_and_angle():
    here = [[0.5, 0, 0.8, 1, 0, 0, 0]]
    half = math.sqrt(0.5)
    cases = [
        ([[0.75, 0, 0.8, 1, 0, 0, 0]], 0.25),
        ([[0.5, 0, 0.8, half, 0, 0, half]], half),  # a quarter turn
        ([[0.5, 0, 0.8, 0, 0, 1, 0]], 1.0),  # half a turn
        ([[0.5, 0, 0.8, -1, 0, 0, 0]], 0.0),  # the same rotation
        ([[0.5, 0, 0.8, 2, 0, 0, 0]], 0.0),
    ]
    for pose, cost in cases:
        assert similarity(ee_points(pose), ee_points(here)) == pytest.approx(math.exp(-cost / 0.25))


def joints(rows):
    return [bare(qpos=np.array(row), ee_pose=[0.5, 0, 0.8, 1, 0, 0, 0]) for row in rows]


def test_ten_joints_are_compared_with_seven_controls():
    seven = [[0.1, 0, 0.2, 0.5, 0.4, 0.3, 0.02], [0.1, 0, 0.2, 0.6, 0.5, 0.3, 0.0]]
    ten = [qpos_of_controls(tuple(row)) for row in seven]
    for attempt, reference in ((ten, seven), (seven, ten), (ten, ten)):
        an_episode = episode(reference={"qpos_sequence": reference})
        assert measure(PickPlaceTrajectorySimilarity, joints(attempt), an_episode) == pytest.approx(1.0)


def test_the_metric_keeps_what_the_documents_name():
    metric = PickPlaceTrajectorySimilarity()
    assert metric.trajectory == {"qpos": [], "ee_pose": []}
    assert metric.reference is None
    assert metric.keypoints == dict.fromkeys(
        ("grasp_start", "lift_complete", "place_start", "place_complete")
    )
    with_names = {"qpos_sequence": way().tolist(), "keypoints": ["grasp_start", "wave"]}
    metric.reset(episode(reference=with_names), NoTask())
    assert metric.keypoints == {"grasp_start": None, "wave": None}
    assert metric.reference["keypoints"] == ["grasp_start", "wave"]
    for state in joints(way()):
        metric.update(state)
    assert len(metric.trajectory["qpos"]) == len(metric.trajectory["ee_pose"]) == 40
    assert metric.get_metric() == 1.0
    metric.reset(episode(), NoTask())
    assert (metric.reference, metric.trajectory["qpos"]) == (None, [])
    assert math.isnan(metric.get_metric())


def test_an_attempt_without_joints_is_like_nothing():
    an_episode = episode(reference={"qpos_sequence": way().tolist()})
    assert measure(PickPlaceTrajectorySimilarity, [], an_episode) == 0.0
    assert measure(PickPlaceTrajectorySimilarity, [bare()], an_episode) == 0.0
    assert math.isnan(score("ee_similarity", joints(way()), an_episode))
    poses = [[0.5, 0, 0.8, 1, 0, 0, 0]] * len(way())
    with_poses = {"qpos_sequence": way().tolist(), "ee_pose_sequence": poses}
    assert score("ee_similarity", joints(way()), episode(reference=with_poses)) == 1.0


def test_keypoints_are_the_steps_in_which_they_happened():
    metric = started(PickPlaceTrajectorySimilarity)
    held = {**HELD, "qpos": [0.0] * 10}
    states = [
        bare(qpos=[0.0] * 10),
        bare(ee=(0.5, 0, 0.82), qpos=[0.0] * 10),
        bare(**held),
        bare((0.5, 0, 0.92), **held),
        bare((0.6, 0.1, 0.95), **held),
        bare((0.7, 0.2, 0.95), **held),
        bare((0.7, 0.2, 0.8), **held),
        bare((0.7, 0.2, 0.8), qpos=[0.0] * 10),
    ]
    for state in states:
        metric.update(state)
    assert metric.keypoints == {"grasp_start": 1, "lift_complete": 3, "place_start": 5, "place_complete": 7}


def keyed(marks, attempt_grasp):
    """Similarity where the reference steps up at its step 5 and the attempt grasps when it likes."""
    reference = np.repeat([[0.0] * 7, [0.0, 0, 0, 1.0, 0, 0, 0]], 5, axis=0)
    an_episode = episode(reference={"qpos_sequence": reference.tolist(), "keypoints": marks})
    metric = started(PickPlaceTrajectorySimilarity, an_episode)
    for index, state in enumerate(joints(reference)):
        metric.update({**state, "phase": "grasp" if index >= attempt_grasp else "reach"})
    return metric.get_metric()


def test_with_indices_the_parts_between_keypoints_are_compared_with_each_other():
    assert keyed({"grasp_start": 5}, 5) == 1.0
    assert keyed({"grasp_start": 5}, 2) < 0.9  # the same joints, but grasped at another place
    assert keyed(["grasp_start"], 2) == 1.0  # names alone say nothing of when
    assert keyed({"grasp_start": 5}, 99) == 1.0  # never grasped: nothing to match
    assert keyed({"lift_complete": 3, "grasp_start": 5}, 5) == 1.0


@given(
    st.dictionaries(st.sampled_from(("grasp_start", "lift_complete", "x")), st.integers(0, 9)),
    st.integers(0, 12),
)
def test_any_keypoints_give_a_number_from_0_to_1(marks, attempt_grasp):
    assert 0.0 <= keyed(marks, attempt_grasp) <= 1.0


def test_keypoints_that_came_in_another_order_are_left_out():
    reference = {"grasp_start": 2, "lift_complete": 4, "place_start": 6, "wave": 5, "place_complete": 90}
    attempt = {"grasp_start": 7, "lift_complete": 3, "place_start": 8, "wave": None, "place_complete": 9}
    assert matched_keypoints(attempt, reference, steps=10, reference_steps=10) == [(7, 2), (8, 6)]
