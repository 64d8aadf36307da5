"""Corners to curves: a path that a robot can drive without stopping, quickly and clear of obstacles.

A planner returns straight lines between corners. Corners that are not needed are left out (`shortcut`), a
B-spline is laid along the rest and let go like an elastic band (`band_stages`), and of its stages the best
valid one is taken (`score_path`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import distances_along, evenly_spaced, path_length, wrap_angle
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at, least_clearance
from proctor.kernels.elastic_band import (
    AT_KNOT,
    BEND_AT_KNOT,
    SLOPE_AT_KNOT,
    End,
    basis,
    cap_to_room,
    relax,
    sample_curve,
)
from proctor.kernels.paths import (
    ROOM_GROWS,
    STEP_M,
    Limits,
    corners_kept,
    least_on_way,
    pursue,
    spare_and_lacking_m,
    traversal,
)
from proctor.maps.failure import infeasible
from proctor.navigation.path import Leg
from proctor.navigation.timing.curve import Curve, fastest_rates
from proctor.robots.dynamics import Dynamics

SPACING_M = 0.025  # the farthest that two points of a leg are apart
ROUGH_M = 0.05  # the same while paths are compared
SPANS_M = (0.2, 0.1, 0.05)  # of a curve; the next is tried if the one before left no valid path
ASIDE_RAD = 0.8  # a path that begins further to the side of a moving robot required a way to get onto it
LONGEST = 1.04  # length of a smooth path, by that of its corners', from which on it is only a last resort
AHEAD = (0.0, 0.5, 0.8)  # shares of the stopping distance for which the robot brakes before it turns
WIDER = (1.0, 2.5)  # and then turns at these multiples of the tightest turn that its speed allows
Heading = tuple[float, float]  # yaw and curvature
STEPS_M = (0.25, 0.4, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6)  # range that each step evens out
MOVING_STEPS_M = (0.8, 0.8, 1.2, 1.2, 1.6, 1.6)  # more, as a moving robot turns over a long distance
LOOKED_AT = (0, 1, 3, 5, 8, 11, 13, 15, 17)  # the steps after which the band is taken for a path
STIFFER = 200.0  # how much stiffer a band is at the start of a fast robot; 1 where it can stop
SPARE_M = 0.01  # asked for beyond the wanted clearance, since the band gives way a little


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
        raise infeasible(f"expected a path, found start and goal at one place, ({x:.3f}, {y:.3f})")
    raw_m = least_on_way(field, corners)
    if start is None and len(corners) == 2:
        return _straight_legs(corners), raw_m
    kept_m = max(radius_m, min(wanted_m, raw_m) - 0.002)  # so much may lack to what is wanted
    required = PathRequirements(radius_m, kept_m, LONGEST * length_m, dynamics or Dynamics(), speed_mps)
    rows = _smooth_rows(field, corners, wanted_m, start, required)
    if rows is None and raw_m < radius_m:
        raw = np.concatenate([leg.points for leg in _straight_legs(corners)])
        spare_m = spare_and_lacking_m(field, raw, radius_m, radius_m)[0]
        rows = _smooth_rows(field, corners, wanted_m, start, required._replace(spare_m=min(spare_m, 0.0)))
    if rows is not None:
        leg = _leg(rows, corners, start)
        return (leg,), least_clearance(field, leg.points)
    if start is not None:
        heading = f"yaw {start[0]:.2f}, curvature {start[1]:.2f}"
        raise infeasible(f"there is no smooth path that begins with {heading} at {speed_mps:.2f} m/s")
    return _straight_legs(corners), raw_m


def _smooth_rows(
    field: ClearanceField, corners: Array, wanted_m: float, start: Heading | None, required: PathRequirements
) -> Array | None:
    """Return (N, 4) x, y, yaw and curvature along the best smooth path; None if none is valid."""
    for span_m, guides in _attempts(corners, start, required):
        stop_m = required.dynamics.stopping_distance_m(required.speed_mps)
        bands = (band_stages(field, guide, span_m, wanted_m, start, stop_m) for guide in guides)
        candidates = [controls for stages in bands for controls in stages]
        scores = [score_path(field, _rows(controls, ROUGH_M), required) for controls in candidates]
        order = sorted((score, index) for index, score in enumerate(scores) if score is not None)
        for _, index in order[:8]:  # how many of the best curves are looked at closely
            rows = _rows(candidates[index], SPACING_M)
            if score_path(field, rows, required) is not None and can_begin(rows, required):
                return rows
    return None


def _attempts(
    corners: Array, start: Heading | None, required: PathRequirements
) -> Iterator[tuple[float, Iterable[Array]]]:
    """Return what to try in turn: the length of a span, and paths to lay bands along."""
    if start is None:
        yield from ((span_m, [corners]) for span_m in SPANS_M)
        return
    ahead = corners[1] - corners[0]
    if abs(wrap_angle(math.atan2(ahead[1], ahead[0]) - start[0])) < ASIDE_RAD:
        yield SPANS_M[0], [corners]
    yield SPANS_M[0], [*lead_ins(corners, start[0], required.speed_mps, required.dynamics), corners]


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


def lead_ins(corners: Array, yaw: float, speed_mps: float, dynamics: Dynamics) -> Iterator[Array]:
    """Return paths that begin with a heading and then follow the corners; tight turns and wide ones."""
    path = evenly_spaced(corners, STEP_M)
    ahead = corners[1] - corners[0]
    aside = wrap_angle(math.atan2(ahead[1], ahead[0]) - yaw)
    sides = (0.0,) if abs(aside) < math.radians(100) else (1.0, -1.0)  # beyond it, try both
    stop_m = dynamics.stopping_distance_m(speed_mps)
    for share, wider, side in itertools.product(AHEAD, WIDER, sides):
        slowed_mps = speed_mps * math.sqrt(1.0 - share)
        radius_m = wider * max(0.2, slowed_mps / dynamics.omega_max)  # radius of the tightest turn tried
        way = pursue(path, yaw, share * stop_m, radius_m, side)
        if len(way) > 1:
            way[-1] = corners[-1]
            yield way


def shortcut(field: ClearanceField, points: Array, enough_m: float) -> Array:
    """Return a path's ends and the corners between that it required, forward and backward."""
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-6  # points nearer to each other are one
    distinct = np.concatenate([points[:1], points[1:][apart]])
    distinct[-1] = points[-1]
    if len(distinct) < 3:
        return distinct
    forward = corners_kept(field, distinct, enough_m)
    backward = corners_kept(field, np.ascontiguousarray(forward[::-1]), enough_m)
    return np.ascontiguousarray(backward[::-1])


def band_stages(
    field: ClearanceField, guide: Array, span_m: float, wanted_m: float, start: Heading | None, stop_m: float
) -> Iterator[Array]:
    """Lay a band along a path and let it give way; return its control points at several stages.

    Mostly, the later the stage, the gentler the turns, and the longer the path. `guide` is the path's
    corners (N, 2), `span_m` about the length of a span, `wanted_m` the clearance that the band tries to
    keep, `start` how it must begin, and `stop_m` the distance in which the robot can stop.
    """
    length_m = path_length(guide)
    spans = max(4, math.ceil(length_m / span_m))
    span_m = length_m / spans
    controls = controls_along(guide, spans)
    wanted = _wanted(field, guide, np.linspace(0.0, length_m, 2 * spans + 1), wanted_m + SPARE_M)
    cap_to_room(controls, field, wanted)
    first, last = _first_end(guide[0], span_m, start), End.of(AT_KNOT[None], guide[-1:])
    stiffness = STIFFER ** np.maximum(0.0, 1.0 - np.arange(spans + 2) * span_m / max(stop_m, 1e-9))
    for step, reach_m in enumerate(STEPS_M if start is None else STEPS_M + MOVING_STEPS_M):
        stay = max((span_m / reach_m) ** 6, 1e-7)  # held a little, or what the band does is undetermined
        relax(controls, stay, stiffness, field, wanted, first, last)
        if step in LOOKED_AT:
            yield controls.copy()


def _wanted(field: ClearanceField, guide: Array, way_m: Array, wanted_m: float) -> Array:
    """Return the clearances wanted along the way: less near an end that has less."""
    at_first, at_last = (clearance_at(field, *guide[end])[0] for end in (0, -1))
    from_first, from_last = at_first + ROOM_GROWS * way_m, at_last + ROOM_GROWS * way_m[::-1]
    return np.minimum(wanted_m, np.minimum(from_first, from_last))


def _first_end(place: Array, span_m: float, start: Heading | None) -> End:
    """Return the conditions at the start: the place, and yaw and curvature if they are given."""
    if start is None:
        return End.of(AT_KNOT[None], place[None])
    yaw, curvature = start
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    wants = np.stack([place, span_m * ahead, span_m * span_m * curvature * left])
    return End.of(np.stack([AT_KNOT, SLOPE_AT_KNOT, BEND_AT_KNOT]), wants)


def controls_along(points: Array, spans: int) -> Array:
    """Return control points along a polyline, of a curve that begins and ends where it does."""
    way_m = distances_along(points)
    even_m = np.linspace(0.0, way_m[-1], spans + 1)
    along = np.stack([np.interp(even_m, way_m, points[:, axis]) for axis in (0, 1)], axis=1)
    before, after = 2 * along[0] - along[2:0:-1], 2 * along[-1] - along[-2:-4:-1]
    return np.ascontiguousarray(np.concatenate([before, along, after]))


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
