"""What all pieces of furniture have in common.

Every maker draws its sizes and colours from a generator and returns a `Piece`: it stands at its own
origin, turns its back to -x, its front to +x, and its width lies along y.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from proctor.scenes.colors import PALETTE, STEEL, Paint
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.shapes import Triple, box, sphere, trim

Rng: TypeAlias = np.random.Generator
WHITE, BLACK, GREY = PALETTE["white"], PALETTE["black"], PALETTE["grey"]
METAL = STEEL.rgb


class Piece(NamedTuple):
    """A piece of furniture or a fixture, in its own frame."""

    category: str
    depth_m: float
    width_m: float
    height_m: float
    """Top above the floor."""
    parts: list[Part]
    bottom_m: float = 0.0
    """Above 0 for what hangs on a wall."""
    landmark: bool = True
    """Whether people would name it to describe a place."""
    color: str = ""
    """The colour that people would give it, in one word; empty where none stands out."""


def pick(rng: Rng, paints: tuple[Paint, ...]) -> Paint:
    """Draw one of some paints."""
    return paints[rng.integers(len(paints))]


def legs(
    size: Triple, color: Triple, texture: Texture | None = "wood", *, thick_m: float = 0.06
) -> list[Part]:
    """Return four legs that hold up something of this depth, width and height."""
    depth_m, width_m, height_m = size
    x, y = depth_m / 2 - thick_m, width_m / 2 - thick_m
    return [
        box((thick_m, thick_m, height_m), (i * x, j * y, 0.0), color, texture)
        for i in (-1, 1)
        for j in (-1, 1)
    ]


def fronts(
    x: float, width_m: float, bottom: float, top: float, color: Triple, *, columns: int = 1, rows: int = 1
) -> list[Part]:
    """Return doors or drawers on the front of a cabinet at x, each with its handle."""
    gap_m = 0.02
    door_m, drawer_m = width_m / columns - gap_m, (top - bottom) / rows - gap_m
    parts = []
    for column in range(columns):
        for row in range(rows):
            y = (column - (columns - 1) / 2) * width_m / columns
            z = bottom + row * (top - bottom) / rows + gap_m / 2
            parts.append(trim((0.02, door_m, drawer_m), (x, y, z), color, "wood"))
            if rows > 1:  # drawers
                parts.append(trim((0.02, 0.12, 0.02), (x + 0.015, y, z + drawer_m / 2), METAL))
            else:
                hand = door_m / 2 - 0.05
                inner = y - hand if y > 0 else y + hand
                parts.append(trim((0.02, 0.02, 0.14), (x + 0.015, inner, z + drawer_m / 2), METAL))
    return parts


def fruit(diameter_m: float, apart_m: float, y: float, bottom: float) -> list[Part]:
    """Return three fruits in a bowl that stands at this place and height."""
    kinds = ((-1, 0, (0.85, 0.15, 0.1)), (1, 1, (0.95, 0.6, 0.1)), (1, -1, (0.45, 0.65, 0.15)))
    return [
        sphere(diameter_m, (apart_m * i, y + apart_m * j, bottom + 0.04), color, collision=False)
        for i, j, color in kinds
    ]
