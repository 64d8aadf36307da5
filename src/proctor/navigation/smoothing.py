"""Corners to curves: a path that a robot can drive without stopping, quickly and clear of obstacles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.navigation.bspline import (
    AT_KNOT,
    BEND_AT_KNOT,
    SLOPE_AT_KNOT,
    basis,
    controls_along,
    sample_curve,
)
from proctor.navigation.clearance import ClearanceField, clearance_at, least_clearance
from proctor.navigation.compiled import compiled
from proctor.navigation.elastic_band import End, relax
from proctor.navigation.failure import NavigationFailure, Reason
from proctor.navigation.lead_in import lead_ins
from proctor.navigation.path import Leg
from proctor.navigation.shortcut import least_on_way, shortcut
from proctor.navigation.traversal import traversal_time_s
from proctor.robots.dynamics import Dynamics

SPACING_M = 0.025
"""The farthest that two points of a leg are apart."""
ROUGH_M = 0.05
"""The same while paths are compared."""
SHORTEST_M = 1e-4
"""Shorter paths have no direction to speak of."""
SPANS_M = (0.2, 0.1, 0.05)
"""Lengths of a band's spans; the next is tried if the one before left no valid path."""
FEWEST_SPANS = 4
STEPS_M = (0.25, 0.4, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6)
"""How far along the band each step of relaxing evens it out."""
LOOSEST = 1e-7
"""The least that a band is held where it is, so that what it is to do is never undetermined."""
LOOKED_AT = (0, 1, 3, 5, 8, 11)
"""The steps after which the band is looked at as a path."""
SPARE_M = 0.01
"""What the band is asked to keep beyond the clearance that is wanted, since it may give way a little."""
LONGEST = 1.04
"""Length of a smooth path, by that of its corners', from which on it is only a last resort."""
GIVE_M = 0.002
"""What may lack to the clearance that is wanted."""
ROOM_GROWS = 0.3
"""How much clearance a path must gain per metre away from an end that has too little."""
SHARPEST_RAD = 0.6
"""A path that turns by more between two points is torn."""


class Worth(NamedTuple):
    """What a path is worth: the less, the better."""

    lacking_m: float
    """How much of the wanted clearance it lacks at worst."""
    too_long: bool
    time_s: float


class Needs(NamedTuple):
    """What a path must do."""

    radius_m: float
    kept_m: float
    """The clearance that the corners' path has, as far as it is wanted."""
    longest_m: float
    """Longer paths are taken only if there is no other."""
    limits: Array
    speed_mps: float


def smooth_path(
    field: ClearanceField,
    points: Array,
    *,
    radius_m: float,
    margin_m: float,
    start: tuple[float, float] | None = None,
    speed_mps: float = 0.0,
    dynamics: Dynamics | None = None,
) -> tuple[tuple[Leg, ...], float]:
    """Make a path smooth: one leg of continuous curvature, as quick to drive as was found.

    If there is no such leg with room for the robot, the legs are the straight parts of the path.

    Args:
        field: The map.
        points: (N, 2) corners, valid for the robot.
        radius_m: The robot's radius. Every point of a smooth leg has more clearance, except close to an end
            that has less.
        margin_m: What is kept beyond it where the corners' path does.
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
    length_m = float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum())
    if length_m < SHORTEST_M:
        x, y = corners[-1]
        raise NavigationFailure(
            Reason.INFEASIBLE_TRAJECTORY,
            f"expected a path, found start and goal at one place ({x:.3f}, {y:.3f})",
        )
    if start is None and len(corners) == 2:
        legs = _straight_legs(corners)
        return legs, least_clearance(field, legs[0].points)
    kept_m = max(radius_m, min(wanted_m, least_on_way(field, corners)) - GIVE_M)
    needs = Needs(radius_m, kept_m, LONGEST * length_m, _limits(dynamics or Dynamics()), speed_mps)
    for span_m in SPANS_M:
        guides = [corners] if start is None else lead_ins(corners, start[0], speed_mps, needs.limits)
        rows = _best(field, [_bands(field, guide, start, span_m, wanted_m) for guide in guides], needs)
        if rows is not None:
            leg = _leg(rows, corners, start)
            return (leg,), least_clearance(field, leg.points)
    if start is not None:
        raise NavigationFailure(
            Reason.INFEASIBLE_TRAJECTORY,
            f"no room to go on from yaw {start[0]:.2f}, curvature {start[1]:.2f} at {speed_mps:.2f} m/s",
        )
    return _straight_legs(corners), least_on_way(field, corners)


def _best(field: ClearanceField, bands: Iterable[Iterator[Array]], needs: Needs) -> Array | None:
    """Return the rows of the best of all bands; None if none is valid."""
    judged = [(_worth(field, _rows(band, ROUGH_M), needs), band) for stages in bands for band in stages]
    valid = [(worth, index) for index, (worth, _) in enumerate(judged) if worth is not None]
    for _, index in sorted(valid):
        rows = _rows(judged[index][1], SPACING_M)
        if _worth(field, rows, needs) is not None:
            return rows
    return None


def _rows(controls: Array, spacing_m: float) -> Array:
    """Return a band's curve as rows of x, y, yaw and curvature."""
    moves = controls[1:] - controls[:-1]
    longest_m = math.sqrt((moves * moves).sum(axis=1).max())
    return sample_curve(controls, basis(max(1, math.ceil(longest_m / spacing_m))))


def _bands(
    field: ClearanceField, guide: Array, start: tuple[float, float] | None, span_m: float, wanted_m: float
) -> Iterator[Array]:
    """Lay a band along a path and let it give way; return its control points at several stages."""
    length_m = float(np.linalg.norm(np.diff(guide, axis=0), axis=1).sum())
    spans = max(FEWEST_SPANS, math.ceil(length_m / span_m))
    span_m = length_m / spans
    controls = controls_along(guide, spans)
    wanted = _wanted(field, guide, spans, span_m, wanted_m + SPARE_M)
    first, last = _start_end(guide[0], span_m, start), End.of(AT_KNOT[None], guide[-1:])
    for step, reach_m in enumerate(STEPS_M):
        stay = max((span_m / reach_m) ** 6, LOOSEST)
        relax(controls, controls.copy(), stay, field, wanted, first, last)
        if step in LOOKED_AT:
            yield controls.copy()


def _wanted(field: ClearanceField, guide: Array, spans: int, span_m: float, wanted_m: float) -> Array:
    """Return the clearances wanted at the knots and between them: less near an end that has less."""
    way = np.arange(2 * spans + 1) * span_m / 2
    first, last = (clearance_at(field, *guide[end])[0] for end in (0, -1))
    return np.minimum(wanted_m, np.minimum(first + ROOM_GROWS * way, last + ROOM_GROWS * way[::-1]))


def _start_end(place: Array, span_m: float, start: tuple[float, float] | None) -> End:
    """Return the conditions at the start: the place, and yaw and curvature if they are given."""
    if start is None:
        return End.of(AT_KNOT[None], place[None])
    yaw, curvature = start
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    wants = np.stack([place, span_m * ahead, span_m * span_m * curvature * left])
    return End.of(np.stack([AT_KNOT, SLOPE_AT_KNOT, BEND_AT_KNOT]), wants)


def _worth(field: ClearanceField, rows: Array, needs: Needs) -> Worth | None:
    """Return what a path is worth; None if it is torn, too close to something or too abrupt."""
    turns, moves = np.abs(np.diff(rows[:, 2])), np.diff(rows[:, :2], axis=0)
    spare, lacking = spare_m(field, rows, needs.radius_m, needs.kept_m)
    if not (turns.max() < SHARPEST_RAD and spare > 0.0):
        return None
    time_s = traversal_time_s(rows, needs.limits, needs.speed_mps)
    too_long = bool(np.hypot(moves[:, 0], moves[:, 1]).sum() > needs.longest_m)
    return Worth(max(0.0, lacking), too_long, time_s) if math.isfinite(time_s) else None


@compiled
def spare_m(field: ClearanceField, rows: Array, needed_m: float, wanted_m: float) -> tuple[float, float]:
    """Return the least clearance beyond what is needed, and the most that lacks to what is wanted.

    Near an end that has less itself, less is needed and wanted.
    """
    last = rows.shape[0] - 1
    at_start = clearance_at(field, rows[0, 0], rows[0, 1])[0]
    at_goal = clearance_at(field, rows[last, 0], rows[last, 1])[0]
    spare, lacking = math.inf, -math.inf
    for i in range(1, last):
        x, y = rows[i, 0], rows[i, 1]
        possible = at_start + ROOM_GROWS * math.hypot(x - rows[0, 0], y - rows[0, 1])
        possible = min(possible, at_goal + ROOM_GROWS * math.hypot(x - rows[last, 0], y - rows[last, 1]))
        here = clearance_at(field, x, y)[0]
        spare = min(spare, here - min(needed_m, possible))
        lacking = max(lacking, min(wanted_m, possible) - here)
    return spare, lacking


def _leg(rows: Array, corners: Array, start: tuple[float, float] | None) -> Leg:
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
    for a, b, yaw in zip(corners, corners[1:], headings, strict=False):
        count = max(2, math.ceil(math.dist(a, b) / SPACING_M) + 1)
        legs.append(Leg(points=np.linspace(a, b, count), yaw=np.full(count, yaw), curvature=np.zeros(count)))
    return tuple(legs)


def _limits(dynamics: Dynamics) -> Array:
    return np.array([dynamics.v_max, dynamics.omega_max, dynamics.a_max, dynamics.alpha_max])
