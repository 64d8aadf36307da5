"""Corners to curves: a path that a robot can drive without stopping, quickly and clear of obstacles.

A planner returns straight lines between corners. Corners that are not needed are left out (`shortcut`), a
B-spline is laid along the rest and let go like an elastic band (`band_stages`), and of its stages the best
valid one is taken (`path_worth`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from proctor.core.geometry import evenly_spaced, path_length, wrap_angle
from proctor.core.types import Array
from proctor.maps.clearance import clearance_at, least_clearance
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled
from proctor.maps.failure import NavigationFailure, Reason
from proctor.navigation.path import Leg
from proctor.navigation.smoothing.bspline import basis, sample_curve
from proctor.navigation.smoothing.elastic_band import Heading, band_stages
from proctor.navigation.smoothing.path_worth import Needs, can_begin, spare_and_lacking_m, worth_of
from proctor.robots.dynamics import Dynamics

SPACING_M = 0.025  # the farthest that two points of a leg are apart
ROUGH_M = 0.05  # the same while paths are compared
SPANS_M = (0.2, 0.1, 0.05)  # of a curve; the next is tried if the one before left no valid path
ASIDE_RAD = 0.8  # a path that begins further to the side of a moving robot needs a way to get onto it
LONGEST = 1.04  # length of a smooth path, by that of its corners', from which on it is only a last resort
GIVE_M = 0.002  # what may lack to the clearance that is wanted
STEP_M = 0.05
TIGHTEST_M = 0.2  # radius of the tightest turn that is tried
AHEAD = (0.0, 0.5, 0.8)  # shares of the stopping distance for which the robot brakes before it turns
WIDER = (1.0, 2.5)  # and then turns at these multiples of the tightest turn that its speed allows
STEEPEST = math.sqrt(2.0)  # a clearance that is interpolated changes by at most this much per metre
MISSES = 3  # how many corners in a row may be out of sight before those behind them are not looked at


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
    """Make a path of (N, 2) corners smooth: one leg of continuous curvature, as quick to drive as was found.

    Returns the legs and the least clearance along them. If there is no smooth leg with room for the
    robot, the legs are the straight parts of the path. Every point of a smooth leg has more clearance
    than `radius_m`, except close to an end that has less; where the path of the corners has less, it has
    no less than that. `margin_m` is kept beyond the radius if the corners' path keeps it. `start` is yaw
    and curvature with which the path of a moving robot must begin.

    Raises NavigationFailure if the path has no length, or cannot begin as `start` says.
    """
    corners = np.ascontiguousarray(points, dtype=float)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 2 or not np.isfinite(corners).all():
        raise ValueError(f"expected (N, 2) finite points, N at least 2, found shape {corners.shape}")
    wanted_m = radius_m + margin_m
    corners = shortcut(field, corners, wanted_m)
    length_m = path_length(corners)
    if length_m < 1e-4:  # shorter paths have no direction to speak of
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
        stop_m = needs.dynamics.stopping_distance_m(needs.speed_mps)
        bands = (band_stages(field, guide, span_m, wanted_m, start, stop_m) for guide in guides)
        candidates = [controls for stages in bands for controls in stages]
        worths = [worth_of(field, _rows(controls, ROUGH_M), needs) for controls in candidates]
        order = sorted((worth, index) for index, worth in enumerate(worths) if worth is not None)
        for _, index in order[:8]:  # how many of the best curves are looked at closely
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


@compiled
def nearest_from(path: Array, near: int, x: float, y: float) -> int:
    """Return the first point of a path, from one on, after which the way leads away from a place."""
    while near < path.shape[0] - 1:
        here = math.hypot(path[near, 0] - x, path[near, 1] - y)
        if math.hypot(path[near + 1, 0] - x, path[near + 1, 1] - y) > here:
            break
        near += 1
    return near


@compiled
def pursue(path: Array, yaw: float, ahead_m: float, radius_m: float, side: float) -> Array:
    """Return the path of a robot that drives towards a path, turning no tighter than a radius.

    It drives `ahead_m` straight on, then aims at a place on the path (points STEP_M apart) some distance
    ahead until it is on the path; the rest is the path itself. Empty if the robot does not get there.
    `side` is 1 or -1 to turn left or right while the aim is far to the side, 0 for the nearer side.
    """
    most = math.ceil((ahead_m + 4.0 * math.pi * radius_m + 1.0) / STEP_M)
    sight = math.ceil(1.5 * radius_m / STEP_M) + 1
    way = np.empty((most + path.shape[0], 2))
    x, y, near = path[0, 0], path[0, 1], 0
    for step in range(most):
        way[step, 0], way[step, 1] = x, y
        near = nearest_from(path, near, x, y)
        aim = min(near + sight, path.shape[0] - 1)
        aside = math.atan2(path[aim, 1] - y, path[aim, 0] - x) - yaw
        aside = math.atan2(math.sin(aside), math.cos(aside))
        off = math.hypot(path[near, 0] - x, path[near, 1] - y)
        if step * STEP_M < ahead_m:
            aside = 0.0
        elif off < STEP_M and abs(aside) < 0.1 and aim > near:
            rest = path.shape[0] - near - 1
            for i in range(1, rest + 1):
                way[step + i, 0], way[step + i, 1] = path[near + i, 0], path[near + i, 1]
            return way[: step + 1 + rest]
        if side * aside < 0.0 and abs(aside) > 0.5 * math.pi:
            aside += side * 2.0 * math.pi
        yaw += min(max(aside, -STEP_M / radius_m), STEP_M / radius_m)
        x, y = x + STEP_M * math.cos(yaw), y + STEP_M * math.sin(yaw)
    return way[:0]


def lead_ins(corners: Array, yaw: float, speed_mps: float, dynamics: Dynamics) -> Iterator[Array]:
    """Return paths that begin with a heading and then follow the corners; tight turns and wide ones."""
    path = evenly_spaced(corners, STEP_M)
    ahead = corners[1] - corners[0]
    aside = wrap_angle(math.atan2(ahead[1], ahead[0]) - yaw)
    sides = (0.0,) if abs(aside) < math.radians(100) else (1.0, -1.0)  # beyond it, try both
    stop_m = dynamics.stopping_distance_m(speed_mps)
    for share, wider, side in itertools.product(AHEAD, WIDER, sides):
        slowed_mps = speed_mps * math.sqrt(1.0 - share)
        radius_m = wider * max(TIGHTEST_M, slowed_mps / dynamics.omega_max)
        way = pursue(path, yaw, share * stop_m, radius_m, side)
        if len(way) > 1:
            way[-1] = corners[-1]
            yield way


@compiled
def least_along(field: ClearanceField, a: Array, b: Array, enough_m: float) -> float:
    """Return the least clearance of a straight line, or some value above `enough_m` if it is above it.

    Where there is more room than enough, no lack can be nearer than the room that is spare.
    """
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    finest = 0.5 * field.resolution_m
    least, way = math.inf, 0.0
    while True:
        share = min(way / max(length, 1e-12), 1.0)
        here = clearance_at(field, a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))[0]
        least = min(least, here)
        if way >= length:
            return least
        way = min(way + max((here - min(enough_m, least)) / STEEPEST, finest), length)


@compiled
def least_on_way(field: ClearanceField, corners: Array) -> float:
    """Return the least clearance along a path."""
    least = math.inf
    for i in range(corners.shape[0] - 1):
        least = min(least, least_along(field, corners[i], corners[i + 1], least))
    return least


@compiled
def corners_kept(field: ClearanceField, points: Array, enough_m: float) -> Array:
    """Return those corners of a path that it needs.

    From each corner the path goes to the farthest one in sight. A straight line counts as free if it has
    enough clearance, or at least as much as the path along the corners that it leaves out.
    """
    count = points.shape[0]
    along = np.empty(count - 1)
    for i in range(count - 1):
        along[i] = least_along(field, points[i], points[i + 1], enough_m)
    kept = np.empty_like(points)
    kept[0, 0], kept[0, 1] = points[0, 0], points[0, 1]
    size, at = 1, 0
    while at < count - 1:
        onward, misses, least = at + 1, 0, along[at]
        for other in range(at + 2, count):
            least = min(least, along[other - 1])
            if least_along(field, points[at], points[other], enough_m) >= min(least, enough_m):
                onward, misses = other, 0
            else:
                misses += 1
                if misses == MISSES:
                    break
        kept[size, 0], kept[size, 1] = points[onward, 0], points[onward, 1]
        size, at = size + 1, onward
    return kept[:size]


def shortcut(field: ClearanceField, points: Array, enough_m: float) -> Array:
    """Return a path's ends and the corners between that it needs, forward and backward."""
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6  # points nearer to each other are one
    distinct = np.concatenate([points[:1], points[1:][apart]])
    distinct[-1] = points[-1]
    if len(distinct) < 3:
        return distinct
    forward = corners_kept(field, distinct, enough_m)
    backward = corners_kept(field, np.ascontiguousarray(forward[::-1]), enough_m)
    return np.ascontiguousarray(backward[::-1])
