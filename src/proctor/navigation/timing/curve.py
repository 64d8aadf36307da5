"""A curve of poses, piecewise cubic, how hard it is to follow, and how fast a robot can."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.timing import bends, hardest_braking, reachable, run, sample
from proctor.maps.failure import infeasible
from proctor.navigation.path import Leg, Trajectory
from proctor.robots.dynamics import Dynamics

STEP_M = 0.02
STEP_RAD = 0.035  # where a path bends, it is divided more finely
LEAST_STEPS = 200
MOST_STEPS = 40_000
LONGEST_STEP_S = 0.03  # poses are cubics of the distance, and nearly so of time if this is short


class Curve(NamedTuple):
    """Poses over a parameter that grows. Between two of its knots each coordinate is a cubic."""

    knots: Array  # (N,): metres of the way, or seconds of another trajectory
    poses: Array  # (N, 3) x, y, yaw
    slopes: Array  # (N, 3) derivatives of the poses

    @classmethod
    def of_leg(cls, leg: Leg) -> Curve | None:
        """Return the curve of a leg over the distance, yaw along it; None if the leg has no length."""
        columns = np.column_stack([leg.points, leg.yaw, leg.curvature])
        if not np.isfinite(columns).all():
            raise infeasible("the path holds numbers that are not finite")
        chords_m = np.linalg.norm(np.diff(columns[:, :2], axis=0), axis=1)
        columns = columns[np.concatenate([[True], chords_m > 1e-6])]
        if len(columns) < 2:
            return None
        moves, turns = np.diff(columns[:, :2], axis=0), np.diff(columns[:, 2])
        # An arc is longer than its chord; without this, the second derivatives would be wrong by percents.
        steps_m = np.linalg.norm(moves, axis=1) / np.sinc(turns / (2 * np.pi))
        way_m = np.concatenate([[0.0], np.cumsum(steps_m)])
        yaw = columns[:, 2]
        return cls(way_m, columns[:, :3].copy(), np.column_stack([np.cos(yaw), np.sin(yaw), columns[:, 3]]))

    @property
    def length(self) -> float:
        """How far the parameter goes."""
        return float(self.knots[-1] - self.knots[0])

    def at(self, wanted: Array) -> Curve:
        """Return the same curve with these knots; they must include the present ones to be exactly it."""
        rows = sample(self.knots, self.poses, self.slopes, wanted)
        # Copies: compiled functions are compiled again for arrays that are slices.
        return Curve(wanted, rows[:, :3].copy(), rows[:, 3:].copy())

    def refined(self, longest: Array | float) -> Curve:
        """Return the same curve with more knots, no further apart than this number, or one for each piece."""
        steps = np.diff(self.knots)
        index, share = _parts(np.ceil(steps / longest))
        return self.at(np.append(self.knots[index] + share * steps[index], self.knots[-1]))

    def in_steps(self) -> Curve:
        """Return the same curve with knots close enough for its timing."""
        steps = np.diff(self.knots)
        curvature = np.abs(self.slopes[:, 2])
        sharpness = np.sqrt(np.abs(np.diff(self.slopes[:, 2])) / steps)
        bend = np.maximum(np.maximum(curvature[:-1], curvature[1:]), sharpness)
        longest = np.minimum(min(STEP_M, self.length / LEAST_STEPS), STEP_RAD / np.maximum(bend, 1e-9))
        return self.refined(np.maximum(longest, self.length / MOST_STEPS))

    def with_yaw(self, yaw: Array, slopes: Array) -> Curve:
        """Return the same positions with other headings."""
        poses, derivatives = self.poses.copy(), self.slopes.copy()
        poses[:, 2], derivatives[:, 2] = yaw, slopes
        return Curve(self.knots, poses, derivatives)

    def bends(self, *, sideways: bool) -> tuple[Array, Array]:
        """Return what speed along the curve costs, at the beginning and at the end of each piece.

        A rate r of the parameter, growing by u per second, is a linear acceleration of (row[0] u +
        row[1] r², row[2] r²), ahead and to the side, and an angular one of row[3] u + row[4] r².
        Unless `sideways`, row[2] is 0.
        """
        return bends(self.knots, self.poses, self.slopes, float(sideways))

    def timed(self, rates: Array) -> Trajectory:
        """Return the trajectory along this curve with given rates at its knots, linear in time between."""
        sums = rates[:-1] + rates[1:]
        if not (sums > 0).all():
            at_m = self.knots[np.argmin(sums)]
            raise infeasible(f"the robot would stand still {at_m:.3f} m along the path")
        durations_s = 2 * np.diff(self.knots) / sums
        gains = np.diff(rates) / durations_s
        starts_s = np.concatenate([[0.0], np.cumsum(durations_s)])
        index, share = _parts(np.ceil(durations_s / LONGEST_STEP_S))
        since_s = share * durations_s[index]
        wanted = self.knots[index] + (rates[index] + 0.5 * gains[index] * since_s) * since_s
        points = self.at(np.append(wanted, self.knots[-1]))
        speeds = np.append(rates[index] + gains[index] * since_s, rates[-1])
        times_s = np.append(starts_s[index] + since_s, starts_s[-1])
        return Trajectory(times_s, points.poses, points.slopes * speeds[:, None])


def _parts(counts: Array) -> tuple[NDArray[np.int64], Array]:
    """Return for pieces cut into so many parts each: every part's piece, and where in it the part begins."""
    whole = np.clip(counts, 1, 1000).astype(np.int64)
    index = np.repeat(np.arange(len(whole)), whole)
    firsts = np.cumsum(whole) - whole
    return index, (np.arange(len(index)) - firsts[index]) / whole[index]


STILL_SQUARED = 1e-10


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
    for rows in (first, last):
        rows[rows[:, 0] > 1e-6, 3:] = 0.0
    lengths, limits = np.diff(curve.knots), (dynamics.a_max, dynamics.alpha_max)
    squares = run(lengths, first, last, np.ones(len(curve.knots)), 1.0, 0.0, limits)
    stops = np.flatnonzero(squares < STILL_SQUARED)
    if not len(stops):
        return np.sqrt(squares), float(curve.knots[-1])
    stop = int(stops[0])
    # It stops within the piece before, not just at its end.
    gain = hardest_braking(first[stop - 1], squares[stop - 1], limits)
    ahead = min(squares[stop - 1] / max(-2 * gain, 1e-12), lengths[stop - 1])
    return np.append(np.sqrt(squares[:stop]), 0.0), float(curve.knots[stop - 1] + ahead)
