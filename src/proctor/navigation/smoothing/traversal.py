"""How long a robot takes along a path, roughly and quickly: to choose between paths."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.robots.dynamics import Dynamics

NONE = 1e6
"""A limit that never matters."""


class Limits(NamedTuple):
    """What a robot can do, as compiled functions take it."""

    v_max: float
    omega_max: float
    a_max: float
    alpha_max: float
    sideways_max: float
    """Metres per second squared, across the path."""

    @classmethod
    def of(cls, dynamics: Dynamics) -> Limits:
        """Return the limits along a path: a holonomic base need not turn with it."""
        if dynamics.drive == "holonomic":
            return cls(dynamics.v_max, NONE, dynamics.a_max, NONE, dynamics.a_max)
        return cls(dynamics.v_max, dynamics.omega_max, dynamics.a_max, dynamics.alpha_max, NONE)


@compiled
def most_gain(curvature: float, change: float, square: float, limits: Limits) -> float:
    """Return the most acceleration that leaves the turning within its limit, at a squared speed."""
    bend = abs(curvature)
    if bend < 1e-9:
        return limits.a_max
    spare = limits.alpha_max - math.copysign(change, change * curvature) * square
    return min(limits.a_max, max(spare, 0.0) / bend)


@compiled
def traversal(rows: Array, limits: Limits, start_mps: float) -> tuple[float, float]:
    """Return about how long it takes along a path to a stop at its end, and how fast it may begin at most.

    Every point has a speed at which turning rate and its change stay within their limits; between
    them the robot speeds up and brakes as hard as it may. If it begins too fast, the time is that of
    beginning as fast as it may.

    Args:
        rows: (N, 4) x, y, yaw and curvature along the path.
        limits: What the robot can do.
        start_mps: Speed at the first point.
    """
    last = rows.shape[0] - 1
    steps, changes, squares = np.empty(last), np.empty(last + 1), np.empty(last + 1)
    for i in range(last):
        steps[i] = max(math.hypot(rows[i + 1, 0] - rows[i, 0], rows[i + 1, 1] - rows[i, 1]), 1e-9)
    for i in range(last + 1):
        before, after = max(i - 1, 0), min(i + 1, last)
        changes[i] = (rows[after, 3] - rows[before, 3]) / (
            steps[before] + (steps[i] if 0 < i < last else 0.0)
        )
        bend = max(abs(rows[i, 3]), 1e-9)
        squares[i] = min(limits.v_max**2, (limits.omega_max / bend) ** 2, limits.sideways_max / bend)
        squares[i] = min(squares[i], limits.alpha_max / max(abs(changes[i]), 1e-9))
    squares[last] = 0.0
    for i in range(last - 1, -1, -1):
        gain = most_gain(rows[i + 1, 3], -changes[i + 1], squares[i + 1], limits)
        squares[i] = min(squares[i], squares[i + 1] + 2.0 * gain * steps[i])
    highest_mps = math.sqrt(squares[0])
    squares[0] = min(squares[0], start_mps * start_mps)
    time_s = 0.0
    for i in range(last):
        gain = most_gain(rows[i, 3], changes[i], squares[i], limits)
        squares[i + 1] = min(squares[i + 1], squares[i] + 2.0 * gain * steps[i])
        time_s += 2.0 * steps[i] / max(math.sqrt(squares[i]) + math.sqrt(squares[i + 1]), 1e-6)
    return time_s, highest_mps
