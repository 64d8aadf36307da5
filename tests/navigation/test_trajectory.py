"""What a trajectory is at every moment, and what it takes to be one."""

import math

import numpy as np
import pytest

from proctor.navigation.path import Trajectory

ROWS = [
    (0.0, [0.0, 0.0, 0.1], [0.0, 0.0, 0.0]),
    (1.0, [0.5, 0.0, 0.2], [1.0, 0.0, 0.2]),
    (3.0, [2.5, 1.0, 0.8], [0.0, 0.5, 0.0]),
]


@pytest.fixture
def trajectory():
    return Trajectory.of(ROWS)


def test_it_is_a_list_of_times_positions_and_velocities(trajectory):
    assert len(trajectory) == 3
    assert list(trajectory) == ROWS
    assert trajectory[-1] == ROWS[-1]
    assert trajectory[1:] == ROWS[1:]
    assert Trajectory.of(trajectory) is trajectory
    assert trajectory.duration_s == 3.0


def test_between_points_it_is_a_cubic_with_the_velocities_of_both(trajectory):
    for time_s, pose, velocity in ROWS:
        at = trajectory.at(time_s)
        np.testing.assert_allclose(at[0], pose)
        np.testing.assert_allclose(at[1], velocity)
    times_s = np.linspace(1.0, 3.0, 7)
    cubic = np.polyfit(times_s, trajectory.sampled(times_s)[:, 1], 3)
    assert np.polyval(cubic, 2.2) == pytest.approx(trajectory.at(2.2)[0][1])
    assert np.polyval(np.polyder(cubic), 2.2) == pytest.approx(trajectory.at(2.2)[1][1])


def test_a_constant_acceleration_is_exact_between_two_points():
    trajectory = Trajectory([0, 2], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0]])
    pose, velocity = trajectory.at(1.2)
    assert (pose[0], velocity[0]) == pytest.approx((0.25 * 1.2**2, 0.6))


def test_times_need_no_order(trajectory):
    mixed = np.array([2.5, 0.3, 9.0, 1.7])
    rows = trajectory.sampled(mixed)
    for time_s, row in zip(mixed, rows, strict=True):
        np.testing.assert_array_equal(row, np.concatenate(trajectory.at(time_s)))


def test_before_it_begins_it_waits_and_after_its_end_it_rests():
    trajectory = Trajectory([0, 1], [[0, 0, 0], [1, 0, 0]], [[1, 0, 0], [1, 0, 0]])
    assert [part.tolist() for part in trajectory.at(-5.0)] == [[0, 0, 0], [1, 0, 0]]
    assert [part.tolist() for part in trajectory.at(1.0)] == [[1, 0, 0], [1, 0, 0]]
    assert [part.tolist() for part in trajectory.at(1.001)] == [[1, 0, 0], [0, 0, 0]]
    single = Trajectory([0.0], [[1, 2, 3]], [[0, 0, 0]])
    assert single.at(0.5)[0].tolist() == [1, 2, 3]


def test_what_remains_is_the_way_to_the_end(trajectory):
    points = trajectory.remaining(1.0, spacing_s=0.5)
    np.testing.assert_allclose(points[[0, -1]], [[0.5, 0.0], [2.5, 1.0]])
    assert len(points) == 5
    assert trajectory.remaining(7.0).tolist() == [[2.5, 1.0]]


def test_trajectories_are_joined_in_time(trajectory):
    after = Trajectory([0, 2], [[2.5, 1.0, 0.8], [3.0, 1.0, 0.8]], [[0.0, 0.5, 0.0], [0, 0, 0]])
    joined = Trajectory.joined([trajectory, after])
    assert joined.times_s.tolist() == [0.0, 1.0, 3.0, 5.0]
    np.testing.assert_array_equal(joined.poses[2:], after.poses)
    for time_s in (0.4, 2.0, 3.0):
        np.testing.assert_array_equal(joined.at(time_s), trajectory.at(time_s))
    assert list(Trajectory.joined([trajectory])) == ROWS


def test_points_on_the_floor_get_their_headings_from_their_velocities():
    trajectory = Trajectory.of(
        [
            (5.0, [0, 0, 0], [0, 0, 0]),
            (6.0, [0, 1, 0], [0, 1, 0]),
            (7.0, [-1, 2, 0], [-1, 0, 0]),
            (8.0, [-2, 1.5, 0], [-1, -0.1, 0]),
            (9.0, [-3, 1.5, 0], [0, 0, 0]),
        ]
    )
    turned = math.pi + math.atan(0.1)
    np.testing.assert_allclose(trajectory.poses[:, 2], [math.pi / 2, math.pi / 2, math.pi, turned, turned])
    assert trajectory.velocities[1, 2] == pytest.approx(math.pi / 4)
    assert trajectory.times_s[0] == 0.0
    still = Trajectory.of([(0.0, [1, 1, 0], [0, 0, 0])])
    assert still.poses[0].tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("times_s", "poses", "velocities", "problem"),
    [
        ([], np.zeros((0, 3)), np.zeros((0, 3)), "N at least 1"),
        ([0, 1], np.zeros((2, 2)), np.zeros((2, 3)), r"\(2, 2\)"),
        ([0, 1], np.zeros((2, 3)), np.zeros((3, 3)), r"\(3, 3\)"),
        ([0, 0], np.zeros((2, 3)), np.zeros((2, 3)), "increase"),
        ([0, 1], np.full((2, 3), np.nan), np.zeros((2, 3)), "finite"),
        ([0, np.inf], np.zeros((2, 3)), np.zeros((2, 3)), "finite"),
    ],
)
def test_what_is_no_trajectory_is_refused(times_s, poses, velocities, problem):
    with pytest.raises(ValueError, match=problem):
        Trajectory(times_s, poses, velocities)


@pytest.mark.parametrize(
    "points", [[], [(0.0, [0, 0], [0, 0, 0])], [(0.0, [0, 0, 0])], [1.0], [(0.0, None, [0, 0, 0])], 7, "abc"]
)
def test_what_is_no_list_of_points_is_refused(points):
    with pytest.raises(ValueError, match=r"expected points \(t, \[x, y, yaw\], \[vx, vy, omega\]\)"):
        Trajectory.of(points)


def test_points_at_the_same_time_are_refused_for_that():
    point = (0.5, [0, 0, 0], [0.5, 0, 0])
    with pytest.raises(ValueError, match="expected times of a trajectory that increase"):
        Trajectory.of([point, point])
