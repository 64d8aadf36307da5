"""Who is told to move and does not, is held."""

import numpy as np
import pytest

from proctor.robots.held import Held

PERIOD_S = 0.05


class Robot:
    """A robot whose odometry comes every 50 ms of its time, at some real-time factor."""

    def __init__(self, real_time_factor=1.0):
        self.now_s, self.real_s, self._rtf = 100.0, 5000.0, real_time_factor
        self.held = Held(lambda: self.real_s)

    def goes(self, duration_s, told, share):
        """Let time pass with the robot doing this share of what it is told; return whether it is held."""
        told = np.array(told)
        for _ in range(round(duration_s / PERIOD_S)):
            self.held.update(
                self.now_s, told, share * float(np.hypot(*told[:2])), share * abs(float(told[2]))
            )
            self.now_s += PERIOD_S
            self.real_s += PERIOD_S / self._rtf
        return self.held.is_held


@pytest.mark.parametrize(
    "told", [(0.3, 0.0, 0.0), (-0.3, 0.0, 0.5), (0.0, 0.2, 0.0), (0.0, 0.0, -0.5), (0.02, 0.0, 0.0)]
)
def test_who_does_not_do_what_it_is_told_for_half_a_second_is_held(told):
    robot = Robot()
    assert not robot.goes(0.5, told, 0.05)
    assert robot.goes(0.1, told, 0.05)
    assert not robot.goes(PERIOD_S, told, 0.5), "a single message that shows motion is enough"
    assert not robot.goes(0.5, told, 0.0)


@pytest.mark.parametrize("share", [0.15, 1.0, 3.0])
def test_who_moves_is_not_held_though_slower_than_told(share):
    assert not Robot().goes(3.0, (0.1, 0.0, 0.0), share)
    assert not Robot().goes(3.0, (0.0, 0.0, -0.3), share)


def test_who_is_told_to_stand_or_nearly_is_not_held():
    assert not Robot().goes(3.0, (0.0, 0.0, 0.0), 0.0)
    assert not Robot().goes(3.0, (0.01, 0.0, 0.01), 0.0)


def test_a_command_has_real_time_to_get_through_however_fast_the_robots_time_runs():
    fast, slow = Robot(real_time_factor=10.0), Robot(real_time_factor=0.1)
    assert not fast.goes(4.5, (0.1, 0.0, 0.0), 0.0)
    assert fast.goes(1.0, (0.1, 0.0, 0.0), 0.0)
    assert not slow.goes(0.4, (0.1, 0.0, 0.0), 0.0), "the robot's time counts as well"


def test_time_that_goes_back_begins_anew():
    robot = Robot()
    assert robot.goes(1.0, (0.1, 0.0, 0.0), 0.0)
    robot.now_s = 1.0
    assert not robot.goes(0.4, (0.1, 0.0, 0.0), 0.0)
