"""The score of a smooth path: whether it is valid, which of two is better, and about how long it takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.paths import Limits, spare_and_lacking_m, traversal
from proctor.navigation.path import Leg
from proctor.navigation.timing.curve import Curve
from proctor.navigation.timing.time_optimal import fastest_rates
from proctor.robots.dynamics import Dynamics

TORN_RAD = 0.6  # a path that turns by more between two points is torn,
TORN_PER_M = 12.0  # and so is one of such a curvature: a turn on the spot would be smoother
ROUNDING = 1.005  # a robot that is faster than it may be by no more begins as fast as it may


class PathRequirements(NamedTuple):
    """What a path must do."""

    radius_m: float
    kept_m: float  # the clearance that the corners' path has, as far as it is wanted
    longest_m: float  # longer paths are taken only if there is no other
    dynamics: Dynamics
    speed_mps: float = 0.0  # how fast the robot is at the start
    spare_m: float = 0.0  # the least clearance beyond the radius: 0, or less if the corners' path has less


class PathScore(NamedTuple):
    """How good a path is: the less, the better."""

    too_fast_mps: float  # by how much the robot seems to be too fast for it at the start
    lacking_m: float  # how much of the clearance to be kept it lacks at worst
    too_long: bool
    time_s: float


def score_path(field: ClearanceField, rows: Array, required: PathRequirements) -> PathScore | None:
    """Score a path of (N, 4) rows x, y, yaw, curvature; None if it is torn or too close to something."""
    torn = not (np.abs(np.diff(rows[:, 2])).max() < TORN_RAD and np.abs(rows[:, 3]).max() < TORN_PER_M)
    spare, lacking = spare_and_lacking_m(field, rows, required.radius_m, required.kept_m)
    if torn or not spare > required.spare_m:
        return None
    time_s, highest_mps = traversal(rows, _limits(required.dynamics), required.speed_mps)
    too_long = path_length(rows[:, :2]) > required.longest_m
    return PathScore(max(0.0, required.speed_mps - highest_mps), max(0.0, lacking), too_long, time_s)


def can_begin(rows: Array, required: PathRequirements) -> bool:
    """Tell whether the robot is not too fast for a path that begins where it is."""
    if required.speed_mps == 0.0:
        return True
    curve = Curve.of_leg(Leg(points=rows[:, :2], yaw=rows[:, 2], curvature=rows[:, 3]))
    if curve is None:
        return False
    if required.dynamics.drive == "holonomic":  # it need not turn with the path
        curve = curve.with_yaw(np.zeros(len(curve.knots)), np.zeros(len(curve.knots)))
    return required.speed_mps <= ROUNDING * fastest_rates(curve, required.dynamics, required.speed_mps)[1]


def _limits(dynamics: Dynamics) -> Limits:
    """Return the limits along a path: a holonomic base need not turn with it."""
    unlimited = 1e6
    if dynamics.drive == "holonomic":
        return Limits(dynamics.v_max, unlimited, dynamics.a_max, unlimited, dynamics.a_max)
    return Limits(dynamics.v_max, dynamics.omega_max, dynamics.a_max, dynamics.alpha_max, unlimited)
