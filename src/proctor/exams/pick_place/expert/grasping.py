"""Where to take hold of a thing: between which sides, how high, how wide."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.types import Array
from proctor.scenes.thing import Thing

WIDEST_M = 0.0715
"""Between open pads there are 75.7 mm."""
LOWEST_PAD_M = 0.0285
"""Of the pads' middle above what the thing stands on: their lower corners are 24.6 mm below it."""
HIGHEST_PAD_M = 0.085
PAD_REACH_M = 0.02
"""Above and below their middle, pads touch."""
ROUND_M = 0.0015
"""Sides whose distance differs by less are as good as each other."""
DIRECTIONS, ROUND_STEP = 36, 3
"""Directions that are looked at, and of those in which a thing is round, one in how many is used."""


class Grasp(NamedTuple):
    """Where the pads go, in the world."""

    point: Array
    """The middle between the pads."""
    closing_yaw: float
    """The direction in which the fingers close; the opposite one is the same."""
    width_m: float
    """Of the thing between the pads."""


def grasps_of(thing: Thing, position: Array, rotation: Array) -> list[Grasp]:
    """Return the ways to hold a thing, the narrowest first.

    Of a box these are its two pairs of sides, of a round thing all directions. A handle ends up along the
    fingers, since across it the thing is wider.

    Args:
        thing: The thing.
        position: Where its origin is in the world.
        rotation: How it is turned, 3 x 3.
    """
    pieces = [solid.points @ rotation.T for solid in thing.solids]
    bottom_z = min(float(points[:, 2].min()) for points in pieces)
    height_m = max(float(points[:, 2].max()) for points in pieces) - bottom_z
    pad_z = bottom_z + min(max(0.55 * height_m, LOWEST_PAD_M), HIGHEST_PAD_M)
    touched = _between(pieces, pad_z - PAD_REACH_M, pad_z + PAD_REACH_M)
    yaws = np.arange(DIRECTIONS) * math.pi / DIRECTIONS + _side_yaw(thing, rotation)
    across = np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
    reached = touched @ across.T
    low, high = reached.min(axis=0), reached.max(axis=0)
    widths = high - low
    wider = np.minimum(np.roll(widths, 1), np.roll(widths, -1)) - widths
    is_narrow = (wider >= -ROUND_M) & (widths <= WIDEST_M)
    is_round = np.abs(wider) < ROUND_M
    grasps = []
    for index in np.flatnonzero(is_narrow & (~is_round | (np.arange(DIRECTIONS) % ROUND_STEP == 0))):
        cos, sin = across[index]
        along = touched @ [-sin, cos]
        sides = (reached[:, index] < low[index] + ROUND_M, reached[:, index] > high[index] - ROUND_M)
        middle = float(np.mean([(along[side].min() + along[side].max()) / 2 for side in sides]))
        away = across[index] * (low[index] + high[index]) / 2 + np.array([-sin, cos]) * middle
        point = position + np.array([*away, pad_z])
        grasps.append(Grasp(point, float(yaws[index]), float(widths[index])))
    return sorted(grasps, key=lambda grasp: grasp.width_m)


def _side_yaw(thing: Thing, rotation: Array) -> float:
    """Return the direction of a side of the largest piece: its own x axis, seen from above."""
    largest = max(thing.solids, key=lambda solid: float(np.prod(solid.size)))
    x, y, _ = max((rotation @ largest.rotation).T, key=lambda axis: math.hypot(axis[0], axis[1]))
    return math.atan2(y, x)


def _between(pieces: list[Array], low_z: float, high_z: float) -> Array:
    """Return points (N, 2) around what convex pieces are between two heights."""
    found = []
    for points in pieces:
        z = points[:, 2]
        found.append(points[(z >= low_z) & (z <= high_z), :2])
        first, second = np.triu_indices(len(z), 1)
        for level in (low_z, high_z):  # where lines between two points cross it
            crossing = (z[first] < level) != (z[second] < level)
            start, end = points[first[crossing]], points[second[crossing]]
            share = (level - start[:, 2]) / (end[:, 2] - start[:, 2])
            found.append((start + share[:, None] * (end - start))[:, :2])
    return np.concatenate(found)
