import math

import pytest

from proctor.robots.stretch_kinematics import (
    FARTHEST_M,
    HIGHEST_M,
    LOWEST_M,
    NEAREST_M,
    hand_in_base,
    reach_of,
)

START = (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("height", "too_high_m"),
    [(0.0, -LOWEST_M), (LOWEST_M, 0), (0.8, 0), (HIGHEST_M, 0), (HIGHEST_M + 0.1, 0.1)],
)
def test_only_the_height_limits_a_robot_that_can_drive(height, too_high_m):
    reach = reach_of(START, (30.0, 40.0, height))
    assert reach.too_high_m == pytest.approx(too_high_m)
    assert reach.is_reachable is (too_high_m == 0)
    assert reach.distance_m == pytest.approx(50.0)


def test_how_far_the_base_must_drive():
    assert reach_of(START, (0.5, 0.0, 0.8)).drive_m == 0
    assert reach_of((1.0, 1.0, 2.0), (1.0, 3.0, 0.8)).drive_m == pytest.approx(2 - FARTHEST_M)
    assert reach_of(START, (0.0, 0.0, 0.8)).drive_m == pytest.approx(NEAREST_M)


def test_no_posture_comes_nearer_or_farther():
    radii = [
        math.hypot(*hand_in_base(0.0, 0.52 * arm / 20, -1.75 + 3.55 * yaw / 50)[0][:2])
        for arm in range(21)
        for yaw in range(51)
    ]
    assert min(radii) == pytest.approx(NEAREST_M)
    assert max(radii) <= FARTHEST_M + 1e-3
