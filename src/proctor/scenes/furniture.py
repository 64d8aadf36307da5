"""Furniture made of primitive parts.

Every maker draws its sizes and colours from a generator and returns a `Piece`: it stands at its own
origin, turns its back to -x, its front to +x, and its width lies along y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.scenes.colors import FABRICS, PALETTE, STEEL, WOODS, Paint, lighter
from proctor.scenes.scene_config import Part
from proctor.scenes.shapes import Triple, box, cylinder, sphere

WHITE, BLACK = PALETTE["white"], PALETTE["black"]
GREEN = PALETTE["green"]


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


def bed(rng: np.random.Generator, *, width_m: float = 1.6) -> Piece:
    """Return a bed with its headboard at the back."""
    wood, (word, cover) = pick(rng, WOODS).rgb, pick(rng, FABRICS)
    pillow_m = 0.6 if width_m > 1.2 else 0.65
    pillows = (-width_m / 4, width_m / 4) if width_m > 1.2 else (0.0,)
    parts = [
        box((0.06, width_m, 1.0), (-1.02, 0.0, 0.0), wood, "wood"),
        box((2.0, width_m, 0.3), (0.01, 0.0, 0.0), wood, "wood"),
        box((1.96, width_m - 0.06, 0.2), (0.0, 0.0, 0.3), WHITE, "fabric"),
        box((1.35, width_m + 0.02, 0.24), (0.345, 0.0, 0.28), cover, "fabric"),
        *(box((0.38, pillow_m, 0.12), (-0.74, y, 0.5), WHITE, "fabric") for y in pillows),
    ]
    return Piece("bed", 2.1, width_m + 0.02, 1.0, parts, color=word)


def nightstand(rng: np.random.Generator) -> Piece:
    """Return a small cabinet with a lamp on it."""
    word, wood = pick(rng, WOODS)
    parts = [
        box((0.38, 0.42, 0.5), (0.0, 0.0, 0.0), wood, "wood"),
        cylinder(0.06, 0.2, (0.0, 0.0, 0.5), STEEL.rgb),
        cylinder(0.22, 0.18, (0.0, 0.0, 0.7), (0.98, 0.91, 0.70)),
    ]
    return Piece("nightstand", 0.4, 0.42, 0.88, parts, color=word)


def wardrobe(rng: np.random.Generator) -> Piece:
    """Return a tall wardrobe with two doors."""
    width_m, (word, wood) = round(rng.uniform(1.1, 1.6), 1), pick(rng, WOODS)
    door_m = width_m / 2 - 0.04
    parts = [box((0.56, width_m, 2.1), (-0.02, 0.0, 0.0), wood, "wood")]
    for hand in (-1, 1):
        parts.append(box((0.02, door_m, 1.95), (0.27, hand * width_m / 4, 0.1), lighter(wood), "wood"))
        parts.append(box((0.03, 0.03, 0.25), (0.285, hand * 0.07, 0.95), STEEL.rgb))
    return Piece("wardrobe", 0.6, width_m, 2.1, parts, color=word)


def sofa(rng: np.random.Generator, *, seats: int | None = None, category: str = "sofa") -> Piece:
    """Return a sofa, or an armchair if it has one seat."""
    seats = seats or int(rng.integers(2, 4))
    (word, color), seat_m = pick(rng, FABRICS), 0.62
    width_m = seats * seat_m + 0.4
    parts = [
        box((0.9, width_m, 0.26), (0.0, 0.0, 0.06), color, "fabric"),
        box((0.24, width_m, 0.55), (-0.33, 0.0, 0.3), color, "fabric"),
        *(
            box((0.86, 0.2, 0.32), (0.02, y, 0.3), color, "fabric")
            for y in ((0.1 - width_m / 2), width_m / 2 - 0.1)
        ),
    ]
    for seat in range(seats):
        y = (seat - (seats - 1) / 2) * seat_m
        parts.append(box((0.62, seat_m - 0.02, 0.15), (0.14, y, 0.32), lighter(color), "fabric"))
    return Piece(category, 0.9, width_m, 0.85, parts, color=word)


def armchair(rng: np.random.Generator) -> Piece:
    """Return an upholstered chair for one."""
    return sofa(rng, seats=1, category="armchair")


def table(rng: np.random.Generator, category: str, size: Triple) -> Piece:
    """Return a four-legged table of (depth, width, height)."""
    depth_m, width_m, height_m = size
    word, wood = pick(rng, WOODS)
    legs = [
        box(
            (0.06, 0.06, height_m - 0.04),
            (x * (depth_m / 2 - 0.06), y * (width_m / 2 - 0.06), 0.0),
            wood,
            "wood",
        )
        for x in (-1, 1)
        for y in (-1, 1)
    ]
    return Piece(
        category,
        depth_m,
        width_m,
        height_m,
        [*legs, box((depth_m, width_m, 0.04), (0, 0, height_m - 0.04), wood, "wood")],
        color=word,
    )


def chair(rng: np.random.Generator) -> Piece:
    """Return a dining chair."""
    word, wood = pick(rng, WOODS)
    parts = [
        box((0.42, 0.42, 0.05), (0.0, 0.0, 0.42), lighter(wood), "wood"),
        box((0.04, 0.38, 0.92), (-0.19, 0.0, 0.0), wood, "wood"),
        *(box((0.04, 0.04, 0.42), (0.19, y, 0.0), wood, "wood") for y in (-0.19, 0.19)),
    ]
    return Piece("chair", 0.42, 0.42, 0.92, parts, landmark=False, color=word)


def office_chair(rng: np.random.Generator) -> Piece:
    """Return a swivel chair."""
    word, color = pick(rng, FABRICS)
    parts = [
        cylinder(0.5, 0.05, (0.0, 0.0, 0.03), BLACK),
        cylinder(0.07, 0.36, (0.0, 0.0, 0.08), STEEL.rgb),
        box((0.46, 0.48, 0.08), (0.0, 0.0, 0.44), color, "fabric"),
        box((0.06, 0.44, 0.5), (-0.22, 0.0, 0.55), color, "fabric"),
    ]
    return Piece("office chair", 0.5, 0.5, 1.05, parts, landmark=False, color=word)


def desk(rng: np.random.Generator) -> Piece:
    """Return a desk with drawers and a computer screen."""
    width_m, (word, wood) = round(rng.uniform(1.2, 1.5), 1), pick(rng, WOODS)
    parts = [
        box((0.65, width_m, 0.04), (0.0, 0.0, 0.7), wood, "wood"),
        box((0.6, 0.04, 0.7), (0.0, 0.04 - width_m / 2, 0.0), wood, "wood"),
        box((0.6, 0.4, 0.7), (0.0, width_m / 2 - 0.22, 0.0), wood, "wood"),
        *(box((0.02, 0.36, 0.28), (0.3, width_m / 2 - 0.22, z), lighter(wood), "wood") for z in (0.06, 0.4)),
        box((0.18, 0.22, 0.12), (-0.18, 0.0, 0.74), BLACK),
        box((0.03, 0.58, 0.36), (-0.16, 0.0, 0.84), BLACK),
        box((0.01, 0.54, 0.32), (-0.142, 0.0, 0.86), (0.25, 0.45, 0.70)),
        box((0.14, 0.4, 0.02), (0.12, 0.0, 0.74), (0.25, 0.25, 0.27)),
    ]
    return Piece("desk", 0.65, width_m, 1.2, parts, color=word)


def bookshelf(rng: np.random.Generator) -> Piece:
    """Return a shelf full of books."""
    width_m, (word, wood) = round(rng.uniform(0.8, 1.2), 1), pick(rng, WOODS)
    parts = [box((0.02, width_m, 1.9), (-0.15, 0.0, 0.0), wood, "wood")]
    parts += [box((0.3, 0.03, 1.9), (0.01, y * (width_m / 2 - 0.015), 0.0), wood, "wood") for y in (-1, 1)]
    parts += [
        box((0.29, width_m - 0.06, 0.03), (0.005, 0.0, z), wood, "wood") for z in (0.05, 0.5, 0.95, 1.4, 1.87)
    ]
    for shelf_top in (0.08, 0.53, 0.98, 1.43):
        inner_m, split = width_m - 0.1, rng.uniform(0.3, 0.9)
        for start, end in ((0.0, split), (split, 1.0)) if split < 0.7 else ((0.0, split),):
            size = (0.2, (end - start) * inner_m - 0.01, round(rng.uniform(0.22, 0.34), 2))
            y = ((start + end) / 2 - 0.5) * inner_m
            parts.append(box(size, (-0.02, y, shelf_top), pick(rng, FABRICS).rgb, "fabric"))
    return Piece("bookshelf", 0.32, width_m, 1.9, parts, color=word)


def tv(rng: np.random.Generator) -> Piece:
    """Return a television on a low cabinet."""
    wood = pick(rng, WOODS).rgb
    parts = [
        box((0.42, 1.5, 0.45), (0.0, 0.0, 0.0), wood, "wood"),
        *(box((0.02, 0.7, 0.34), (0.21, y, 0.05), lighter(wood), "wood") for y in (-0.37, 0.37)),
        box((0.2, 0.4, 0.08), (-0.05, 0.0, 0.45), BLACK),
        box((0.05, 1.2, 0.7), (-0.05, 0.0, 0.53), BLACK),
        box((0.01, 1.14, 0.62), (-0.021, 0.0, 0.57), (0.10, 0.13, 0.20)),
    ]
    return Piece("TV", 0.44, 1.5, 1.23, parts)


def sideboard(rng: np.random.Generator) -> Piece:
    """Return a low cabinet with a vase on it."""
    width_m, (word, wood) = round(rng.uniform(1.0, 1.4), 1), pick(rng, WOODS)
    parts = [
        box((0.36, width_m, 0.8), (-0.01, 0.0, 0.0), wood, "wood"),
        *(
            box((0.02, width_m / 2 - 0.05, 0.66), (0.18, y * width_m / 4, 0.08), lighter(wood), "wood")
            for y in (-1, 1)
        ),
        cylinder(0.14, 0.24, (0.0, width_m / 4, 0.8), pick(rng, FABRICS).rgb, "marble"),
    ]
    return Piece("sideboard", 0.38, width_m, 1.04, parts, color=word)


def plant(rng: np.random.Generator) -> Piece:
    """Return a potted plant."""
    height_m = round(rng.uniform(0.5, 0.8), 2)
    parts = [
        cylinder(0.3, 0.3, (0.0, 0.0, 0.0), (0.68, 0.36, 0.22)),
        cylinder(0.05, height_m - 0.2, (0.0, 0.0, 0.3), (0.35, 0.24, 0.14)),
        sphere(0.42, (0.0, 0.0, height_m - 0.1), GREEN),
        sphere(0.3, (0.04, 0.05, height_m + 0.2), lighter(GREEN)),
    ]
    return Piece("plant", 0.44, 0.44, height_m + 0.5, parts)


def floor_lamp(rng: np.random.Generator) -> Piece:
    """Return a standing lamp."""
    word, shade = pick(rng, FABRICS)
    parts = [
        cylinder(0.3, 0.03, (0.0, 0.0, 0.0), BLACK),
        cylinder(0.04, 1.35, (0.0, 0.0, 0.03), BLACK),
        cylinder(0.36, 0.28, (0.0, 0.0, 1.3), shade),
    ]
    return Piece("floor lamp", 0.36, 0.36, 1.58, parts, color=word)


def rug(rng: np.random.Generator, depth_m: float, width_m: float) -> Piece:
    """Return a rug, which nobody bumps into."""
    word, color = pick(rng, FABRICS)
    parts = [
        box((depth_m, width_m, 0.012), (0.0, 0.0, 0.0), lighter(color), "carpet", collision=False),
        box((depth_m - 0.24, width_m - 0.24, 0.018), (0.0, 0.0, 0.0), color, "carpet", collision=False),
    ]
    return Piece("rug", depth_m, width_m, 0.018, parts, landmark=False, color=word)


def pick(rng: np.random.Generator, paints: tuple[Paint, ...]) -> Paint:
    """Draw one of some paints."""
    return paints[rng.integers(len(paints))]
