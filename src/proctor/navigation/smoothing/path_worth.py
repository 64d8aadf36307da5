"""What a smooth path is worth: whether it is valid, and which of two is better."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.maps.clearance import clearance_at
from proctor.navigation.maps.clearance_field import ClearanceField
from proctor.navigation.path import Leg
from proctor.navigation.smoothing.traversal import Limits, traversal
from proctor.navigation.timing.curve import Curve
from proctor.navigation.timing.time_optimal import fastest_rates
from proctor.robots.dynamics import Dynamics

ROOM_GROWS = 0.3
"""How much clearance a path must gain per metre away from an end that has too little."""
TORN_RAD = 0.6
"""A path that turns by more between two points is torn,"""
TORN_PER_M = 12.0
"""and so is one of such a curvature: a turn on the spot would be smoother."""
ROUNDING = 1.005
"""A robot that is faster than it may be by no more begins as fast as it may."""


class Needs(NamedTuple):
    """What a path must do."""

    radius_m: float
    kept_m: float
    """The clearance that the corners' path has, as far as it is wanted."""
    longest_m: float
    """Longer paths are taken only if there is no other."""
    dynamics: Dynamics
    speed_mps: float = 0.0
    """How fast the robot is at the start."""
    spare_m: float = 0.0
    """The least clearance beyond the radius: 0, or less if the corners' path has less."""

    @property
    def stop_m(self) -> float:
        """How far the robot goes until it could stand."""
        return self.dynamics.stopping_distance_m(self.speed_mps)


class Worth(NamedTuple):
    """What a path is worth: the less, the better."""

    too_fast_mps: float
    """By how much the robot seems to be too fast for it at the start."""
    lacking_m: float
    """How much of the clearance to be kept it lacks at worst."""
    too_long: bool
    time_s: float


def worth_of(field: ClearanceField, rows: Array, needs: Needs) -> Worth | None:
    """Return what a path is worth; None if it is torn or too close to something.

    Args:
        field: The map.
        rows: (N, 4) x, y, yaw and curvature along the path.
        needs: What it must do.
    """
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
    """Return the least clearance beyond what is needed, and the most that lacks to what is wanted.

    Near an end that has less itself, less is needed and wanted.
    """
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
