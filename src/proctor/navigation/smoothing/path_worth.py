"""The score of a smooth path: whether it is valid, which of two is better, and about how long it takes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.maps.clearance import clearance_at
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled
from proctor.navigation.path import Leg
from proctor.navigation.timing.curve import Curve
from proctor.navigation.timing.time_optimal import fastest_rates
from proctor.robots.dynamics import Dynamics

ROOM_GROWS = 0.3  # how much clearance a path must gain per metre away from an end that has too little
TORN_RAD = 0.6  # a path that turns by more between two points is torn,
TORN_PER_M = 12.0  # and so is one of such a curvature: a turn on the spot would be smoother
ROUNDING = 1.005  # a robot that is faster than it may be by no more begins as fast as it may
NONE = 1e6  # a limit that never matters


class Needs(NamedTuple):
    """What a path must do."""

    radius_m: float
    kept_m: float  # the clearance that the corners' path has, as far as it is wanted
    longest_m: float  # longer paths are taken only if there is no other
    dynamics: Dynamics
    speed_mps: float = 0.0  # how fast the robot is at the start
    spare_m: float = 0.0  # the least clearance beyond the radius: 0, or less if the corners' path has less


class Worth(NamedTuple):
    """What a path is worth: the less, the better."""

    too_fast_mps: float  # by how much the robot seems to be too fast for it at the start
    lacking_m: float  # how much of the clearance to be kept it lacks at worst
    too_long: bool
    time_s: float


def worth_of(field: ClearanceField, rows: Array, needs: Needs) -> Worth | None:
    """Score a path of (N, 4) rows x, y, yaw, curvature; None if it is torn or too close to something."""
    torn = not (np.abs(np.diff(rows[:, 2])).max() < TORN_RAD and np.abs(rows[:, 3]).max() < TORN_PER_M)
    spare, lacking = spare_and_lacking_m(field, rows, needs.radius_m, needs.kept_m)
    if torn or not spare > needs.spare_m:
        return None
    time_s, highest_mps = traversal(rows, Limits.of(needs.dynamics), needs.speed_mps)
    too_long = path_length(rows[:, :2]) > needs.longest_m
    return Worth(max(0.0, needs.speed_mps - highest_mps), max(0.0, lacking), too_long, time_s)


def can_begin(rows: Array, needs: Needs) -> bool:
    """Tell whether the robot is not too fast for a path that begins where it is."""
    if needs.speed_mps == 0.0:
        return True
    curve = Curve.of_leg(Leg(points=rows[:, :2], yaw=rows[:, 2], curvature=rows[:, 3]))
    if curve is None:
        return False
    if needs.dynamics.drive == "holonomic":  # it need not turn with the path
        curve = curve.with_yaw(np.zeros(len(curve.knots)), np.zeros(len(curve.knots)))
    return needs.speed_mps <= ROUNDING * fastest_rates(curve, needs.dynamics, needs.speed_mps)[1]


@compiled
def spare_and_lacking_m(
    field: ClearanceField, points: Array, needed_m: float, wanted_m: float
) -> tuple[float, float]:
    """Return the least spare clearance and the most that lacks; less is needed near an end that has less."""
    first, last = points[0], points[-1]
    at_first, at_last = clearance_at(field, first[0], first[1])[0], clearance_at(field, last[0], last[1])[0]
    spare, lacking = math.inf, -math.inf
    for i in range(1, points.shape[0] - 1):
        x, y = points[i, 0], points[i, 1]
        possible = at_first + ROOM_GROWS * math.hypot(x - first[0], y - first[1])
        possible = min(possible, at_last + ROOM_GROWS * math.hypot(x - last[0], y - last[1]))
        here = clearance_at(field, x, y)[0]
        spare = min(spare, here - min(needed_m, possible))
        lacking = max(lacking, min(wanted_m, possible) - here)
    return spare, lacking


class Limits(NamedTuple):
    """What a robot can do, as compiled functions take it."""

    v_max: float
    omega_max: float
    a_max: float
    alpha_max: float
    sideways_max: float  # metres per second squared, across the path

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

    Every point of the (N, 4) rows x, y, yaw, curvature has a speed at which turning rate and its change
    stay within their limits; between them the robot speeds up and brakes as hard as it may. If it begins
    too fast, the time is that of beginning as fast as it may.
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
