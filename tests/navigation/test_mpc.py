"""Tests for the controller that keeps a robot on its trajectory, on a base that lags and is wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from rolling_base import TICK_S, Drive, RollingBase, drive_along, made_of, winding

from proctor.core.errors import SimulationError, UserError
from proctor.core.types import Array
from proctor.navigation.path import Trajectory
from proctor.navigation.plugins import ControlReport
from proctor.navigation.tracking import drive_models
from proctor.navigation.tracking.mpc import MpcController

REAL = {"lag_s": 0.05, "gains": (0.97, 1.03)}
FORTH = [(0.5, 0.0, 1.5), (0.0, 0.0, 1.0), (-0.5, 0.0, 1.5)]
"""Straight ahead, with all that the limits allow."""


def controller_of(base: RollingBase, **options: Any) -> MpcController:
    return MpcController(base, now_s=lambda: base.time_s, **options)


def world_commands(drive: Drive, kind: str) -> Array:
    """Return the commands in the frame in which their changes are limited."""
    commands = np.array(drive.commands)
    if kind == "holonomic":
        yaw = np.array(drive.measured)[:, 2] + 0.5 * TICK_S * commands[:, 2]
        vx, vy = commands[:, 0].copy(), commands[:, 1].copy()
        commands[:, 0], commands[:, 1] = (
            np.cos(yaw) * vx - np.sin(yaw) * vy,
            np.sin(yaw) * vx + np.cos(yaw) * vy,
        )
    return commands


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_a_late_and_inexact_base_stays_on_the_trajectory_and_comes_to_rest_at_its_end(
    kind: str, noise: float
) -> None:
    base = RollingBase(drive=kind, noise=noise, **REAL)
    drive = drive_along(base, winding(kind))
    assert drive.rms_m < 0.02
    error = drive.errors[-1]
    assert math.hypot(*error[:2]) < 0.01
    assert abs(error[2]) < math.radians(0.5)
    assert not np.any(drive.commands[-30:])
    assert drive.fallbacks == 0


def test_an_exact_base_is_led_by_the_accelerations_of_the_reference() -> None:
    assert drive_along(RollingBase(), winding("differential")).rms_m < 0.002


def test_braking_with_all_its_might_ends_where_it_should() -> None:
    drive = drive_along(RollingBase(**REAL), made_of(FORTH))
    assert np.abs(drive.errors[-1, :2]).max() < 0.01
    assert not np.any(drive.commands[-30:])


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_commands_keep_the_limits_from_one_to_the_next_even_from_far_off(kind: str) -> None:
    base = RollingBase((-0.3, 0.25, 0.8), drive=kind, noise=0.003, **REAL)
    drive = drive_along(base, made_of([(0.3, 0.0, 2.0), (0.0, 0.1, 3.0), (0.0, -0.1, 3.0), (-0.3, 0.0, 2.0)]))
    commands = world_commands(drive, kind)
    steps = np.diff(commands, axis=0, prepend=np.zeros((1, 3)))
    assert np.hypot(steps[:, 0], steps[:, 1]).max() <= 0.5 * TICK_S + 1e-9
    assert np.abs(steps[:, 2]).max() <= 0.5 * TICK_S + 1e-9
    assert np.hypot(commands[:, 0], commands[:, 1]).max() <= 1.0 + 1e-9
    assert np.abs(commands[:, 2]).max() <= 1.0 + 1e-9
    assert np.hypot(steps[:, 0], steps[:, 1]).max() > 0.49 * TICK_S, "it does use what it may"
    assert np.hypot(*drive.errors[360, :2]) < 0.06, "it is back on the trajectory after six seconds"
    assert drive.fallbacks == 0


def test_a_heading_that_passes_half_a_turn_is_followed_the_short_way() -> None:
    turning = [(0.0, 0.5, 1.6), (0.0, 0.0, 2.0), (0.0, -0.5, 1.6)]
    reference = made_of(turning, (0.0, 0.0, 2.0 + 4 * math.pi))
    base = RollingBase((0.0, 0.0, 2.0))
    drive = drive_along(base, reference)
    assert np.abs(drive.errors[:, 2] + 4 * math.pi).max() < 0.01
    assert np.abs(np.array(drive.commands)[:, 2]).max() < 0.85


def test_a_robot_that_looks_the_other_way_does_not_waver_between_left_and_right() -> None:
    base = RollingBase((0.0, 0.0, math.pi - 0.001), noise=0.003)
    drive = drive_along(base, Trajectory([0.0], np.zeros((1, 3)), np.zeros((1, 3))), rest_s=8.0)
    assert abs(math.remainder(base.at[2], math.tau)) < math.radians(0.5)
    turns = np.array(drive.commands)[:, 2]
    assert np.all(turns[20:100] > 0) or np.all(turns[20:100] < 0)


def test_backwards_is_as_fast_as_forwards_when_the_reference_goes_backwards() -> None:
    drive = drive_along(RollingBase(**REAL), made_of([(-a, 0.0, t) for a, _, t in FORTH]))
    assert drive.rms_m < 0.02
    assert np.array(drive.commands)[:, 0].min() < -0.7


def test_without_need_it_backs_up_only_slowly() -> None:
    base = RollingBase((1.0, 0.0, 0.0))
    drive = drive_along(base, made_of([(0.1, 0.0, 1.0), (-0.1, 0.0, 1.0)]), rest_s=8.0)
    assert -0.2 - 1e-9 <= np.array(drive.commands)[:, 0].min() < -0.15
    assert abs(drive.errors[-1, 0]) < 0.01


def test_a_push_after_the_end_is_taken_back() -> None:
    base, reference = RollingBase(**REAL), made_of(FORTH)
    controller = controller_of(base)
    drive_along(base, reference, controller=controller)
    assert controller.last is not None
    assert controller.last.resting
    base.at[0] += 0.04
    for _ in range(180):
        controller.control_loop()
        base.roll()
    assert controller.last.resting
    assert abs(base.at[0] - reference.poses[-1, 0]) < 0.01


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_a_new_reference_in_motion_is_taken_over_without_a_jolt(kind: str) -> None:
    whole = winding(kind)
    base = RollingBase(drive=kind, **REAL)
    controller = controller_of(base)
    controller.set_reference_trajectory(whole)
    before: Array = np.zeros(3)
    for tick in range(480):
        if tick == 240:  # The rest of it, as a planner would make it: from where the robot should be.
            rest = whole.sampled(base.time_s + np.arange(0.0, whole.duration_s - base.time_s, 0.05))
            controller.control_loop()
            times_s = 0.05 * np.arange(len(rest))
            controller.set_reference_trajectory(Trajectory(times_s, rest[:, :3], rest[:, 3:]))
        controller.control_loop()
        assert controller.last is not None
        assert controller.last.position_error_m < 0.03
        assert (
            np.abs(base.told - before)[[0, 2]].max()
            <= 0.5 * TICK_S * (1.5 if kind == "holonomic" else 1.0) + 1e-9
        )
        before = base.told
        base.roll()


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_twice_at_one_time_is_once_and_the_same_drive_is_the_same(kind: str) -> None:
    reference = winding(kind)
    runs = []
    for calls in (1, 1, 3):
        base = RollingBase(drive=kind, **REAL)
        controller = controller_of(base)
        controller.set_reference_trajectory(reference)
        commands = []
        for _ in range(200):
            for _ in range(calls):
                controller.control_loop()
                commands.append(base.told)
            base.roll()
        runs.append(np.array(commands))
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(np.repeat(runs[0], 3, axis=0), runs[2])


@pytest.mark.parametrize("broken", [(np.zeros(28), 0.0, -1, {}), (np.full(28, np.nan), 0.0, 1, {})])
def test_when_the_optimiser_fails_a_plain_law_drives_within_the_limits(
    monkeypatch: pytest.MonkeyPatch, broken: tuple[Any, ...]
) -> None:
    class BrokenModel:
        def setup(self, *_: Any) -> tuple[int, float]:
            return 1, 0.0

        def soft_weights(self, **_: Any) -> None: ...

        def solve(self) -> tuple[Any, ...]:
            return broken

    monkeypatch.setattr(drive_models.daqp, "Model", BrokenModel)
    for kind in ("differential", "holonomic"):
        base = RollingBase((0.0, 0.1, 0.1), drive=kind, **REAL)
        drive = drive_along(base, winding(kind))
        assert drive.fallbacks > 1000
        assert drive.rms_m < 0.05
        assert math.hypot(*drive.errors[-1, :2]) < 0.03
        steps = np.diff(world_commands(drive, kind), axis=0)
        assert np.hypot(steps[:, 0], steps[:, 1]).max() <= 0.5 * TICK_S + 1e-9


def test_a_pose_that_is_no_number_stops_the_robot() -> None:
    base = RollingBase()
    controller = controller_of(base)
    controller.set_reference_trajectory(made_of(FORTH))
    for _ in range(30):
        controller.control_loop()
        base.roll()
    assert base.told[0] > 0.1
    base.at[1] = math.nan
    with pytest.raises(SimulationError, match="finite"):
        controller.control_loop()
    assert not base.told.any()
    assert not controller.has_reference_trajectory()


def test_a_pose_that_is_not_known_stops_the_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    base = RollingBase()
    controller = controller_of(base)
    controller.set_reference_trajectory(made_of(FORTH))
    controller.control_loop()

    def lost() -> tuple[Array, Array]:
        raise SimulationError("no pose")

    base.roll()
    monkeypatch.setattr(base, "pose", lost)
    with pytest.raises(SimulationError, match="no pose"):
        controller.control_loop()
    assert not base.told.any()


def test_stop_stands_still_and_forgets_and_then_it_begins_from_rest() -> None:
    base = RollingBase(lag_s=0.05)
    controller = controller_of(base)
    controller.set_reference_trajectory(made_of(FORTH))
    for _ in range(60):
        controller.control_loop()
        base.roll()
    controller.stop()
    assert not base.told.any()
    assert not controller.has_reference_trajectory()
    assert controller.last is None
    controller.control_loop()
    assert not base.told.any()
    base.roll()
    assert base.velocity()[0] > 0.1
    controller.set_reference_trajectory(made_of(FORTH, tuple(base.at)))
    controller.control_loop()
    assert 0 < base.told[0] <= 0.5 * TICK_S + 1e-9


def test_each_tick_is_reported() -> None:
    reports: list[ControlReport] = []
    base = RollingBase((0.0, 0.02, 0.0))
    controller = controller_of(base, on_command=reports.append)
    controller.clock_callback(0.0)
    assert not reports
    controller.set_reference_trajectory(made_of(FORTH))
    controller.clock_callback(0.0)
    (report,) = reports
    assert report is controller.last
    assert report.command == tuple(base.told)
    assert (report.position_error_m, report.cross_track_error_m) == pytest.approx((0.02, 0.02))
    assert not report.fallback
    assert report.solve_time_s > 0


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_solve_by_hand_is_what_the_loop_does(kind: str) -> None:
    base = RollingBase((0.05, -0.02, 0.1), drive=kind)
    looping, by_hand = controller_of(base), controller_of(base)
    for controller in (looping, by_hand):
        controller.set_reference_trajectory(winding(kind))
    segment = by_hand.get_trajectory_segment(0.0)
    half = base.pose().yaw / 2
    pose = [base.pose().x, base.pose().y, 0.0], [0.0, 0.0, math.sin(half), math.cos(half)]
    state = (pose, base.velocity())
    command = by_hand.solve(current_state=state, reference=segment, constraints=base.limits)
    looping.control_loop()
    assert command == pytest.approx(tuple(base.told), abs=1e-12)
    flat = controller_of(base).solve(([0.05, -0.02, 0.1], [0, 0, 0]), list(segment), base.limits)
    assert flat == pytest.approx(command, abs=1e-9)


def test_a_segment_starts_now_and_rests_at_the_end() -> None:
    base = RollingBase()
    controller = controller_of(base)
    with pytest.raises(UserError, match="set_reference_trajectory"):
        controller.get_trajectory_segment(0.0)
    reference = made_of(FORTH)
    controller.set_reference_trajectory(reference, start_time_s=10.0)
    segment = controller.get_trajectory_segment(13.5, horizon=1.0)
    assert segment.duration_s == pytest.approx(1.0)
    assert segment.poses[0] == pytest.approx(reference.at(3.5)[0])
    assert segment.poses[-1] == pytest.approx(reference.poses[-1])
    assert not segment.velocities[-1].any()
    with pytest.raises(UserError, match="more than 0"):
        controller.get_trajectory_segment(0.0, horizon=0.0)


def test_a_segment_shorter_than_the_horizon_does_not_make_it_brake() -> None:
    base = RollingBase()
    controller = controller_of(base)
    controller.set_reference_trajectory(made_of(FORTH))
    short = controller.get_trajectory_segment(2.0, horizon=0.5)
    pose, _ = made_of(FORTH).at(2.0)
    vx, _, _ = controller.solve((pose, [0.75, 0, 0]), short, base.limits)
    assert vx == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize("start_time_s", [math.nan, math.inf])
def test_a_time_that_is_none_is_refused_and_the_reference_kept(start_time_s: float) -> None:
    controller = controller_of(RollingBase())
    with pytest.raises(ValueError, match="expected a finite time"):
        controller.set_reference_trajectory(made_of(FORTH), start_time_s)
    assert not controller.has_reference_trajectory()
