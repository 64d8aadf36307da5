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
from proctor.kernels.timing import hardest_braking, reachable, run
from proctor.navigation.timing.curve import Curve
from proctor.robots.dynamics import Dynamics

STILL = 1e-10


def fastest_rates(curve: Curve, dynamics: Dynamics, start_rate: float) -> tuple[Array, float]:
    """Return the highest rates at the knots of a curve over metres that end at rest, and the highest start.

    A start that is faster than the highest is not possible; the rates then begin with the highest.
    """
    first, last = curve.bends(sideways=dynamics.drive == "holonomic")
    turning = np.abs(curve.slopes[:, 2])
    ceiling = np.minimum(dynamics.v_max, dynamics.omega_max / np.maximum(turning, 1e-12)) ** 2
    lengths, limits = np.diff(curve.knots), (dynamics.a_max, dynamics.alpha_max)
    reach = reachable(lengths, first, last, ceiling, limits)
    squares = run(lengths, first, last, reach, min(start_rate**2, reach[0]), 1.0, limits)
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
    squares = run(lengths, first, last, np.ones(len(curve.knots)), 1.0, 0.0, limits)
    stops = np.flatnonzero(squares < STILL)
    if not len(stops):
        return np.sqrt(squares), float(curve.knots[-1])
    stop = int(stops[0])
    # It stops within the piece before, not just at its end.
    gain = hardest_braking(first[stop - 1], squares[stop - 1], limits)
    ahead = min(squares[stop - 1] / max(-2 * gain, 1e-12), lengths[stop - 1])
    return np.append(np.sqrt(squares[:stop]), 0.0), float(curve.knots[stop - 1] + ahead)
