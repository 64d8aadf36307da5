"""Who is told to move and does not, is held."""

import math

import pytest

from proctor.control.stall import StallWatch
from proctor.core.types import Pose2

PERIOD_S = 0.05


class RealTime:
    """Real time as a test has it."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


def after(duration_s, *, asked=(0.1, 0.0), got=(0.0, 0.0), watch=None, start_s=100.0, real=None, rtf=1.0):
    """Return whether a robot is stalled that was asked for one velocity and moved at another."""
    real = real or RealTime()
    watch = watch or StallWatch(real)
    for period in range(round(duration_s / PERIOD_S)):
        watch.command(start_s + period * PERIOD_S, pose_at(period * PERIOD_S, got), *asked)
        real.now_s += PERIOD_S / rtf
    return watch.is_stalled(start_s + duration_s, pose_at(duration_s, got))


def pose_at(time_s, velocity):
    return Pose2(velocity[0] * time_s, 0.0, math.remainder(velocity[1] * time_s, math.tau))


@pytest.mark.parametrize(
    "asked", [(0.1, 0.0), (-0.1, 0.0), (0.0, 0.3), (0.0, -0.3), (0.1, 0.3), (0.0, 0.0, 0.1)]
)
def test_who_does_not_move_for_half_a_second_is_stalled(asked):
    assert not after(0.45, asked=asked)
    assert after(0.55, asked=asked)
    assert after(3.0, asked=asked)


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_who_moves_is_not_stalled_though_slower_than_told(share):
    assert not after(3.0, asked=(0.1, 0.0), got=(share * 0.1, 0.0))
    assert not after(3.0, asked=(0.0, -3.0), got=(0.0, -share * 3.0))


def test_who_turns_against_a_wall_but_should_drive_is_stalled():
    assert after(1.0, asked=(0.1, 0.3), got=(0.0, 0.3))


def test_a_command_has_real_time_to_get_through_however_fast_the_robots_time_runs():
    assert not after(4.5, rtf=10.0)
    assert after(5.5, rtf=10.0)
    assert not after(0.45, rtf=0.1), "the robot's time counts as well"


def test_the_real_time_counts_from_the_first_command_after_a_stop():
    real = RealTime()
    watch = StallWatch(real)
    assert after(5.5, rtf=10.0, real=real, watch=watch)
    watch.command(105.5, Pose2(0.0, 0.0, 0.0), 0.0, 0.0)
    real.now_s += 60.0
    assert not after(4.5, rtf=10.0, real=real, watch=watch, start_s=200.0)


def test_who_is_told_to_go_to_and_fro_need_not_get_anywhere():
    watch = StallWatch(RealTime())
    for period in range(60):
        there = period % 2
        pose = Pose2(0.005 * there, 0.0, 0.015 * there)
        watch._real_s.now_s += PERIOD_S
        assert not watch.is_stalled(period * PERIOD_S, pose)
        watch.command(period * PERIOD_S, pose, *((-0.1, -0.3) if there else (0.1, 0.3)))


def test_a_turn_on_the_spot_is_judged_as_a_turn_though_the_command_drives_a_little():
    assert not after(2.0, asked=(0.001, 0.3), got=(0.0, 0.3))
    assert after(2.0, asked=(0.001, 0.3), got=(0.0, 0.0))


def test_what_is_remembered_stays_small():
    watch = StallWatch(RealTime())
    for period in range(1000):
        watch.command(period * PERIOD_S, Pose2(0.0, 0.0, 0.0), 0.1, 0.0)
    assert len(watch._samples) < 20


def test_a_stop_begins_anew():
    real = RealTime()
    watch = StallWatch(real)
    assert after(1.0, watch=watch, real=real)
    watch.command(101.0, Pose2(0.0, 0.0, 0.0), 0.0, 0.0)
    assert not watch.is_stalled(105.0, Pose2(0.0, 0.0, 0.0))
    assert not after(0.3, watch=watch, start_s=105.0, real=real)


def test_who_got_going_and_is_then_held_is_stalled_soon():
    real = RealTime()
    watch = StallWatch(real)
    for period in range(100):
        time_s = real.now_s = period * PERIOD_S
        pose = Pose2(min(0.1 * time_s, 0.2), 0.0, 0.0)  # held after 2 s
        watch.command(time_s, pose, 0.1, 0.0)
        if watch.is_stalled(time_s + PERIOD_S, pose):
            break
    assert 2.4 < time_s < 2.7


def test_a_robot_that_turned_and_only_begins_to_drive_is_not_stalled():
    watch, x, late_s = StallWatch(), 0.0, 0.1
    for period in range(120):
        time_s = period * PERIOD_S
        drives_s = max(0.0, time_s - 1.0)  # after a second of turning, with the creep of a controller
        told_mps, omega = (0.5 * drives_s, 0.0) if drives_s else (1e-4, 0.5)
        x = 0.25 * max(0.0, drives_s - late_s) ** 2
        pose = Pose2(x, 0.0, 0.5 * min(time_s, 1.0))
        watch.command(time_s, pose, told_mps, omega)
        assert not watch.is_stalled(time_s, pose), time_s
