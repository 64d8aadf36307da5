"""Straight ways between the corners of a path that a planner left, where there is room for them."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.navigation.maps.clearance import clearance_at
from proctor.navigation.maps.clearance_field import ClearanceField

SAME_M = 1e-6
"""Points nearer to each other are one."""
STEEPEST = math.sqrt(2.0)
"""A clearance that is interpolated changes by at most this much per metre."""
MISSES = 3
"""How many corners in a row may be out of sight before those behind them are not looked at."""


@compiled
def least_along(field: ClearanceField, a: Array, b: Array, enough_m: float) -> float:
    """Return the least clearance of a straight way, or some value above `enough_m` if it is above it.

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

    From each corner the way goes to the farthest one in sight. A straight way counts as free if it has
    enough clearance, or at least as much as the way along the corners that it leaves out.
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
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1) > SAME_M
    distinct = np.concatenate([points[:1], points[1:][apart]])
    distinct[-1] = points[-1]
    if len(distinct) < 3:
        return distinct
    forward = corners_kept(field, distinct, enough_m)
    backward = corners_kept(field, np.ascontiguousarray(forward[::-1]), enough_m)
    return np.ascontiguousarray(backward[::-1])
