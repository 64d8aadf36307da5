"""How a robot that is moving gets onto a path that begins where it is, but not in its direction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from proctor.core.geometry import evenly_spaced, wrap_angle
from proctor.core.types import Array
from proctor.navigation.compiled import compiled
from proctor.robots.dynamics import Dynamics

STEP_M = 0.05
TIGHTEST_M = 0.2
"""Radius of the tightest turn that is tried."""
AHEAD = (0.0, 0.5, 0.8)
"""Before it turns, the robot brakes for these shares of the distance in which it could stop,"""
WIDER = (1.0, 2.5)
"""and then turns at these multiples of the tightest turn that its speed allows."""
ALIGNED_RAD = 0.1
BEHIND_RAD = math.radians(100)
"""Beyond this angle a turn to the other side is tried as well."""


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
    """Return the way of a robot that drives towards a path, turning no tighter than a radius.

    It aims at a place on the path some way ahead and goes on until it is on the path; the rest is the path
    itself. It is empty if the robot does not get there.

    Args:
        path: (N, 2) points, STEP_M apart.
        yaw: Its direction at the first of them.
        ahead_m: How far it goes straight on before.
        radius_m: The radius.
        side: 1 or -1 to turn left or right while the aim is far to the side, 0 for the nearer side.
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
        elif off < STEP_M and abs(aside) < ALIGNED_RAD and aim > near:
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
    """Return paths that begin with a heading and then go on along the corners; tight turns and wide ones."""
    path = evenly_spaced(corners, STEP_M)
    ahead = corners[1] - corners[0]
    aside = wrap_angle(math.atan2(ahead[1], ahead[0]) - yaw)
    sides = (0.0,) if abs(aside) < BEHIND_RAD else (1.0, -1.0)
    stop_m = dynamics.stopping_distance_m(speed_mps)
    for share, wider, side in itertools.product(AHEAD, WIDER, sides):
        slowed_mps = speed_mps * math.sqrt(1.0 - share)
        radius_m = wider * max(TIGHTEST_M, slowed_mps / dynamics.omega_max)
        way = pursue(path, yaw, share * stop_m, radius_m, side)
        if len(way) > 1:
            way[-1] = corners[-1]
            yield way
