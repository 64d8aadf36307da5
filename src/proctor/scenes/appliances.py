"""Kitchen, bathroom and laundry."""

from __future__ import annotations

from proctor.scenes.colors import FABRICS, PALETTE, WOODS, Paint, darker, lighter, paints
from proctor.scenes.pieces import BLACK, METAL, WHITE, Piece, Rng, fronts, fruit, pick
from proctor.scenes.scene_config import Part
from proctor.scenes.shapes import Triple, box, cylinder, rod, trim

STONE: Triple = (0.25, 0.25, 0.28)
WATER: Triple = (0.55, 0.80, 0.90)
GLASS = (0.75, 0.90, 0.95, 0.3)
FRONTS = paints("white", "green", "red", "blue", "yellow", "beige", "grey", "turquoise", "orange")
FRIDGES = (*paints("white", "red", "black", "turquoise"), Paint("grey", METAL))
COUNTER_M = 0.91


def counter(rng: Rng, paint: Paint) -> Piece:
    """Return a stretch of kitchen cupboards with others hanging above, and a microwave or a kettle."""
    width_m, front = round(rng.uniform(0.8, 1.6), 1), paint.rgb
    parts = [
        *_cabinet(width_m, front),
        trim((0.34, width_m, 0.6), (-0.13, 0.0, 1.5), darker(front), "wood"),
        *fronts(0.05, width_m, 1.51, 2.09, front, columns=2),
        _backsplash(width_m),
    ]
    if rng.random() < 0.5:
        parts += [
            trim((0.34, 0.46, 0.27), (-0.1, 0.0, COUNTER_M), METAL),
            trim((0.01, 0.3, 0.2), (0.072, -0.05, COUNTER_M + 0.03), BLACK),
        ]
    else:
        parts += [
            cylinder(0.15, 0.2, (-0.1, 0.0, COUNTER_M), METAL, collision=False),
            cylinder(0.1, 0.16, (-0.1, 0.25, COUNTER_M), pick(rng, FABRICS).rgb, collision=False),
        ]
    return Piece("counter", 0.62, width_m, 2.1, parts, color=paint.word)


def sink(paint: Paint) -> Piece:
    """Return a cupboard with a sink let into it."""
    parts = [
        *_cabinet(0.8, paint.rgb),
        trim((0.42, 0.6, 0.01), (0.02, 0.0, COUNTER_M), METAL),
        trim((0.32, 0.48, 0.012), (0.04, 0.0, COUNTER_M + 0.002), (0.30, 0.31, 0.33)),
        trim((0.035, 0.035, 0.3), (-0.2, 0.0, COUNTER_M), METAL),
        trim((0.22, 0.03, 0.03), (-0.1, 0.0, COUNTER_M + 0.27), METAL),
        trim((0.03, 0.03, 0.06), (0.0, 0.0, COUNTER_M + 0.22), METAL),
        _backsplash(0.8),
    ]
    return Piece("sink", 0.62, 0.8, 1.5, parts)


def stove(rng: Rng) -> Piece:
    """Return an oven with hotplates under a hood."""
    word, color = pick(rng, (*paints("white", "black"), Paint("grey", METAL)))
    parts = [
        box((0.6, 0.6, 0.9), (0.0, 0.0, 0.0), color),
        trim((0.02, 0.5, 0.4), (0.3, 0.0, 0.2), (0.16, 0.16, 0.18)),
        trim((0.03, 0.46, 0.025), (0.315, 0.0, 0.62), METAL),
        trim((0.57, 0.57, 0.012), (0.0, 0.0, 0.9), (0.14, 0.14, 0.16)),
        *(
            cylinder(0.2, 0.016, (x, y, 0.9), (0.62, 0.20, 0.14), collision=False)
            for x in (-0.14, 0.14)
            for y in (-0.14, 0.14)
        ),
        *(
            trim((0.04, 0.05, 0.05), (0.315, -0.2 + 0.1 * knob, 0.755), (0.16, 0.16, 0.18))
            for knob in range(5)
        ),
        trim((0.45, 0.6, 0.1), (-0.08, 0.0, 1.55), METAL),
        trim((0.25, 0.25, 0.94), (-0.17, 0.0, 1.65), METAL),
        _backsplash(0.6),
    ]
    return Piece("stove", 0.68, 0.6, 2.59, parts, color=word)


def fridge(rng: Rng) -> Piece:
    """Return a tall refrigerator with a freezer below."""
    word, color = pick(rng, FRIDGES)
    handle = METAL if word in ("black", "red") else (0.2, 0.2, 0.22)
    parts = [
        box((0.62, 0.66, 1.85), (-0.03, 0.0, 0.0), color),
        trim((0.05, 0.64, 1.13), (0.3, 0.0, 0.69), color),
        trim((0.05, 0.64, 0.6), (0.3, 0.0, 0.06), color),
        trim((0.04, 0.62, 0.03), (0.29, 0.0, 0.66), BLACK),
        *(trim((0.04, 0.03, height_m), (0.34, 0.26, z), handle) for z, height_m in ((0.8, 0.5), (0.3, 0.3))),
        *(
            trim(
                (0.01, 0.07, 0.07),
                (0.326, round(rng.uniform(-0.2, 0.1), 2), 1.3 + 0.12 * i),
                pick(rng, FABRICS).rgb,
            )
            for i in range(2)
        ),
    ]
    return Piece("fridge", 0.73, 0.66, 1.85, parts, color=word)


def kitchen_island(rng: Rng, paint: Paint) -> Piece:
    """Return a free-standing block with a worktop that juts out at the front."""
    front = paint.rgb
    parts = [
        box((0.6, 1.5, 0.87), (-0.12, 0.0, 0.0), front, "wood"),
        *fronts(0.18, 1.46, 0.08, 0.86, lighter(front, 0.12), columns=3),
        box((0.9, 1.6, 0.05), (0.0, 0.0, 0.87), STONE, "marble"),
        cylinder(0.3, 0.07, (0.0, 0.3, 0.92), WHITE, collision=False),
        *fruit(0.1, 0.06, 0.3, 0.92),
        trim((0.25, 0.36, 0.02), (0.0, -0.35, 0.92), pick(rng, WOODS).rgb, "wood"),
    ]
    return Piece("kitchen island", 0.9, 1.6, 1.06, parts, color=paint.word)


def washing_machine(_: Rng) -> Piece:
    """Return a front loader."""
    parts = [
        box((0.58, 0.6, 0.85), (-0.01, 0.0, 0.0), WHITE),
        trim((0.02, 0.58, 0.12), (0.28, 0.0, 0.71), (0.8, 0.81, 0.82)),
        rod(0.42, 0.02, (0.285, 0.0, 0.4), METAL, along="x"),
        rod(0.32, 0.03, (0.288, 0.0, 0.4), (0.12, 0.16, 0.22), along="x"),
        rod(0.07, 0.03, (0.29, 0.2, 0.77), METAL, along="x"),
        trim((0.01, 0.18, 0.05), (0.288, -0.15, 0.745), (0.1, 0.3, 0.3)),
    ]
    return Piece("washing machine", 0.62, 0.6, 0.85, parts, color="white")


def ironing_board(rng: Rng) -> Piece:
    """Return an ironing board with an iron on it."""
    word, cover = pick(rng, FABRICS)
    parts = [
        box((0.36, 1.15, 0.04), (0.0, 0.08, 0.88), cover, "fabric"),
        box((0.2, 0.2, 0.04), (0.0, -0.57, 0.88), cover, "fabric"),
        *(
            trim((0.03, 0.03, 1.1), (x, 0.0, -0.11), METAL, turn=(angle, 0, 0))
            for x, angle in ((-0.1, 40), (0.1, -40))
        ),
        trim((0.12, 0.22, 0.1), (0.0, 0.35, 0.92), (0.14, 0.31, 0.70)),
    ]
    return Piece("ironing board", 0.36, 1.34, 1.02, parts, color=word)


def bathtub(_: Rng) -> Piece:
    """Return a tub with water in it, its long side to the wall."""
    parts = [
        *(box((0.1, 1.7, 0.56), (hand * 0.34, 0.0, 0.0), WHITE) for hand in (-1, 1)),
        *(box((0.6, 0.1, 0.56), (0.0, hand * 0.8, 0.0), WHITE) for hand in (-1, 1)),
        box((0.62, 1.55, 0.44), (0.0, 0.0, 0.0), WATER),
        trim((0.04, 0.04, 0.28), (-0.34, 0.5, 0.56), METAL),
        trim((0.2, 0.04, 0.04), (-0.25, 0.5, 0.8), METAL),
    ]
    return Piece("bathtub", 0.78, 1.7, 0.84, parts, color="white")


def shower(_: Rng) -> Piece:
    """Return a cabin of glass."""
    parts = [
        box((0.9, 0.9, 0.1), (0.0, 0.0, 0.0), WHITE),
        *(trim((0.03, 0.03, 1.9), (0.43, hand * 0.43, 0.1), METAL) for hand in (-1, 1)),
        *(trim((0.87, 0.03, 0.03), (0.0, hand * 0.43, 1.98), METAL) for hand in (-1, 1)),
        trim((0.03, 0.87, 0.03), (0.43, 0.0, 1.98), METAL),
        *(box((0.86, 0.01, 1.88), (0.0, hand * 0.43, 0.1), GLASS) for hand in (-1, 1)),
        box((0.01, 0.86, 1.88), (0.43, 0.0, 0.1), GLASS),
        trim((0.02, 0.02, 0.2), (0.455, 0.25, 0.95), METAL),
        trim((0.02, 0.9, 1.9), (-0.44, 0.0, 0.1), (0.70, 0.86, 0.90), "tiles"),
        trim((0.03, 0.03, 1.0), (-0.41, 0.0, 1.0), METAL),
        trim((0.22, 0.03, 0.03), (-0.3, 0.0, 1.97), METAL),
        cylinder(0.22, 0.03, (-0.2, 0.0, 1.94), METAL, collision=False),
    ]
    return Piece("shower", 0.94, 0.9, 2.02, parts)


def toilet(_: Rng) -> Piece:
    """Return a toilet with its cistern at the wall."""
    parts = [
        box((0.18, 0.4, 0.36), (-0.24, 0.0, 0.42), WHITE),
        trim((0.2, 0.42, 0.03), (-0.23, 0.0, 0.78), WHITE),
        trim((0.05, 0.08, 0.015), (-0.23, 0.0, 0.81), METAL),
        box((0.46, 0.24, 0.42), (-0.1, 0.0, 0.0), WHITE),
        cylinder(0.4, 0.22, (0.12, 0.0, 0.18), WHITE),
        cylinder(0.42, 0.03, (0.12, 0.0, 0.4), (0.84, 0.84, 0.82), collision=False),
        cylinder(0.27, 0.034, (0.12, 0.0, 0.4), (0.40, 0.52, 0.58), collision=False),
        trim((0.04, 0.38, 0.4), (-0.11, 0.0, 0.43), (0.84, 0.84, 0.82), turn=(0, -8, 0)),
    ]
    return Piece("toilet", 0.67, 0.42, 0.84, parts, color="white")


def washbasin(rng: Rng) -> Piece:
    """Return a bathroom sink on a cabinet."""
    wood = pick(rng, WOODS).rgb
    parts = [
        box((0.42, 0.64, 0.66), (-0.02, 0.0, 0.0), wood, "wood"),
        *fronts(0.2, 0.62, 0.06, 0.64, lighter(wood, 0.12), columns=2),
        box((0.5, 0.72, 0.18), (0.0, 0.0, 0.66), WHITE),
        cylinder(0.38, 0.012, (0.04, 0.0, 0.835), WATER, collision=False),
        trim((0.04, 0.04, 0.18), (-0.19, 0.0, 0.84), METAL),
        trim((0.16, 0.03, 0.03), (-0.11, 0.0, 1.0), METAL),
        cylinder(0.07, 0.16, (-0.14, 0.27, 0.84), pick(rng, FABRICS).rgb, collision=False),
    ]
    return Piece("sink", 0.5, 0.72, 1.03, parts)


def towel_rail(rng: Rng) -> Piece:
    """Return a rail on the wall with two towels."""
    word, color = pick(rng, FABRICS)
    parts = [
        rod(0.025, 0.9, (-0.01, 0.0, 1.35), METAL, along="y"),
        *(trim((0.05, 0.03, 0.03), (-0.025, hand * 0.43, 1.335), METAL) for hand in (-1, 1)),
        trim((0.05, 0.36, 0.7), (0.0, -0.2, 0.67), color, "fabric"),
        trim((0.05, 0.3, 0.5), (0.0, 0.22, 0.87), lighter(color, 0.35), "fabric"),
    ]
    return Piece("towel rail", 0.1, 0.9, 1.38, parts, bottom_m=0.67, landmark=False, color=word)


def _cabinet(width_m: float, front: Triple) -> list[Part]:
    return [
        box((0.52, width_m, 0.1), (-0.04, 0.0, 0.0), STONE),
        box((0.56, width_m, 0.77), (-0.02, 0.0, 0.1), darker(front), "wood"),
        *fronts(0.27, width_m, 0.11, 0.86, front, columns=2),
        box((0.62, width_m, 0.04), (0.0, 0.0, 0.87), STONE, "marble"),
    ]


def _backsplash(width_m: float) -> Part:
    return trim((0.012, width_m, 0.59), (-0.303, 0.0, COUNTER_M), PALETTE["white"], "mosaic")
