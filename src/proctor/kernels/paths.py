"""Paths as rows of points: their clearance, the corners they need, and about how long they take to drive."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.kernels.compiled import compiled

ROOM_GROWS = 0.3  # how much clearance a path must gain per metre away from an end that has too little
STEP_M = 0.05
STEEPEST = math.sqrt(2.0)  # a clearance that is interpolated changes by at most this much per metre
MISSES = 3  # how many corners in a row may be out of sight before those behind them are not looked at


@compiled
def spare_and_lacking_m(
    field: ClearanceField, points: Array, needed_m: float, wanted_m: float
) -> tuple[float, float]:
    """Return the least spare clearance and the most that lacks; less is needed near an end that has less."""
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


class Limits(NamedTuple):
    """What a robot can do, as compiled functions take it."""

    v_max: float
    omega_max: float
    a_max: float
    alpha_max: float
    sideways_max: float  # metres per second squared, across the path


@compiled
def most_gain(curvature: float, change: float, square: float, limits: Limits) -> float:
    """Return the most acceleration that leaves the turning within its limit, at a squared speed."""
    bend = abs(curvature)
    if bend < 1e-9:
        return limits.a_max
    spare = limits.alpha_max - math.copysign(change, change * curvature) * square
    return min(limits.a_max, max(spare, 0.0) / bend)


@compiled
def traversal(rows: Array, limits: Limits, start_mps: float) -> tuple[float, float]:
    """Return about how long it takes along a path to a stop at its end, and how fast it may begin at most.

    Every point of the (N, 4) rows x, y, yaw, curvature has a speed at which turning rate and its change
    stay within their limits; between them the robot speeds up and brakes as hard as it may. If it begins
    too fast, the time is that of beginning as fast as it may.
    """
    last = rows.shape[0] - 1
    steps, changes, squares = np.empty(last), np.empty(last + 1), np.empty(last + 1)
    for i in range(last):
        steps[i] = max(math.hypot(rows[i + 1, 0] - rows[i, 0], rows[i + 1, 1] - rows[i, 1]), 1e-9)
    for i in range(last + 1):
        before, after = max(i - 1, 0), min(i + 1, last)
        changes[i] = (rows[after, 3] - rows[before, 3]) / (
            steps[before] + (steps[i] if 0 < i < last else 0.0)
        )
        bend = max(abs(rows[i, 3]), 1e-9)
        squares[i] = min(limits.v_max**2, (limits.omega_max / bend) ** 2, limits.sideways_max / bend)
        squares[i] = min(squares[i], limits.alpha_max / max(abs(changes[i]), 1e-9))
    squares[last] = 0.0
    for i in range(last - 1, -1, -1):
        gain = most_gain(rows[i + 1, 3], -changes[i + 1], squares[i + 1], limits)
        squares[i] = min(squares[i], squares[i + 1] + 2.0 * gain * steps[i])
    highest_mps = math.sqrt(squares[0])
    squares[0] = min(squares[0], start_mps * start_mps)
    time_s = 0.0
    for i in range(last):
        gain = most_gain(rows[i, 3], changes[i], squares[i], limits)
        squares[i + 1] = min(squares[i + 1], squares[i] + 2.0 * gain * steps[i])
        time_s += 2.0 * steps[i] / max(math.sqrt(squares[i]) + math.sqrt(squares[i + 1]), 1e-6)
    return time_s, highest_mps


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
