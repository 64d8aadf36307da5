"""Who is told to move and does not, is held."""

import math

import pytest

from proctor.control.stall import StallWatch
from proctor.core.types import Pose2

PERIOD_S = 0.05


def after(duration_s, *, asked=(0.1, 0.0), got=(0.0, 0.0), watch=None, start_s=100.0):
    """Return whether a robot is stalled that was asked for one velocity and moved at another."""
    watch = watch or StallWatch()
    for period in range(round(duration_s / PERIOD_S)):
        watch.command(start_s + period * PERIOD_S, pose_at(period * PERIOD_S, got), *asked)
    return watch.is_stalled(start_s + duration_s, pose_at(duration_s, got))


def pose_at(time_s, velocity):
    return Pose2(velocity[0] * time_s, 0.0, math.remainder(velocity[1] * time_s, math.tau))


@pytest.mark.parametrize("asked", [(0.1, 0.0), (-0.1, 0.0), (0.0, 0.3), (0.0, -0.3), (0.1, 0.3)])
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


def test_a_stop_begins_anew():
    watch = StallWatch()
    assert after(1.0, watch=watch)
    watch.command(101.0, Pose2(0.0, 0.0, 0.0), 0.0, 0.0)
    assert not watch.is_stalled(105.0, Pose2(0.0, 0.0, 0.0))
    assert not after(0.3, watch=watch, start_s=105.0)


def test_who_got_going_and_is_then_held_is_stalled_soon():
    watch = StallWatch()
    for period in range(100):
        time_s = period * PERIOD_S
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
