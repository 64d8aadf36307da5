"""How long a robot takes along a path, roughly and quickly: to choose between paths."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.navigation.compiled import compiled


@compiled
def most_gain(curvature: float, change: float, square: float, a_max: float, alpha_max: float) -> float:
    """Return the most acceleration that leaves the turning within its limit, at a squared speed."""
    bend = abs(curvature)
    if bend < 1e-9:
        return a_max
    spare = alpha_max - math.copysign(change, change * curvature) * square
    return min(a_max, max(spare, 0.0) / bend)


@compiled
def traversal_time_s(rows: Array, limits: Array, start_mps: float) -> float:
    """Return about how long it takes to drive along a path and to stop at its end; infinite if it cannot be.

    Every point has a speed at which turning rate and its change stay within their limits; between
    them the robot speeds up and brakes as hard as it may.

    Args:
        rows: (N, 4) x, y, yaw and curvature along the path.
        limits: Largest speed, turning rate, acceleration and turning acceleration.
        start_mps: Speed at the first point.
    """
    v_max, omega_max, a_max, alpha_max = limits[0], limits[1], limits[2], limits[3]
    last = rows.shape[0] - 1
    steps, changes, squares = np.empty(last), np.empty(last + 1), np.empty(last + 1)
    for i in range(last):
        steps[i] = max(math.hypot(rows[i + 1, 0] - rows[i, 0], rows[i + 1, 1] - rows[i, 1]), 1e-9)
    for i in range(last + 1):
        before, after = max(i - 1, 0), min(i + 1, last)
        changes[i] = (rows[after, 3] - rows[before, 3]) / (
            steps[before] + (steps[i] if 0 < i < last else 0.0)
        )
        speed = min(v_max, omega_max / max(abs(rows[i, 3]), 1e-9))
        squares[i] = min(speed * speed, alpha_max / max(abs(changes[i]), 1e-9))
    squares[last] = 0.0
    for i in range(last - 1, -1, -1):
        gain = most_gain(rows[i + 1, 3], -changes[i + 1], squares[i + 1], a_max, alpha_max)
        squares[i] = min(squares[i], squares[i + 1] + 2.0 * gain * steps[i])
    if start_mps * start_mps > squares[0] + 1e-6:
        return math.inf
    squares[0] = start_mps * start_mps
    time_s = 0.0
    for i in range(last):
        gain = most_gain(rows[i, 3], changes[i], squares[i], a_max, alpha_max)
        squares[i + 1] = min(squares[i + 1], squares[i] + 2.0 * gain * steps[i])
        time_s += 2.0 * steps[i] / max(math.sqrt(squares[i]) + math.sqrt(squares[i + 1]), 1e-6)
    return time_s
