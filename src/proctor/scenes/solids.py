"""Convex pieces to bump into, placed by the middle of their bottom like everything that stands."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from proctor.core.types import Array
from proctor.scenes.shapes import Triple
from proctor.scenes.thing import Cavity, Solid

ROUND_SIDES = 24
BALL_RINGS = 9
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


def circle(sides: int = ROUND_SIDES) -> Array:
    """Return the corners (N, 2) of a polygon around the unit circle, those on the axes exact."""
    angles = np.arange(sides) * (2 * math.pi / sides)
    return np.round(np.stack([np.cos(angles), np.sin(angles)], axis=1), 15)


def box_solid(size: ArrayLike, at: Triple = (0.0, 0.0, 0.0)) -> Solid:
    """Return a box of this size whose bottom stands at `at`."""
    extents, (x, y, bottom) = np.asarray(size, dtype=np.float64), at
    return tilted_box(extents, np.array([x, y, bottom + extents[2] / 2]), np.eye(3))


def tilted_box(size: Array, centre: Array, rotation: Array) -> Solid:
    """Return a box around its centre, turned."""
    return Solid("box", size, centre, rotation, (CORNERS * size) @ rotation.T + centre)


def cylinder_solid(diameter_m: float, height_m: float, at: Triple = (0.0, 0.0, 0.0)) -> Solid:
    """Return an upright cylinder whose bottom stands at `at`."""
    ring = circle() * (diameter_m / 2)
    points = np.concatenate([np.insert(ring, 2, z, axis=1) for z in (0.0, height_m)]) + at
    centre = np.add(at, (0.0, 0.0, height_m / 2))
    return Solid("cylinder", np.array([diameter_m, diameter_m, height_m]), centre, np.eye(3), points)


def ball_solid(diameter_m: float) -> Solid:
    """Return a ball whose lowest point is the origin."""
    heights = -np.cos(np.linspace(0, math.pi, BALL_RINGS))[1:-1]
    rings = [np.insert(circle() * math.sqrt(1 - z * z), 2, z, axis=1) for z in heights]
    points = np.concatenate([[[0.0, 0.0, -1.0]], *rings, [[0.0, 0.0, 1.0]]])
    radius = diameter_m / 2
    centre = np.array([0.0, 0.0, radius])
    return Solid("sphere", np.full(3, diameter_m), centre, np.eye(3), points * radius + centre)


def hull_solid(points: Array) -> Solid:
    """Return the convex body around points, which all are corners of it."""
    low, high = points.min(axis=0), points.max(axis=0)
    return Solid("hull", high - low, (low + high) / 2, np.eye(3), points)


def round_wall(
    foot: tuple[float, float], rim: tuple[float, float], thick_m: float, sides: int
) -> list[Solid]:
    """Return boxes that stand in a ring, their inner faces from the foot to the rim (radius and height)."""
    (foot_r, foot_z), (rim_r, rim_z) = foot, rim
    length_m = math.hypot(rim_r - foot_r, rim_z - foot_z)
    along = np.array([rim_r - foot_r, rim_z - foot_z]) / length_m
    out = np.array([along[1], -along[0]])
    size = np.array([thick_m, 2 * max(foot_r, rim_r) * math.tan(math.pi / sides), length_m])
    middle = (np.array(foot) + rim) / 2 + out * (thick_m / 2)
    walls = []
    for cosine, sine in circle(sides):
        # Columns: outwards, along the ring, up the wall.
        rotation = np.array(
            [
                [cosine * out[0], -sine, cosine * along[0]],
                [sine * out[0], cosine, sine * along[0]],
                [out[1], 0.0, along[1]],
            ]
        )
        walls.append(
            tilted_box(size, np.array([cosine, sine, 0.0]) * middle[0] + [0, 0, middle[1]], rotation)
        )
    return walls


def square_walls(size: Triple, thick_m: float) -> tuple[list[Solid], Cavity]:
    """Return the bottom and the four walls of a box that is open above, and its inside."""
    depth, width, height = size
    x, y, wall_m = (depth - thick_m) / 2, (width - thick_m) / 2, height - thick_m
    solids = [
        box_solid((depth, width, thick_m)),
        *(box_solid((thick_m, width, wall_m), (side * x, 0.0, thick_m)) for side in (-1, 1)),
        *(box_solid((depth - 2 * thick_m, thick_m, wall_m), (0.0, side * y, thick_m)) for side in (-1, 1)),
    ]
    inside = Cavity(depth / 2 - thick_m, width / 2 - thick_m, is_round=False, floor_z=thick_m, rim_z=height)
    return solids, inside
