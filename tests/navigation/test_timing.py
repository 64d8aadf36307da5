"""Trajectories along paths: within all limits everywhere, as fast as they allow, from how the robot moves."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from legs import Start, arc_leg, hardest, sideways_mps, straight_leg, winding_leg

from proctor.core.errors import UnknownName
from proctor.core.geometry import wrap_angle
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Leg
from proctor.navigation.timing.time_path import time_path
from proctor.robots.dynamics import Dynamics

DRIVES = ["differential", "holonomic"]
WHEELS = Dynamics()
TABLE = Dynamics(drive="holonomic")


def reason_of(legs, dynamics, start):
    with pytest.raises(NavigationFailure) as caught:
        time_path(legs, dynamics, start=start)
    assert caught.value.reason is Reason.INFEASIBLE_TRAJECTORY
    return str(caught.value)


@pytest.mark.parametrize("drive", DRIVES)
@settings(max_examples=25, derandomize=True)  # a run is to fail for its own changes only
@given(
    seed=st.integers(0, 10**6),
    length_m=st.sampled_from([0.02, 0.1, 0.5, 2.0, 6.0, 15.0]),
    bend=st.floats(0.0, 1.2),
    spacing_m=st.sampled_from([0.02, 0.03, 0.05]),
    limits=st.tuples(*[st.floats(0.2, 2.0)] * 4),
)
@example(seed=0, length_m=0.02, bend=0.0, spacing_m=0.03, limits=(1.0, 1.0, 0.5, 0.5))
@example(seed=1, length_m=150.0, bend=0.7, spacing_m=0.03, limits=(1.0, 1.0, 0.5, 0.5))
@example(seed=2, length_m=150.0, bend=0.01, spacing_m=0.05, limits=(2.0, 0.5, 0.3, 1.0))
@example(seed=12, length_m=10.0, bend=1.5, spacing_m=0.025, limits=(1.0, 1.0, 0.5, 0.5))  # near cusps
@example(seed=515, length_m=0.5, bend=1.125, spacing_m=0.05, limits=(1.0, 0.5, 1.0, 1.0))  # a short hook
def test_all_limits_hold_everywhere(drive, seed, length_m, bend, spacing_m, limits):
    rng = np.random.default_rng(seed)
    leg = winding_leg(rng, length_m, bend, spacing_m)
    v_max, omega_max, a_max, alpha_max = limits
    dynamics = Dynamics(v_max=v_max, omega_max=omega_max, a_max=a_max, alpha_max=alpha_max, drive=drive)
    yaw, goal_yaw = rng.uniform(-7, 7, 2)
    trajectory = time_path([leg], dynamics, start=Start(yaw), goal_yaw=goal_yaw)
    for limit, share in hardest(trajectory, dynamics).items():
        assert share < 1.015, limit
    np.testing.assert_allclose(trajectory.poses[0], [*leg.points[0], yaw], atol=1e-9)
    np.testing.assert_allclose(trajectory.poses[-1, :2], leg.points[-1], atol=1e-9)
    assert abs(wrap_angle(trajectory.poses[-1, 2] - goal_yaw)) < math.radians(0.21)
    assert not trajectory.velocities[0].any()
    assert not trajectory.velocities[-1].any()
    assert trajectory.duration_s < 400 + 20 * length_m


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize(
    ("length_m", "bend"), [(0.02, 0.2), (0.5, 0.5), (3, 1.0), (10, 0.1), (10, 0.8), (25, 0.6)]
)
def test_it_takes_as_long_as_toppra_takes(drive, length_m, bend):
    dynamics = Dynamics(drive=drive)
    for seed in range(2):
        leg = winding_leg(np.random.default_rng(seed), length_m, bend)
        start = Start(leg.yaw[0])
        ours = time_path([leg], dynamics, start=start, goal_yaw=leg.yaw[-1])
        theirs = time_path([leg], dynamics, start=start, goal_yaw=leg.yaw[-1], method="toppra")
        assert ours.duration_s == pytest.approx(theirs.duration_s, rel=0.01)
        assert max(hardest(theirs, dynamics).values()) < 1.05


def test_a_straight_line_is_a_trapezoid():
    trajectory = time_path([straight_leg((0, 0), (5, 0))], WHEELS, start=Start())
    assert trajectory.duration_s == pytest.approx(5 / 1.0 + 1.0 / 0.5, rel=2e-3)
    assert trajectory.at(1.0)[1][0] == pytest.approx(0.5, abs=0.01)
    short = time_path([straight_leg((0, 0), (0.02, 0))], WHEELS, start=Start())
    assert short.duration_s == pytest.approx(2 * math.sqrt(0.02 / 0.5), rel=1e-3)


def test_on_an_arc_the_yaw_rate_decides():
    trajectory = time_path([arc_leg(0.5, 6.0)], WHEELS, start=Start())
    assert trajectory.duration_s == pytest.approx(6.0 / 1.0 + 1.0 / 0.5, rel=2e-3)
    assert np.hypot(*trajectory.at(4.0)[1][:2]) == pytest.approx(0.5, rel=1e-3)


def test_a_holonomic_base_slows_down_on_an_arc_for_its_acceleration():
    trajectory = time_path([arc_leg(0.5, 6.0)], TABLE, start=Start())
    assert np.hypot(*trajectory.at(trajectory.duration_s / 2)[1][:2]) == pytest.approx(0.5, rel=0.01)


def test_positions_stay_on_the_path():
    leg = winding_leg(np.random.default_rng(4), 8.0, 0.6)
    dense = np.stack(
        [np.interp(np.linspace(0, 1, 9000), np.linspace(0, 1, len(leg.yaw)), c) for c in leg.points.T], 1
    )
    driven = time_path([leg], WHEELS, start=Start(leg.yaw[0])).remaining(0.0, 0.5)
    off_m = [np.linalg.norm(dense - point, axis=1).min() for point in driven]
    assert max(off_m) < 2e-3


def test_a_differential_drive_turns_at_corners_and_never_slips():
    legs = [straight_leg((0, 0), (2, 0)), straight_leg((2, 0), (2, 1)), straight_leg((2, 1), (3, 1))]
    trajectory = time_path(legs, WHEELS, start=Start(math.pi / 2), goal_yaw=math.pi)
    assert sideways_mps(trajectory) < 1e-6
    assert max(hardest(trajectory, WHEELS).values()) < 1.001
    turns = [math.pi / 2, math.pi / 2, math.pi / 2, math.pi]
    turning_s = sum(2 * math.sqrt(a / 0.5) if a < 2 else a + 2 for a in turns)
    driving_s = 4.0 + 2 * 2 * math.sqrt(1 / 0.5)
    assert trajectory.duration_s == pytest.approx(turning_s + driving_s, rel=3e-3)
    moving = np.abs(trajectory.velocities[:, :2]).max(axis=1) > 1e-6
    assert not (moving & (np.abs(trajectory.velocities[:, 2]) > 1e-6)).any()


def test_headings_go_the_short_way_and_do_not_jump():
    leg = straight_leg((0, 0), (-1, 0.0))  # heads pi
    trajectory = time_path([leg], WHEELS, start=Start(-3.0), goal_yaw=3.0)
    assert np.abs(np.diff(trajectory.poses[:, 2])).max() < 0.05
    assert np.ptp(trajectory.poses[:, 2]) == pytest.approx(2 * math.pi - 6.0, abs=1e-6)
    far = time_path([leg], WHEELS, start=Start(-3.0 + 8 * math.pi))
    assert far.poses[0, 2] == pytest.approx(-3.0 + 8 * math.pi)
    assert np.ptp(far.poses[:, 2]) == pytest.approx(math.pi - 3.0, abs=1e-6)


@pytest.mark.parametrize("off_deg", [0.15, -0.1])
def test_a_tiny_turn_is_made_on_the_way(off_deg):
    leg = straight_leg((0, 0), (1, 0))
    aligned = time_path([leg], WHEELS, start=Start())
    trajectory = time_path([leg], WHEELS, start=Start(math.radians(off_deg)))
    assert trajectory.duration_s == pytest.approx(aligned.duration_s, rel=1e-3)
    assert trajectory.poses[0, 2] == pytest.approx(math.radians(off_deg))
    assert trajectory.poses[-1, 2] == pytest.approx(0.0, abs=1e-9)
    assert max(hardest(trajectory, WHEELS).values()) < 1.001


@pytest.mark.parametrize("drive", DRIVES)
def test_it_goes_on_from_a_motion(drive):
    dynamics = Dynamics(drive=drive)
    leg = winding_leg(np.random.default_rng(3), 6.0, 0.3)
    omega = leg.curvature[0] * 0.4
    trajectory = time_path([leg], dynamics, start=Start(leg.yaw[0], 0.4, omega), goal_yaw=leg.yaw[-1])
    assert np.hypot(*trajectory.velocities[0, :2]) == pytest.approx(0.4, rel=1e-9)
    assert trajectory.velocities[0, 2] == pytest.approx(omega, abs=1e-9)
    assert trajectory.poses[0, 2] == pytest.approx(leg.yaw[0])
    assert max(hardest(trajectory, dynamics).values()) < 1.015
    at_rest = time_path([leg], dynamics, start=Start(leg.yaw[0]), goal_yaw=leg.yaw[-1])
    assert trajectory.duration_s < at_rest.duration_s - 0.1


def test_a_path_driven_from_its_middle_takes_what_was_left():
    leg = winding_leg(np.random.default_rng(5), 6.0, 0.5)
    whole = time_path([leg], WHEELS, start=Start(leg.yaw[0]))
    middle = len(leg.yaw) // 2
    rest = Leg(leg.points[middle:], leg.yaw[middle:], leg.curvature[middle:])
    passed_s = whole.times_s[np.argmin(np.linalg.norm(whole.poses[:, :2] - rest.points[0], axis=1))]
    _, (vx, vy, omega) = whole.at(passed_s)
    again = time_path([rest], WHEELS, start=Start(rest.yaw[0], math.hypot(vx, vy), omega))
    assert again.duration_s == pytest.approx(whole.duration_s - passed_s, abs=0.03)


@pytest.mark.parametrize("drive", DRIVES)
def test_a_robot_that_still_turns_stops_turning_first(drive):
    dynamics = Dynamics(drive=drive)
    trajectory = time_path([straight_leg((0, 0), (1, 0))], dynamics, start=Start(0.0, 0.0, 0.5), goal_yaw=0.0)
    assert trajectory.velocities[0].tolist() == [0.0, 0.0, 0.5]
    assert max(hardest(trajectory, dynamics).values()) < 1.001
    assert trajectory.poses[-1] == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)


def test_what_cannot_be_followed_says_why():
    leg = straight_leg((0, 0), (0.5, 0))
    assert "0.90 m/s, but at most 0.71 m/s" in reason_of([leg], WHEELS, Start(0.0, 0.9))
    assert "heads 30.0°, but the path begins at 0.0°" in reason_of(
        [leg], WHEELS, Start(math.radians(30), 0.3)
    )
    assert "turns at 0.40 rad/s, but the path begins with 0.00" in reason_of(
        [leg], WHEELS, Start(0.0, 0.3, 0.4)
    )
    assert "backwards at 0.30 m/s" in reason_of([leg], WHEELS, Start(0.0, -0.3))
    assert "no length" in reason_of([straight_leg((1, 1), (1, 1))], WHEELS, Start(0.0, 0.3))
    assert "at most" in reason_of([arc_leg(0.3, 3.0)], TABLE, Start(0.0, 0.9))
    assert "no legs" in reason_of([], WHEELS, Start())
    assert "not finite" in reason_of([straight_leg((0, 0), (math.nan, 0))], WHEELS, Start())
    assert "finite" in reason_of([leg], WHEELS, Start(math.nan))


def test_a_start_that_is_too_fast_by_a_hair_is_no_reason_to_fail():
    trajectory = time_path([straight_leg((0, 0), (0.5, 0))], WHEELS, start=Start(0.0, math.sqrt(0.5) * 1.005))
    assert trajectory.velocities[0, 0] == pytest.approx(math.sqrt(0.5), rel=1e-6)


@pytest.mark.parametrize("drive", DRIVES)
def test_a_goal_that_is_the_start_needs_a_turn_at_most(drive):
    dynamics = Dynamics(drive=drive)
    here = [straight_leg((1, 2), (1, 2))]
    stay = time_path(here, dynamics, start=Start(0.3))
    assert (len(stay), stay.duration_s) == (1, 0.0)
    assert stay.poses[0].tolist() == [1.0, 2.0, 0.3]
    turn = time_path(here, dynamics, start=Start(0.3), goal_yaw=0.8)
    assert turn.duration_s == pytest.approx(2.0)
    halt = time_path(here, dynamics, start=Start(0.3, 0.0, 0.5))
    assert halt.poses[-1, 2] == pytest.approx(0.55)


def test_a_holonomic_base_turns_on_the_way():
    leg = straight_leg((0, 0), (4, 3))
    trajectory = time_path([leg], TABLE, start=Start(0.5), goal_yaw=2.0)
    assert trajectory.duration_s == pytest.approx(7.0, rel=2e-3)
    pose, velocity = trajectory.at(3.5)
    assert pose == pytest.approx([2.0, 1.5, 1.25], abs=0.01)
    assert velocity[:2] == pytest.approx([0.8, 0.6], abs=1e-3)
    kept = time_path([leg], TABLE, start=Start(0.5))
    assert np.ptp(kept.poses[:, 2]) == 0.0
    corner = time_path([leg, straight_leg((4, 3), (4, 5))], TABLE, start=Start(0.5), goal_yaw=2.0)
    assert corner.at(7.0)[0][2] == pytest.approx(0.5 + 1.5 * 5 / 7, abs=0.02)
    assert max(hardest(corner, TABLE).values()) < 1.001


def test_a_turn_that_takes_longer_than_the_way_decides():
    trajectory = time_path([straight_leg((0, 0), (0.02, 0))], TABLE, start=Start(), goal_yaw=3.0)
    assert trajectory.duration_s == pytest.approx(3.0 + 2.0, rel=5e-3)


def test_doubled_points_and_any_spacing_are_the_same_path():
    leg = winding_leg(np.random.default_rng(6), 3.0, 0.4)
    doubled = Leg(*(np.repeat(part, 2, axis=0) for part in (leg.points, leg.yaw, leg.curvature)))
    start = Start(leg.yaw[0])
    once, twice = time_path([leg], WHEELS, start=start), time_path([doubled], WHEELS, start=start)
    assert once.duration_s == pytest.approx(twice.duration_s, rel=1e-9)


def test_an_unknown_method_is_named():
    with pytest.raises(UnknownName, match="unknown timing method 'topra'; did you mean 'toppra'"):
        time_path([straight_leg((0, 0), (1, 0))], WHEELS, start=Start(), method="topra")
