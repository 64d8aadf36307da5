"""A thing as the world needs it: what is drawn, what is bumped into, what can be put into or onto it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from proctor.core.types import Array
from proctor.scenes.meshes import Surface

FILLED = {"box": 1.0, "cylinder": math.pi / 4, "sphere": math.pi / 6}
"""The share of its bounding box that a shape fills."""
LEVEL_M = 0.002
"""So far below its highest point a face may lie and still belong to a thing's top."""


class Solid(NamedTuple):
    """A convex piece to bump into, in the thing's frame."""

    shape: Literal["box", "cylinder", "sphere", "hull"]
    size: Array
    """Full extents in its own frame, metres. Cylinders stand along z."""
    translation: Array
    """Of its centre."""
    rotation: Array
    """3 x 3."""
    points: Array
    """Its corners in the thing's frame, (N, 3); of round shapes, many points of their surface."""

    @property
    def volume_m3(self) -> float:
        """Its volume; a thing's mass is spread over its solids by it."""
        if self.shape == "hull":
            return float(ConvexHull(self.points).volume)
        return float(self.size.prod()) * FILLED[self.shape]


class Cavity(NamedTuple):
    """The inside of a container, in the thing's frame: an upright cylinder or box around its z axis."""

    half_x_m: float
    half_y_m: float
    is_round: bool
    floor_z: float
    rim_z: float


class Thing(NamedTuple):
    """A thing at its full size. Its origin is the middle of its bottom or, for furniture, its centre."""

    kind: str
    """What a person would call it: cup, bowl, table."""
    surfaces: list[Surface]
    solids: list[Solid]
    mass_kg: float
    is_furniture: bool
    cavity: Cavity | None = None
    rolls: bool = False
    """Whether it is round enough to roll away."""
    notes: tuple[str, ...] = ()
    """What people should know, such as that a file was missing and a box stands in for it."""

    @property
    def points(self) -> Array:
        """Corners of all that can be bumped into, (N, 3)."""
        return np.concatenate([solid.points for solid in self.solids])

    @property
    def low(self) -> Array:
        """The lower corner of its bounding box."""
        return np.asarray(self.points.min(axis=0))

    @property
    def high(self) -> Array:
        """The upper corner of its bounding box."""
        return np.asarray(self.points.max(axis=0))


def level_tops(thing: Thing) -> list[ConvexHull]:
    """Return the outlines, from above, of the level faces at the top of a thing; none of one that rolls."""
    if thing.rolls:
        return []
    lowest_z = thing.high[2] - LEVEL_M
    outlines = []
    for solid in thing.solids:
        corners = solid.points[solid.points[:, 2] > lowest_z][:, :2]
        if len(corners) >= 3:
            with suppress(QhullError):  # an edge, such as the ridge of a roof
                outlines.append(ConvexHull(corners))
    return outlines


def depth_inside_m(outline: ConvexHull, points: Array) -> Array:
    """Return how far points (N, 2) are from the sides of an outline, below 0 outside of it."""
    sides = outline.equations  # of each, the outward normal and the offset
    return np.asarray(-(points @ sides[:, :2].T + sides[:, 2]).max(axis=1))
