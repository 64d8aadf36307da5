"""The headings of a holonomic base along its way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.navigation.timing.curve import Curve
from proctor.navigation.timing.moves import turn_to_stop_rad
from proctor.robots.dynamics import Dynamics


def turning_on_the_way(
    ways: Sequence[Curve], dynamics: Dynamics, start: tuple[float, float, float], goal_yaw: float | None
) -> list[Curve]:
    """Return ways with headings that go evenly from the start's to the goal's, the short way around.

    Evenly is about the quickest: either the way or the turn takes as long as it would alone.

    Args:
        ways: One after the other.
        dynamics: The robot's limits.
        start: Yaw, speed and yaw rate. In motion, the yaw rate changes to an even one over a distance in
            which the robot can do it; at rest, the robot has stopped turning when it sets off.
        goal_yaw: The heading at the end; None for that in which the robot can stop turning.
    """
    if not ways:
        return []
    yaw, speed, omega = start
    total_m = sum(curve.length for curve in ways)
    stop_rad = turn_to_stop_rad(omega, dynamics)
    if speed <= 0:
        yaw, stop_rad = yaw + stop_rad, 0.0
    angle_rad = stop_rad if goal_yaw is None else stop_rad + wrap_angle(goal_yaw - yaw - stop_rad)
    turned: list[Curve] = []
    passed_m = 0.0
    slope, more, ramp_m = _ramp(angle_rad, total_m, speed, omega, dynamics)
    for curve in ways:
        way_m = passed_m + curve.knots - curve.knots[0]
        gone = np.minimum(way_m / ramp_m, 1.0)
        yaws = yaw + slope * way_m + more * ramp_m * gone * (1 - gone / 2)
        turned.append(curve.with_yaw(yaws, slope + more * (1 - gone)))
        passed_m += curve.length
    return turned


def _ramp(
    angle_rad: float, total_m: float, speed: float, omega: float, dynamics: Dynamics
) -> tuple[float, float, float]:
    """Return the turn per metre, how much more of it there is at first, and the way until that is gone."""
    slope = angle_rad / total_m
    if speed <= 0:
        return slope, 0.0, total_m
    first, ramp_m = omega / speed, 0.0
    for _ in range(12):  # the two depend on each other; a few rounds settle them
        # With half of the yaw acceleration, so that the robot can also speed up.
        square = min(speed**2 + 2 * dynamics.a_max * ramp_m, max(dynamics.v_max, speed) ** 2)
        ramp_m = min(max(2 * abs(first - slope) * square / dynamics.alpha_max, 1e-3), total_m)
        slope = (angle_rad - first * ramp_m / 2) / (total_m - ramp_m / 2)
    return slope, first - slope, ramp_m
