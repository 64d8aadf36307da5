"""Turns in place, straight drives, and braking on the path."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legs import Start, arc_leg, hardest, straight_leg, winding_leg

from proctor.core.types import Pose2
from proctor.navigation.path import Trajectory
from proctor.navigation.timing.moves import brake, straight, turn, turn_to
from proctor.navigation.timing.time_path import time_path
from proctor.robots.dynamics import Dynamics

WHEELS = Dynamics()
POSE = Pose2(1.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("angle_rad", "duration_s"), [(math.pi / 2, 2 * math.sqrt(math.pi)), (-2.5, 4.5), (8.0, 10.0), (0.0, 0.0)]
)
def test_a_turn_takes_what_the_limits_say(angle_rad, duration_s):
    trajectory = turn(POSE, angle_rad, WHEELS)
    assert trajectory.duration_s == pytest.approx(duration_s)
    np.testing.assert_allclose(trajectory.poses[-1], [1.0, 2.0, 0.5 + angle_rad])
    assert not trajectory.velocities[-1].any()
    assert not trajectory.velocities[:, :2].any()
    if duration_s:
        assert hardest(trajectory, WHEELS)["alpha_max"] == pytest.approx(1.0, abs=1e-6)


@settings(max_examples=40)
@given(st.floats(-10, 10), st.floats(-1.5, 1.5))
def test_a_turn_goes_on_from_a_turn(yaw, omega):
    trajectory = turn_to(POSE, yaw, WHEELS, omega=omega)
    assert math.cos(trajectory.poses[-1, 2] - yaw) == pytest.approx(1.0)
    assert trajectory.duration_s <= math.pi + 2.0 + 2 * abs(omega) / 0.5
    if trajectory.duration_s > 0:
        assert trajectory.velocities[0, 2] == pytest.approx(omega)
        shares = hardest(trajectory, WHEELS, step_s=min(0.002, trajectory.duration_s / 10))
        assert shares["alpha_max"] < 1.001
        assert shares["omega_max"] <= max(1.0, abs(omega)) + 1e-9


@pytest.mark.parametrize("distance_m", [0.3, -0.3, 4.0, -0.001])
def test_a_straight_drive_ends_where_it_should(distance_m):
    trajectory = straight(POSE, distance_m, WHEELS)
    ahead = np.array([math.cos(0.5), math.sin(0.5)])
    np.testing.assert_allclose(trajectory.poses[-1], [*([1.0, 2.0] + distance_m * ahead), 0.5])
    longest_m = abs(distance_m)
    expected_s = longest_m + 2.0 if longest_m > 2 else 2 * math.sqrt(longest_m / 0.5)
    assert trajectory.duration_s == pytest.approx(expected_s)
    middle = trajectory.at(trajectory.duration_s / 2)[1]
    assert math.copysign(1, middle[:2] @ ahead) == math.copysign(1, distance_m)
    assert not middle[2]


@pytest.mark.parametrize("drive", ["differential", "holonomic"])
def test_braking_stays_on_the_path_and_keeps_the_deceleration(drive):
    dynamics = Dynamics(drive=drive)
    rng = np.random.default_rng(2)
    leg = winding_leg(rng, 6.0, 0.5)
    trajectory = time_path([leg], dynamics, start=Start(leg.yaw[0]))
    dense = trajectory.sampled(np.arange(0.0, trajectory.duration_s, 0.0005))
    for time_s in rng.uniform(0.1, trajectory.duration_s - 0.1, 12):
        stop = brake(trajectory, time_s, dynamics)
        pose, velocity = trajectory.at(time_s)
        np.testing.assert_allclose(stop.poses[0], pose, atol=1e-9)
        np.testing.assert_allclose(stop.velocities[0], velocity, atol=1e-9)
        assert not stop.velocities[-1].any()
        speed = math.hypot(*velocity[:2])
        if drive == "differential":
            assert stop.duration_s == pytest.approx(speed / dynamics.a_max, rel=0.01, abs=0.02)
        assert hardest(stop, dynamics, step_s=min(0.002, stop.duration_s / 20))["a_max"] < 1.02
        for point in stop.sampled(np.linspace(0, stop.duration_s, 12)):
            nearest = dense[np.argmin(np.linalg.norm(dense[:, :2] - point[:2], axis=1))]
            np.testing.assert_allclose(nearest[:3], point[:3], atol=2e-3)


def test_braking_on_a_straight_line_takes_the_stopping_distance():
    trajectory = time_path([straight_leg((0, 0), (5, 0))], WHEELS, start=Start())
    stop = brake(trajectory, 3.0, WHEELS)
    assert stop.duration_s == pytest.approx(2.0, rel=2e-3)
    assert stop.poses[-1, 0] - stop.poses[0, 0] == pytest.approx(WHEELS.stopping_distance_m(1.0), rel=2e-3)
    ending = brake(trajectory, trajectory.duration_s - 1.0, WHEELS)
    assert ending.duration_s == pytest.approx(1.0, rel=2e-3)
    assert ending.poses[-1, 0] == pytest.approx(5.0, abs=2e-3)


def test_braking_never_speeds_up_when_leaving_a_bend():
    leg = winding_leg(np.random.default_rng(3), 10.0, 0.8)
    trajectory = time_path([leg], WHEELS, start=Start(leg.yaw[0]))
    for time_s in np.arange(0.5, trajectory.duration_s, 0.7):
        stop = brake(trajectory, time_s, WHEELS)
        speeds = np.hypot(*stop.velocities[:, :2].T)
        assert (np.diff(speeds) < 1e-4).all()


def test_braking_a_turn_in_place_keeps_to_it():
    legs = [straight_leg((0, 0), (1, 0))]
    trajectory = time_path(legs, WHEELS, start=Start(2.0))
    stop = brake(trajectory, 1.0, WHEELS)
    assert stop.duration_s == pytest.approx(1.0, rel=0.01)
    assert stop.poses[-1] == pytest.approx([0.0, 0.0, 1.5], abs=2e-3)
    assert hardest(stop, WHEELS)["alpha_max"] < 1.02
    # In the second half of the turn it stops at its end, not somewhere on the leg.
    late = brake(trajectory, 2 * math.sqrt(2 / 0.5) - 0.2, WHEELS)
    assert late.poses[-1] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert late.duration_s == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize("time_s", [0.0, -1.0, 1e3])
def test_who_rests_need_not_brake(time_s):
    trajectory = time_path([arc_leg(1.0, 1.0)], WHEELS, start=Start())
    stop = brake(trajectory, time_s, WHEELS)
    assert (len(stop), stop.duration_s) == (1, 0.0)
    np.testing.assert_allclose(stop.poses[0], trajectory.at(time_s)[0])


def test_what_was_not_timed_here_can_be_braked():
    fast = Trajectory([0.0, 1.0], [[0, 0, 0], [2, 0, 0]], [[2, 0, 0], [2, 0, 0]])  # ends in motion
    stop = brake(fast, 0.1, Dynamics(v_max=2.0, a_max=4.0))
    assert stop.duration_s == pytest.approx(0.5, rel=0.01)
