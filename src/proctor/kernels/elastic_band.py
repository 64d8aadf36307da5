"""A path as an elastic band: it straightens itself, and obstacles push it away.

The band is the control points of a B-spline of the fifth degree: position, heading and curvature all change
smoothly along it. A curve of m spans has m + 5 control points. The knots are evenly spaced, so every span has
the same six weights: the curve at a share t of span k is the sum of `weights(t)[i] * controls[k + i]`.

At each step the band goes where the sum of three is least: how abruptly the curvature changes (third
differences), how far it has come from where it was, and how much clearance is missing along the curve. For
given pushes that is a linear system with a narrow band of non-zeros, so one step is exact and quick; the
pushes are then measured again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.kernels.compiled import compiled

DEGREE = 5
AT_KNOT = np.array([1.0, 26.0, 66.0, 26.0, 1.0]) / 120.0
"""Weights of the five control points around a knot: where the curve is there,"""
SLOPE_AT_KNOT = np.array([-1.0, -10.0, 0.0, 10.0, 1.0]) / 24.0  # its derivative by spans,
BEND_AT_KNOT = np.array([1.0, 2.0, -6.0, 2.0, 1.0]) / 6.0  # and its second derivative
WIDTH = 11  # sub-diagonals of the system: x and y of a control point and of the five after it
BoolArray: TypeAlias = NDArray[np.bool_]
JERK = np.array([-1.0, 3.0, -3.0, 1.0])
PUSH = 10.0  # weight of missing clearance
HOLD = 1e6  # weight of the conditions at the ends, which are then met exactly
FLAT = 0.1  # slopes of clearance below this are those of places midway between obstacles
ACROSS_M = 0.3  # how far to the sides room is looked for
LONGEST_STEP_M = 0.3  # further than this from where they were measured, clearances and slopes say little


@lru_cache(maxsize=64)
def basis(samples_per_span: int) -> Array:
    """Return (samples, 3, 6) weights of control points: of the curve and its first two derivatives."""
    shares = np.arange(samples_per_span) / samples_per_span
    places = shares[:, None] + np.arange(DEGREE, -1, -1)
    return np.ascontiguousarray(np.stack([bump(places, DEGREE, order) for order in range(3)], axis=1))


def bump(places: Array, degree: int, order: int = 0) -> Array:
    """Return the weight of one control point, or a derivative of it, at places from 0 to degree + 1."""
    if degree == 0:
        return np.where((places >= 0.0) & (places < 1.0), 1.0, 0.0)
    if order > 0:
        before, after = (bump(places - knot, degree - 1, order - 1) for knot in (0.0, 1.0))
        return degree * before / degree - degree * after / degree  # rounded as SciPy's BSpline does
    rising, falling = bump(places, degree - 1) / degree, bump(places - 1.0, degree - 1) / degree
    return rising * places + falling * (degree + 1.0 - places)


@compiled
def sample_curve(controls: Array, weights: Array) -> Array:
    """Return (N, 4) rows of x, y, yaw and curvature along a curve, both ends included."""
    per_span = weights.shape[0]
    spans = controls.shape[0] - 5
    rows = np.empty((spans * per_span + 1, 4))
    yaw = before_x = before_y = 0.0
    for row in range(rows.shape[0]):
        span, share = row // per_span, row % per_span
        x = y = slope_x = slope_y = bend_x = bend_y = 0.0
        for i in range(min(6, controls.shape[0] - span)):
            control_x, control_y = controls[span + i, 0], controls[span + i, 1]
            x += weights[share, 0, i] * control_x
            y += weights[share, 0, i] * control_y
            slope_x += weights[share, 1, i] * control_x
            slope_y += weights[share, 1, i] * control_y
            bend_x += weights[share, 2, i] * control_x
            bend_y += weights[share, 2, i] * control_y
        if row == 0:
            yaw = math.atan2(slope_y, slope_x)
        else:
            turned = before_x * slope_y - before_y * slope_x
            yaw += math.atan2(turned, before_x * slope_x + before_y * slope_y)
        before_x, before_y = slope_x, slope_y
        speed = max(math.hypot(slope_x, slope_y), 1e-12)
        rows[row, 0], rows[row, 1], rows[row, 2] = x, y, yaw
        rows[row, 3] = (slope_x * bend_y - slope_y * bend_x) / (speed * speed * speed)
    return rows


AT_PLACE = basis(2)[:, 0].copy()  # weights of control points at a knot and half way to the next


class End(NamedTuple):
    """What the five control points at an end of the band must fulfil."""

    rows: Array  # (conditions, 5) weights of the control points,
    wants: Array  # (conditions, 2) and what they sum to
    repair: Array  # (5, conditions) the least move that makes up for a condition missed by 1

    @classmethod
    def of(cls, rows: Array, wants: Array) -> End:
        """Take conditions."""
        repair: Array = np.ascontiguousarray(np.linalg.pinv(rows), dtype=np.float64)
        return cls(np.ascontiguousarray(rows), np.ascontiguousarray(wants), repair)


@compiled
def solve_banded(matrix: Array, right: Array) -> None:
    """Solve a symmetric positive system by elimination; `right` becomes the answer.

    `matrix[i, d]` is the element in row i and column i + d. Below its last row there are WIDTH more, so that
    no step needs to look where the matrix ends; the same for `right`.
    """
    count = matrix.shape[0] - WIDTH
    for i in range(count):
        for below in range(1, WIDTH + 1):
            factor = matrix[i, below] / matrix[i, 0]
            for d in range(WIDTH + 1 - below):
                matrix[i + below, d] -= factor * matrix[i, below + d]
            right[i + below] -= factor * right[i]
    for i in range(count - 1, -1, -1):
        for d in range(1, WIDTH + 1):
            right[i] -= matrix[i, d] * right[i + d]
        right[i] /= matrix[i, 0]


@compiled
def add_stiffness(matrix: Array, stiffness: Array) -> None:
    """Ask that third differences of the control points are zero; in x and y alike."""
    for first in range(stiffness.shape[0]):
        for i in range(4):
            for j in range(i, 4):
                part = stiffness[first] * JERK[i] * JERK[j]
                matrix[2 * (first + i), 2 * (j - i)] += part
                matrix[2 * (first + i) + 1, 2 * (j - i)] += part


@compiled
def add_end(matrix: Array, right: Array, end: End) -> None:
    """Ask for the conditions of an end, of the five control points with which the system begins."""
    for condition in range(end.rows.shape[0]):
        for i in range(5):
            weight = HOLD * end.rows[condition, i]
            for axis in range(2):
                right[2 * i + axis] += weight * end.wants[condition, axis]
                for j in range(i, 5):
                    matrix[2 * i + axis, 2 * (j - i)] += weight * end.rows[condition, j]


@compiled
def meet_end(controls: Array, end: End) -> None:
    """Move five control points by as little as possible so that they fulfil their conditions."""
    missing = np.empty(end.rows.shape[0])
    for axis in range(2):
        for condition in range(missing.shape[0]):
            missing[condition] = end.wants[condition, axis]
            for i in range(5):
                missing[condition] -= end.rows[condition, i] * controls[i, axis]
        for i in range(5):
            for condition in range(missing.shape[0]):
                controls[i, axis] += end.repair[i, condition] * missing[condition]


@compiled
def place_of(controls: Array, place: int) -> tuple[float, float]:
    """Return where the curve is at a knot (even places) or half way to the next (odd ones)."""
    x = y = 0.0
    for i in range(min(6, controls.shape[0] - place // 2)):
        x += AT_PLACE[place % 2, i] * controls[place // 2 + i, 0]
        y += AT_PLACE[place % 2, i] * controls[place // 2 + i, 1]
    return x, y


@compiled
def walls_at(controls: Array, field: ClearanceField, wanted: Array) -> Array:
    """Return (2 m + 1, 3) half planes that the curve shall keep to: normal and least distance along it.

    The plane touches the nearest obstacle, moved by the wanted clearance; (0, 0, 0) without a slope.
    """
    walls = np.zeros((wanted.shape[0], 3))
    for place in range(1, wanted.shape[0] - 1):
        x, y = place_of(controls, place)
        clearance, slope_x, slope_y = clearance_at(field, x, y)
        steepness = math.hypot(slope_x, slope_y)
        if steepness > FLAT:
            walls[place, 0], walls[place, 1] = slope_x / steepness, slope_y / steepness
            walls[place, 2] = walls[place, 0] * x + walls[place, 1] * y + wanted[place] - clearance
    return walls


@compiled
def cap_to_room(controls: Array, field: ClearanceField, wanted: Array) -> None:
    """Lower the wanted clearances, in place, to what there is across the curve: midway in a narrow gap."""
    step = 0.5 * field.resolution_m
    for place in range(1, wanted.shape[0] - 1):
        x, y = place_of(controls, place)
        before, after = place_of(controls, place - 1), place_of(controls, place + 1)
        along = max(math.hypot(after[0] - before[0], after[1] - before[1]), 1e-9)
        across_x, across_y = (before[1] - after[1]) / along, (after[0] - before[0]) / along
        most = clearance_at(field, x, y)[0]
        for side in (-step, step):
            for count in range(1, math.ceil(ACROSS_M / step)):
                way = side * count
                here = clearance_at(field, x + way * across_x, y + way * across_y)[0]
                if here <= 0.0 or most >= wanted[place]:
                    break
                most = max(most, here)
        wanted[place] = min(wanted[place], most)


@compiled
def find_behind(controls: Array, walls: Array, behind: BoolArray) -> bool:
    """Note for every place whether it is on the wrong side of its wall, and tell whether that is news."""
    news = False
    for place in range(walls.shape[0]):
        x, y = place_of(controls, place)
        is_behind = walls[place, 0] * x + walls[place, 1] * y < walls[place, 2]
        news = news or is_behind != behind[place]
        behind[place] = is_behind
    return news


@compiled
def add_push(matrix: Array, right: Array, place: int, wall: Array) -> None:
    """Ask that a place of the curve is on its wall."""
    weights = AT_PLACE[place % 2]
    for i in range(6):
        row, weight = 2 * (place // 2 + i), PUSH * weights[i]
        right[row] += weight * wall[0] * wall[2]
        right[row + 1] += weight * wall[1] * wall[2]
        for j in range(i, 6):
            part, apart = weight * weights[j], 2 * (j - i)
            matrix[row, apart] += part * wall[0] * wall[0]
            matrix[row + 1, apart] += part * wall[1] * wall[1]
            if apart < WIDTH:
                matrix[row, apart + 1] += part * wall[0] * wall[1]
            if apart > 0:
                matrix[row + 1, apart - 1] += part * wall[0] * wall[1]


@compiled
def settle(matrix: Array, right: Array, walls: Array, pushed: BoolArray) -> Array:
    """Return the band at rest between its walls: each pushes only what is behind it.

    Which parts are behind shows only when the band has come to rest, so it is corrected a few times.
    """
    count = (matrix.shape[0] - WIDTH) // 2
    settled = np.empty((count, 2))
    for _ in range(6):
        system, side = matrix.copy(), right.copy()
        for place in range(walls.shape[0]):
            if pushed[place]:
                add_push(system, side, place, walls[place])
        solve_banded(system, side)
        settled = side[: 2 * count].reshape(count, 2)
        if not find_behind(settled, walls, pushed):
            break
    return settled


@compiled
def relax(
    controls: Array,
    stay: float,
    stiffness: Array,
    field: ClearanceField,
    wanted: Array,
    start: End,
    goal: End,
) -> None:
    """Let a band give way once, in place.

    `controls` are (m + 5, 2) control points of m spans, each held in place with the weight `stay`.
    `stiffness` is the (m + 2,) weights of the third differences, `wanted` the (2 m + 1,) clearances at
    the knots and half way between them. `start` and `goal` are conditions on the first and last five
    control points.
    """
    count = controls.shape[0]
    matrix, right = np.zeros((2 * count + WIDTH, WIDTH + 1)), np.zeros(2 * count + WIDTH)
    for i in range(count):
        for axis in range(2):
            matrix[2 * i + axis, 0] = stay
            right[2 * i + axis] = stay * controls[i, axis]
    add_stiffness(matrix, stiffness)
    add_end(matrix, right, start)
    add_end(matrix[2 * (count - 5) :], right[2 * (count - 5) :], goal)
    walls = walls_at(controls, field, wanted)
    pushed = np.empty(walls.shape[0], np.bool_)
    find_behind(controls, walls, pushed)
    settled = settle(matrix, right, walls, pushed)
    farthest = 0.0
    for i in range(count):
        farthest = max(farthest, math.hypot(settled[i, 0] - controls[i, 0], settled[i, 1] - controls[i, 1]))
    share = min(1.0, LONGEST_STEP_M / max(farthest, 1e-12))
    for i in range(count):
        for axis in range(2):
            controls[i, axis] += share * (settled[i, axis] - controls[i, axis])
    meet_end(controls[:5], start)
    meet_end(controls[count - 5 :], goal)
