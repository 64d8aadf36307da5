"""The fastest way along a curve under limits of speed and acceleration, and the fastest way to a stop on it.

Time-optimal path parametrisation by reachability: from the curve's end backwards, the highest rate at each
knot from which the end can still be reached at rest; then forwards, as fast as that allows. The square of
the rate is linear between knots, so the acceleration along the curve is constant there, and a limit that
holds at both ends of a piece holds within it.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.maps.compiled import compiled
from proctor.navigation.timing.curve import Curve
from proctor.robots.dynamics import Dynamics

PRECISION = 1e-9
STILL = 1e-10
MOST_FORCED = 0.75  # the share of the square of its rate that a robot may be forced to lose within one piece


def fastest_rates(curve: Curve, dynamics: Dynamics, start_rate: float) -> tuple[Array, float]:
    """Return the highest rates at the knots of a curve over metres that end at rest, and the highest start.

    A start that is faster than the highest is not possible; the rates then begin with the highest.
    """
    first, last = curve.bends(sideways=dynamics.drive == "holonomic")
    turning = np.abs(curve.slopes[:, 2])
    ceiling = np.minimum(dynamics.v_max, dynamics.omega_max / np.maximum(turning, 1e-12)) ** 2
    lengths, limits = np.diff(curve.knots), (dynamics.a_max, dynamics.alpha_max)
    reach = _reachable(lengths, first, last, ceiling, limits)
    squares = _run(lengths, first, last, reach, min(start_rate**2, reach[0]), 1.0, limits)
    return np.sqrt(squares), math.sqrt(reach[0])


def slowest_rates(curve: Curve, dynamics: Dynamics) -> tuple[Array, float]:
    """Return the lowest rates along a curve over seconds, and where they end.

    They begin with 1 and are those at the knots, as far as the robot moves; the last is at the end. The
    limit of angular acceleration is kept only where the robot turns in place.
    """
    first, last = curve.bends(sideways=dynamics.drive == "holonomic")
    for bends in (first, last):
        bends[bends[:, 0] > 1e-6, 3:] = 0.0
    lengths, limits = np.diff(curve.knots), (dynamics.a_max, dynamics.alpha_max)
    squares = _run(lengths, first, last, np.ones(len(curve.knots)), 1.0, 0.0, limits)
    stops = np.flatnonzero(squares < STILL)
    if not len(stops):
        return np.sqrt(squares), float(curve.knots[-1])
    stop = int(stops[0])
    # It stops within the piece before, not just at its end.
    gain = _hardest_braking(first[stop - 1], squares[stop - 1], limits)
    ahead = min(squares[stop - 1] / max(-2 * gain, 1e-12), lengths[stop - 1])
    return np.append(np.sqrt(squares[:stop]), 0.0), float(curve.knots[stop - 1] + ahead)


@compiled
def _within(a: float, b: float, c: float, step: float, limit: float, square: float) -> tuple[float, float]:
    """Return the range of u with |(a u + b y, c y)| <= limit, y = square + step u; low > high if empty."""
    ahead, aside = a + step * b, step * c
    lead = ahead * ahead + aside * aside
    half = (ahead * b + aside * c) * square
    rest = (b * b + c * c) * square * square - limit * limit
    below = half * half - lead * rest
    if below < 0.0 or (lead < 1e-30 and rest > 0.0):
        return math.inf, -math.inf
    if lead < 1e-30:
        return -math.inf, math.inf
    root = math.sqrt(below)
    return (-half - root) / lead, (root - half) / lead


@compiled
def _hardest_braking(bend: Array, square: float, limits: tuple[float, float]) -> float:
    """Return the lowest gain at one place that keeps the limits there."""
    linear = _within(bend[0], bend[1], bend[2], 0.0, limits[0], square)[0]
    return max(linear, _within(bend[3], bend[4], 0.0, 0.0, limits[1], square)[0])


@compiled
def _gains(
    length: float, first: Array, last: Array, square: float, limits: tuple[float, float]
) -> tuple[float, float]:
    """Return the range of gains of the rate over a piece that keep all limits at both of its ends.

    `first` and `last` are the bends at its ends, `square` is the square of the rate at its beginning.
    """
    step = 2.0 * length
    low, high = -square / step, math.inf
    for end in range(2):
        row, ahead = (first, 0.0) if end == 0 else (last, step)
        lower, upper = _within(row[0], row[1], row[2], ahead, limits[0], square)
        low, high = max(low, lower), min(high, upper)
        lower, upper = _within(row[3], row[4], 0.0, ahead, limits[1], square)
        low, high = max(low, lower), min(high, upper)
    return low, high


@compiled
def _room(
    length: float, first: Array, last: Array, square: float, top: float, limits: tuple[float, float]
) -> float:
    """Return how much choice of gains there is if the square is at most `top` at the piece's end.

    It is less than 0 if there is none, or if the bends force the robot nearly to a halt within the piece:
    such a rate is possible, but a lower one is far quicker.
    """
    low, high = _gains(length, first, last, square, limits)
    step = 2.0 * length
    return min(min(high, (top - square) / step) - low, high + MOST_FORCED * square / step)


@compiled
def _highest(
    length: float, first: Array, last: Array, high: float, top: float, limits: tuple[float, float]
) -> float:
    """Return the highest square of the rate, up to a given one, at which there is room.

    The room is concave in the square. So a straight line between some room and a lack of it meets zero at or
    below the place looked for; halving what is left keeps the number of rounds small in any case.
    """
    lack = _room(length, first, last, high, top, limits)
    if lack >= 0.0:
        return high
    low, room = 0.0, _room(length, first, last, 0.0, top, limits)
    enough = PRECISION * room
    while high - low > PRECISION * high:
        for share in (room / (room - lack) * (1.0 - PRECISION), 0.5):
            middle = low + share * (high - low)
            here = _room(length, first, last, middle, top, limits)
            if here >= 0.0:
                low, room = middle, here
            else:
                high, lack = middle, here
        if 0.0 < room <= enough:
            break
    return low


@compiled
def _reachable(
    lengths: Array, first: Array, last: Array, ceiling: Array, limits: tuple[float, float]
) -> Array:
    """Return the highest squares of the rate from which the end can be reached at rest.

    All lower ones can be, too: the limits are convex and standing still keeps them.
    """
    reach = ceiling.copy()
    reach[-1] = 0.0
    for piece in range(lengths.shape[0] - 1, -1, -1):
        length, here, there, top = lengths[piece], first[piece], last[piece], reach[piece + 1]
        # Braking as hard as on a straight line, which is mostly possible, saves the search.
        high = min(reach[piece], top + 2.0 * length * limits[0] * (1.0 - PRECISION))
        reach[piece] = _highest(length, here, there, high, top, limits)
    return reach


@compiled
def _run(
    lengths: Array,
    first: Array,
    last: Array,
    reach: Array,
    start: float,
    haste: float,
    limits: tuple[float, float],
) -> Array:
    """Return the squares of the rates from a start on, as high as they may be, or with no haste as low."""
    squares = np.empty_like(reach)
    squares[0] = start
    for piece in range(lengths.shape[0]):
        length, square, top = lengths[piece], squares[piece], reach[piece + 1]
        least, most = _gains(length, first[piece], last[piece], square, limits)
        most = min(most, (top - square) / (2.0 * length))
        gain = 0.0  # also where a limit is not kept even so, by rounding
        if least <= most:
            gain = least + haste * (most - least)
        squares[piece + 1] = min(max(square + 2.0 * length * gain, 0.0), top)
    return squares
