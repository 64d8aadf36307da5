"""What is built in or hangs on walls: kitchen, bathroom, windows, pictures. Same frame as furniture."""

from __future__ import annotations

import numpy as np

from proctor.scenes.colors import FABRICS, PALETTE, STEEL, WOODS, Paint, darker, paints
from proctor.scenes.floor_plan import WALL_HEIGHT_M
from proctor.scenes.furniture import BLACK, WHITE, Piece, pick
from proctor.scenes.scene_config import Part
from proctor.scenes.shapes import Triple, box, cylinder

PORCELAIN = PALETTE["white"]
GLASS: Triple = (0.66, 0.84, 0.97)
STONE: Triple = (0.25, 0.25, 0.28)
FRONTS = paints("white", "green", "red", "blue", "yellow", "beige", "grey")
FRIDGES = paints("white", "grey", "red", "black")


def kitchen_counter(rng: np.random.Generator, paint: Paint) -> Piece:
    """Return a stretch of kitchen cupboards with others hanging above."""
    width_m, front = round(rng.uniform(0.7, 1.6), 1), paint.rgb
    parts = [
        *_cabinet(width_m, front),
        box((0.34, width_m, 0.6), (-0.13, 0.0, 1.5), front, "wood", collision=False),
        box((0.02, 0.02, 0.5), (0.05, 0.0, 1.55), STONE, collision=False),
    ]
    return Piece("counter", 0.62, width_m, 2.1, parts, color=paint.word)


def kitchen_sink(front: Triple) -> Piece:
    """Return a cupboard with a sink let into it."""
    parts = [
        *_cabinet(0.8, front),
        box((0.4, 0.55, 0.01), (0.02, 0.0, 0.91), STEEL.rgb),
        box((0.3, 0.45, 0.012), (0.02, 0.0, 0.912), (0.38, 0.40, 0.43)),
        cylinder(0.04, 0.28, (-0.23, 0.0, 0.91), STEEL.rgb),
        box((0.2, 0.03, 0.03), (-0.14, 0.0, 1.17), STEEL.rgb),
    ]
    return Piece("sink", 0.62, 0.8, 1.2, parts)


def stove() -> Piece:
    """Return an oven with two hotplates under a hood."""
    parts = [
        box((0.6, 0.6, 0.9), (0.0, 0.0, 0.0), STEEL.rgb),
        box((0.02, 0.48, 0.42), (0.3, 0.0, 0.18), BLACK),
        box((0.02, 0.5, 0.03), (0.31, 0.0, 0.66), WHITE),
        box((0.56, 0.56, 0.012), (0.0, 0.0, 0.9), BLACK),
        *(cylinder(0.2, 0.016, (xy, xy, 0.9), (0.62, 0.20, 0.14)) for xy in (-0.13, 0.13)),
        box((0.45, 0.6, 0.18), (-0.075, 0.0, 1.6), STEEL.rgb, collision=False),
    ]
    return Piece("stove", 0.64, 0.6, 1.78, parts, color="grey")


def fridge(rng: np.random.Generator) -> Piece:
    """Return a tall refrigerator with a freezer below."""
    word, color = pick(rng, FRIDGES)
    parts = [
        box((0.62, 0.66, 1.85), (-0.02, 0.0, 0.0), darker(color)),
        box((0.04, 0.64, 1.15), (0.31, 0.0, 0.68), color),
        box((0.04, 0.64, 0.6), (0.31, 0.0, 0.05), color),
        *(box((0.04, 0.03, height_m), (0.34, 0.26, z), BLACK) for z, height_m in ((0.85, 0.5), (0.3, 0.3))),
    ]
    return Piece("fridge", 0.72, 0.66, 1.85, parts, color=word)


def bathtub() -> Piece:
    """Return a tub with water in it, its long side to the wall."""
    parts = [
        *(box((0.08, 1.65, 0.56), (x, 0.0, 0.0), PORCELAIN) for x in (-0.34, 0.34)),
        *(box((0.6, 0.08, 0.56), (0.0, y, 0.0), PORCELAIN) for y in (-0.785, 0.785)),
        box((0.62, 1.5, 0.42), (0.0, 0.0, 0.0), (0.55, 0.80, 0.90)),
        cylinder(0.05, 0.3, (-0.34, 0.55, 0.56), STEEL.rgb),
        box((0.18, 0.04, 0.04), (-0.26, 0.55, 0.82), STEEL.rgb),
    ]
    return Piece("bathtub", 0.76, 1.65, 0.86, parts, color="white")


def toilet() -> Piece:
    """Return a toilet with its cistern at the wall."""
    parts = [
        box((0.18, 0.4, 0.36), (-0.24, 0.0, 0.42), PORCELAIN),
        box((0.4, 0.26, 0.42), (-0.13, 0.0, 0.0), PORCELAIN),
        cylinder(0.4, 0.2, (0.1, 0.0, 0.2), PORCELAIN),
        cylinder(0.42, 0.03, (0.1, 0.0, 0.4), (0.82, 0.82, 0.80)),
        cylinder(0.26, 0.034, (0.1, 0.0, 0.4), (0.35, 0.45, 0.50)),
    ]
    return Piece("toilet", 0.66, 0.42, 0.78, parts, color="white")


def washbasin(rng: np.random.Generator) -> Piece:
    """Return a bathroom sink on a cabinet."""
    wood = pick(rng, WOODS).rgb
    parts = [
        box((0.42, 0.6, 0.68), (-0.02, 0.0, 0.0), wood, "wood"),
        box((0.48, 0.68, 0.16), (0.0, 0.0, 0.68), PORCELAIN),
        cylinder(0.36, 0.012, (0.03, 0.0, 0.835), (0.60, 0.70, 0.75)),
        cylinder(0.04, 0.18, (-0.18, 0.0, 0.84), STEEL.rgb),
        box((0.16, 0.03, 0.03), (-0.11, 0.0, 1.0), STEEL.rgb),
    ]
    return Piece("sink", 0.48, 0.68, 1.03, parts)


def mirror() -> Piece:
    """Return a framed mirror."""
    parts = [
        box((0.03, 0.6, 0.8), (0.0, 0.0, 1.15), WOODS[0].rgb, "wood", collision=False),
        box((0.02, 0.52, 0.72), (0.01, 0.0, 1.19), (0.78, 0.86, 0.90), collision=False),
    ]
    return Piece("mirror", 0.04, 0.6, 1.95, parts, bottom_m=1.15, landmark=False)


def picture(rng: np.random.Generator) -> Piece:
    """Return a painting: sky over land, in colours of its own."""
    sky, land = (FABRICS[index].rgb for index in rng.choice(len(FABRICS), 2, replace=False))
    width_m, height_m = round(rng.uniform(0.5, 0.9), 2), round(rng.uniform(0.45, 0.65), 2)
    inner_m, inner_height_m = width_m - 0.1, height_m - 0.1
    parts = [
        box((0.03, width_m, height_m), (0.0, 0.0, 1.3), (0.30, 0.20, 0.10), "wood", collision=False),
        box((0.02, inner_m, inner_height_m), (0.01, 0.0, 1.35), sky, collision=False),
        box((0.02, inner_m - 0.01, 0.4 * inner_height_m), (0.014, 0.0, 1.35), land, collision=False),
    ]
    return Piece("picture", 0.05, width_m, 1.3 + height_m, parts, bottom_m=1.3, landmark=False)


def window(rng: np.random.Generator) -> Piece:
    """Return a window with two wings and a sill, set onto the wall: the world outside is not built."""
    width_m = round(rng.uniform(1.1, 1.6), 1)
    wing_m = (width_m - 0.2) / 2
    parts = [
        box((0.05, width_m, 1.22), (-0.025, 0.0, 1.04), WHITE, collision=False),
        *(
            box((0.02, wing_m, 1.06), (-0.005, y * (wing_m + 0.06) / 2, 1.13), GLASS, collision=False)
            for y in (-1, 1)
        ),
        box((0.1, width_m + 0.1, 0.04), (0.0, 0.0, 1.02), WHITE, collision=False),
    ]
    return Piece("window", 0.1, width_m + 0.1, 2.26, parts, bottom_m=1.02, landmark=False)


def front_door(rng: np.random.Generator) -> Piece:
    """Return the closed door to the street."""
    word, color = pick(rng, FRONTS[1:])
    parts = [
        box((0.04, 1.12, 2.12), (-0.02, 0.0, 0.0), WHITE, "wood"),
        box((0.05, 0.98, 2.04), (-0.01, 0.0, 0.01), color, "wood"),
        *(box((0.02, 0.7, 0.75), (0.01, 0.0, z), darker(color), "wood") for z in (0.2, 1.1)),
        cylinder(0.05, 0.05, (0.015, 0.42, 1.0), (0.80, 0.65, 0.25)),
    ]
    return Piece("front door", 0.08, 1.12, 2.12, parts, color=word)


def coat_rack(rng: np.random.Generator) -> Piece:
    """Return a board on the wall with three coats."""
    coats = [FABRICS[index].rgb for index in rng.choice(len(FABRICS), 3, replace=False)]
    parts = [box((0.04, 1.0, 0.12), (-0.07, 0.0, 1.6), WOODS[1].rgb, "wood")]
    for index, coat in enumerate(coats):
        parts.append(
            box(
                (0.14, 0.26, 0.85 - 0.1 * index),
                (0.0, (index - 1) * 0.32, 0.75 + 0.1 * index),
                coat,
                "fabric",
            )
        )
    return Piece("coat rack", 0.18, 1.0, 1.72, parts)


def ceiling_lamp() -> Piece:
    """Return a round lamp under the ceiling."""
    part = cylinder(0.36, 0.08, (0.0, 0.0, WALL_HEIGHT_M - 0.08), (1.0, 0.98, 0.90))
    return Piece(
        "ceiling lamp", 0.36, 0.36, WALL_HEIGHT_M, [part], bottom_m=WALL_HEIGHT_M - 0.08, landmark=False
    )


def _cabinet(width_m: float, front: Triple) -> list[Part]:
    """Return a base unit with doors below a stone worktop, 0.91 m high."""
    door_m = width_m / 2 - 0.02
    return [
        box((0.56, width_m, 0.87), (-0.02, 0.0, 0.0), darker(front), "wood"),
        *(box((0.02, door_m, 0.72), (0.265, y * width_m / 4, 0.1), front, "wood") for y in (-1, 1)),
        box((0.62, width_m, 0.04), (0.0, 0.0, 0.87), STONE, "marble"),
    ]
