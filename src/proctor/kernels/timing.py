"""Curves and trajectories over time: values between their knots, and the highest rates along them.

The rates are found by reachability: from the curve's end backwards, the highest rate at each knot from which
the end can still be reached at rest; then forwards, as fast as that allows. The square of the rate is linear
between knots, so the acceleration along the curve is constant there, and a limit that holds at both ends of a
piece holds within it.
"""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.kernels.compiled import compiled

PRECISION = 1e-9
MOST_FORCED = 0.75  # the share of the square of its rate that a robot may be forced to lose within one piece


@compiled
def sample(times_s: Array, poses: Array, velocities: Array, wanted_s: Array) -> Array:
    """Return (N, 6) rows of pose and velocity at times that need not be sorted."""
    last = times_s.shape[0] - 1
    rows = np.empty((wanted_s.shape[0], 6))
    for index in range(wanted_s.shape[0]):
        t = wanted_s[index]
        if t >= times_s[last] or last == 0:
            for c in range(3):
                rows[index, c] = poses[last, c]
                rows[index, 3 + c] = velocities[last, c] if t == times_s[last] else 0.0
            continue
        i, after = 0, last
        while after - i > 1:
            middle = (i + after) // 2
            if times_s[middle] <= t:
                i = middle
            else:
                after = middle
        h = times_s[i + 1] - times_s[i]
        f = max(t - times_s[i], 0.0) / h
        for c in range(3):
            p0, p1, m0, m1 = poses[i, c], poses[i + 1, c], velocities[i, c] * h, velocities[i + 1, c] * h
            a, b = 2 * (p0 - p1) + m0 + m1, 3 * (p1 - p0) - 2 * m0 - m1
            rows[index, c] = ((a * f + b) * f + m0) * f + p0
            rows[index, 3 + c] = ((3 * a * f + 2 * b) * f + m0) / h
    return rows


@compiled
def bends(knots: Array, poses: Array, slopes: Array, sideways: float) -> tuple[Array, Array]:
    """Return what speed along a curve costs at both ends of each piece; see `Curve.bends`."""
    pieces = knots.shape[0] - 1
    first, last = np.empty((pieces, 5)), np.empty((pieces, 5))
    early, late = np.empty(3), np.empty(3)
    for piece in range(pieces):
        step = knots[piece + 1] - knots[piece]
        for axis in range(3):
            mean = (poses[piece + 1, axis] - poses[piece, axis]) / step
            before, after = slopes[piece, axis], slopes[piece + 1, axis]
            early[axis] = (6 * mean - 4 * before - 2 * after) / step
            late[axis] = (4 * after + 2 * before - 6 * mean) / step
        _bend(slopes[piece], early, sideways, first[piece])
        _bend(slopes[piece + 1], late, sideways, last[piece])
    return first, last


@compiled
def _bend(slope: Array, second: Array, sideways: float, row: Array) -> None:
    """Fill in a row of bends from the first and second derivatives of a curve at one place."""
    length = math.hypot(slope[0], slope[1])
    # Where the curve stands still it sets off in the direction of its second derivative.
    ahead = slope if length > 1e-9 else second
    norm = max(math.hypot(ahead[0], ahead[1]), 1e-12)
    row[0] = length
    row[1] = (ahead[0] * second[0] + ahead[1] * second[1]) / norm
    row[2] = sideways * (ahead[0] * second[1] - ahead[1] * second[0]) / norm
    row[3], row[4] = slope[2], second[2]


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
def hardest_braking(bend: Array, square: float, limits: tuple[float, float]) -> float:
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
def reachable(
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
def run(
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
