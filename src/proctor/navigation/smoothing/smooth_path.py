"""Corners to curves: a path that a robot can drive without stopping, quickly and clear of obstacles.

What a planner returns is straight lines between corners. Corners that it does not need are left out
(`shortcut`), a B-spline is laid along the rest and let go like an elastic band (`band_stages`), and of the
curves that it goes through, the best that is valid is taken (`path_worth`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from proctor.core.geometry import path_length, wrap_angle
from proctor.core.types import Array
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.navigation.maps.clearance import least_clearance
from proctor.navigation.maps.clearance_field import ClearanceField
from proctor.navigation.path import Leg
from proctor.navigation.smoothing.band_stages import Heading, band_stages
from proctor.navigation.smoothing.bspline import basis, sample_curve
from proctor.navigation.smoothing.lead_in import lead_ins
from proctor.navigation.smoothing.path_worth import Needs, can_begin, spare_and_lacking_m, worth_of
from proctor.navigation.smoothing.shortcut import least_on_way, shortcut
from proctor.robots.dynamics import Dynamics

SPACING_M = 0.025
"""The farthest that two points of a leg are apart."""
ROUGH_M = 0.05
"""The same while paths are compared."""
SHORTEST_M = 1e-4
"""Shorter paths have no direction to speak of."""
SPANS_M = (0.2, 0.1, 0.05)
"""Lengths of a curve's spans; the next is tried if the one before left no valid path."""
ASIDE_RAD = 0.8
"""A path that begins further to the side of a moving robot needs a way to get onto it."""
LONGEST = 1.04
"""Length of a smooth path, by that of its corners', from which on it is only a last resort."""
GIVE_M = 0.002
"""What may lack to the clearance that is wanted."""
MOST_TRIES = 8
"""How many of the best curves are looked at closely."""


def smooth_path(
    field: ClearanceField,
    points: Array,
    *,
    radius_m: float,
    margin_m: float,
    start: Heading | None = None,
    speed_mps: float = 0.0,
    dynamics: Dynamics | None = None,
) -> tuple[tuple[Leg, ...], float]:
    """Make a path smooth: one leg of continuous curvature, as quick to drive as was found.

    If there is no such leg with room for the robot, the legs are the straight parts of the path.

    Args:
        field: The map.
        points: (N, 2) corners, valid for the robot.
        radius_m: The robot's radius. Every point of a smooth leg has more clearance, except close to an end
            that has less; where the path of the corners has less, it has no less than that.
        margin_m: What is kept beyond it if the corners' path keeps it.
        start: Yaw and curvature with which the path must begin, for a robot that is moving; any if missing.
        speed_mps: How fast it is then.
        dynamics: What the robot can do.

    Returns:
        The legs, and the least clearance along them.

    Raises:
        NavigationFailure: The path has no length, or cannot begin as `start` says.
        ValueError: The points are not a path.
    """
    corners = np.ascontiguousarray(points, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 2 or not np.isfinite(corners).all():
        raise ValueError(f"expected (N, 2) finite points, N at least 2, found shape {corners.shape}")
    wanted_m = radius_m + margin_m
    corners = shortcut(field, corners, wanted_m)
    length_m = path_length(corners)
    if length_m < SHORTEST_M:
        x, y = corners[-1]
        raise _infeasible(f"expected a path, found start and goal at one place, ({x:.3f}, {y:.3f})")
    raw_m = least_on_way(field, corners)
    if start is None and len(corners) == 2:
        return _straight_legs(corners), raw_m
    kept_m = max(radius_m, min(wanted_m, raw_m) - GIVE_M)
    needs = Needs(radius_m, kept_m, LONGEST * length_m, dynamics or Dynamics(), speed_mps)
    rows = _smooth_rows(field, corners, wanted_m, start, needs)
    if rows is None and raw_m < radius_m:
        raw = np.concatenate([leg.points for leg in _straight_legs(corners)])
        spare_m = spare_and_lacking_m(field, raw, radius_m, radius_m)[0]
        rows = _smooth_rows(field, corners, wanted_m, start, needs._replace(spare_m=min(spare_m, 0.0)))
    if rows is not None:
        leg = _leg(rows, corners, start)
        return (leg,), least_clearance(field, leg.points)
    if start is not None:
        heading = f"yaw {start[0]:.2f}, curvature {start[1]:.2f}"
        raise _infeasible(f"there is no smooth path that begins with {heading} at {speed_mps:.2f} m/s")
    return _straight_legs(corners), raw_m


def _smooth_rows(
    field: ClearanceField, corners: Array, wanted_m: float, start: Heading | None, needs: Needs
) -> Array | None:
    """Return (N, 4) x, y, yaw and curvature along the best smooth path; None if none is valid."""
    for span_m, guides in _attempts(corners, start, needs):
        bands = (band_stages(field, guide, span_m, wanted_m, start, needs.stop_m) for guide in guides)
        candidates = [controls for stages in bands for controls in stages]
        worths = [worth_of(field, _rows(controls, ROUGH_M), needs) for controls in candidates]
        order = sorted((worth, index) for index, worth in enumerate(worths) if worth is not None)
        for _, index in order[:MOST_TRIES]:
            rows = _rows(candidates[index], SPACING_M)
            if worth_of(field, rows, needs) is not None and can_begin(rows, needs):
                return rows
    return None


def _attempts(corners: Array, start: Heading | None, needs: Needs) -> Iterator[tuple[float, Iterable[Array]]]:
    """Return what to try in turn: the length of a span, and paths to lay bands along."""
    if start is None:
        yield from ((span_m, [corners]) for span_m in SPANS_M)
        return
    ahead = corners[1] - corners[0]
    if abs(wrap_angle(math.atan2(ahead[1], ahead[0]) - start[0])) < ASIDE_RAD:
        yield SPANS_M[0], [corners]
    yield SPANS_M[0], [*lead_ins(corners, start[0], needs.speed_mps, needs.dynamics), corners]


def _rows(controls: Array, spacing_m: float) -> Array:
    """Return points of a curve, no farther apart than this, with yaw and curvature."""
    longest_m = float(np.linalg.norm(np.diff(controls, axis=0), axis=1).max())
    return sample_curve(controls, basis(max(1, math.ceil(longest_m / spacing_m))))


def _leg(rows: Array, corners: Array, start: Heading | None) -> Leg:
    """Return rows as a leg that has its ends exactly where they shall be."""
    points, yaw = rows[:, :2].copy(), rows[:, 2].copy()
    points[0], points[-1] = corners[0], corners[-1]
    if start is not None:
        yaw += round((start[0] - yaw[0]) / math.tau) * math.tau
    return Leg(points=points, yaw=yaw, curvature=rows[:, 3].copy())


def _straight_legs(corners: Array) -> tuple[Leg, ...]:
    """Return one leg for each straight part of a path."""
    moves = np.diff(corners, axis=0)
    headings = np.unwrap(np.arctan2(moves[:, 1], moves[:, 0]))
    legs = []
    for a, b, yaw in zip(corners[:-1], corners[1:], headings, strict=True):
        count = max(2, math.ceil(math.dist(a, b) / SPACING_M) + 1)
        legs.append(Leg(points=np.linspace(a, b, count), yaw=np.full(count, yaw), curvature=np.zeros(count)))
    return tuple(legs)


def _infeasible(message: str) -> NavigationFailure:
    return NavigationFailure(Reason.INFEASIBLE_TRAJECTORY, message)
