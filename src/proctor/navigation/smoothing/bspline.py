"""Curves of the fifth degree: position, heading and curvature all change smoothly along them.

A curve of m spans has m + 5 control points. The knots are evenly spaced, so every span has the same six
weights: the curve at a share t of span k is the sum of `weights(t)[i] * controls[k + i]`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from proctor.core.geometry import distances_along
from proctor.core.types import Array
from proctor.maps.compiled import compiled

DEGREE = 5
AT_KNOT = np.array([1.0, 26.0, 66.0, 26.0, 1.0]) / 120.0
"""Weights of the five control points around a knot: where the curve is there,"""
SLOPE_AT_KNOT = np.array([-1.0, -10.0, 0.0, 10.0, 1.0]) / 24.0  # its derivative by spans,
BEND_AT_KNOT = np.array([1.0, 2.0, -6.0, 2.0, 1.0]) / 6.0  # and its second derivative


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


def controls_along(points: Array, spans: int) -> Array:
    """Return control points along a polyline, of a curve that begins and ends where it does."""
    way_m = distances_along(points)
    even_m = np.linspace(0.0, way_m[-1], spans + 1)
    along = np.stack([np.interp(even_m, way_m, points[:, axis]) for axis in (0, 1)], axis=1)
    before, after = 2 * along[0] - along[2:0:-1], 2 * along[-1] - along[-2:-4:-1]
    return np.ascontiguousarray(np.concatenate([before, along, after]))
