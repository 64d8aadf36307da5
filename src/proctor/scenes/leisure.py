"""What people exercise, play and warm themselves with."""

from __future__ import annotations

from proctor.scenes.colors import FABRICS, WOODS, Paint, lighter, paints
from proctor.scenes.floor_plan import WALL_HEIGHT_M
from proctor.scenes.pieces import BLACK, METAL, WHITE, Piece, Rng, pick
from proctor.scenes.shapes import box, cylinder, rod, sphere, trim

DARK = (0.2, 0.2, 0.22)
BRICKS = (Paint("red", (0.66, 0.22, 0.16)), *paints("white", "grey", "beige"))


def fireplace(rng: Rng) -> Piece:
    """Return a chimney of bricks with a fire in it."""
    (word, brick), wood = pick(rng, BRICKS), pick(rng, WOODS).rgb
    flame, ember = (1.0, 0.62, 0.10), (0.90, 0.30, 0.06)
    parts = [
        *(box((0.4, 0.4, 1.0), (0.0, hand * 0.5, 0.0), brick, "brick") for hand in (-1, 1)),
        box((0.4, 1.4, 0.16), (0.0, 0.0, 1.0), brick, "brick"),
        box((0.3, 1.1, WALL_HEIGHT_M - 1.17), (-0.05, 0.0, 1.16), brick, "brick"),
        box((0.04, 0.62, 0.99), (-0.17, 0.0, 0.0), (0.13, 0.11, 0.10)),
        box((0.5, 1.5, 0.07), (0.04, 0.0, 1.16), wood, "wood"),
        box((0.2, 0.6, 0.06), (0.0, 0.0, 0.0), DARK),
        *(rod(0.09, 0.5, (x, 0.0, 0.12), (0.30, 0.19, 0.11), along="y") for x in (-0.05, 0.06)),
        *(sphere(d, (0.0, y, 0.14), flame, collision=False) for y, d in ((-0.12, 0.2), (0.12, 0.24))),
        sphere(0.3, (-0.02, 0.0, 0.12), ember, collision=False),
        cylinder(0.06, 0.2, (0.06, 0.5, 1.23), WHITE, collision=False),
        cylinder(0.06, 0.15, (0.06, 0.4, 1.23), WHITE, collision=False),
    ]
    return Piece("fireplace", 0.58, 1.5, WALL_HEIGHT_M, parts, color=word)


def crib(rng: Rng) -> Piece:
    """Return a baby's bed with bars."""
    (word, wood), cover = pick(rng, WOODS), pick(rng, FABRICS).rgb
    parts = [
        *(box((0.66, 0.05, 0.95), (0.0, hand * 0.6, 0.0), wood, "wood") for hand in (-1, 1)),
        *(
            box((0.04, 1.16, 0.05), (hand * 0.31, 0.0, z), wood, "wood")
            for hand in (-1, 1)
            for z in (0.2, 0.85)
        ),
        *(
            trim((0.025, 0.03, 0.62), (hand * 0.31, -0.5 + 0.125 * bar, 0.24), wood)
            for hand in (-1, 1)
            for bar in range(9)
        ),
        box((0.58, 1.14, 0.14), (0.0, 0.0, 0.24), WHITE, "fabric"),
        trim((0.56, 0.7, 0.05), (0.0, 0.2, 0.37), cover, "fabric"),
        trim((0.34, 0.24, 0.08), (0.0, -0.4, 0.37), WHITE, "fabric"),
    ]
    return Piece("crib", 0.66, 1.25, 0.95, parts, color=word)


def treadmill(_: Rng) -> Piece:
    """Return a treadmill that one mounts from the front."""
    parts = [
        box((1.5, 0.7, 0.14), (0.0, 0.0, 0.02), DARK),
        trim((1.3, 0.48, 0.02), (0.08, 0.0, 0.15), BLACK),
        *(box((0.06, 0.06, 1.2), (-0.6, hand * 0.31, 0.1), METAL) for hand in (-1, 1)),
        box((0.08, 0.72, 0.3), (-0.6, 0.0, 1.15), DARK, turn=(0, -20, 0)),
        trim((0.02, 0.4, 0.18), (-0.555, 0.0, 1.21), (0.2, 0.6, 0.8), turn=(0, -20, 0)),
        *(trim((0.5, 0.05, 0.05), (-0.35, hand * 0.32, 1.0), BLACK) for hand in (-1, 1)),
    ]
    return Piece("treadmill", 1.5, 0.74, 1.46, parts, color="black")


def exercise_bike(rng: Rng) -> Piece:
    """Return a stationary bicycle."""
    word, color = pick(rng, FABRICS[:6])
    parts = [
        *(box((0.06, 0.5, 0.05), (x, 0.0, 0.0), BLACK) for x in (-0.5, 0.5)),
        box((1.0, 0.08, 0.08), (0.0, 0.0, 0.05), color),
        rod(0.5, 0.06, (0.32, 0.0, 0.38), color, along="y", collision=True),
        rod(0.36, 0.08, (0.32, 0.0, 0.38), DARK, along="y"),
        box((0.1, 0.1, 0.7), (-0.25, 0.0, 0.1), color, turn=(0, -14, 0)),
        box((0.1, 0.1, 0.95), (0.28, 0.0, 0.1), color, turn=(0, 10, 0)),
        box((0.3, 0.2, 0.08), (-0.33, 0.0, 0.8), BLACK),
        trim((0.06, 0.5, 0.05), (0.36, 0.0, 1.05), BLACK),
        trim((0.04, 0.2, 0.14), (0.42, 0.0, 1.1), DARK),
        *(trim((0.14, 0.1, 0.03), (0.0, hand * 0.16, 0.255), BLACK) for hand in (-1, 1)),
        rod(0.04, 0.3, (0.0, 0.0, 0.27), METAL, along="y"),
        trim((0.06, 0.06, 0.14), (0.0, 0.0, 0.13), color),
    ]
    return Piece("exercise bike", 1.14, 0.52, 1.24, parts, color=word)


def weight_bench(rng: Rng) -> Piece:
    """Return a bench with a barbell over it."""
    word, color = pick(rng, FABRICS[:6])
    parts = [
        box((1.1, 0.34, 0.1), (0.05, 0.0, 0.4), color, "fabric"),
        *(box((0.06, 0.36, 0.4), (x, 0.0, 0.0), color) for x in (-0.4, 0.5)),
        *(box((0.06, 0.06, 1.0), (-0.45, hand * 0.4, 0.0), color) for hand in (-1, 1)),
        rod(0.035, 1.5, (-0.4, 0.0, 1.0), METAL, along="y", collision=True),
        *(rod(0.4, 0.06, (-0.4, hand * 0.62, 1.0), DARK, along="y", collision=True) for hand in (-1, 1)),
        *(rod(0.3, 0.05, (-0.4, hand * 0.68, 1.0), DARK, along="y") for hand in (-1, 1)),
    ]
    return Piece("weight bench", 1.22, 1.5, 1.2, parts, color=word)


def dumbbell_rack(rng: Rng) -> Piece:
    """Return a rack of dumbbells."""
    word, color = pick(rng, FABRICS[:6])
    parts = [
        *(box((0.4, 0.05, 0.8), (0.0, hand * 0.55, 0.0), color) for hand in (-1, 1)),
        *(
            box((0.3, 1.1, 0.03), (x, 0.0, z), color, turn=(0, 12, 0))
            for x, z in ((0.02, 0.28), (-0.02, 0.66))
        ),
    ]
    for z in (0.4, 0.78):
        for y in (-0.36, 0.0, 0.36):
            parts.append(trim((0.03, 0.26, 0.03), (0.0, y, z - 0.015), METAL))
            parts += [rod(0.14, 0.07, (0.0, y + hand * 0.1, z), DARK, along="y") for hand in (-1, 1)]
    return Piece("dumbbell rack", 0.4, 1.15, 0.86, parts, color=word)


def grandfather_clock(rng: Rng) -> Piece:
    """Return a tall clock with a pendulum."""
    word, wood = pick(rng, WOODS[:1] + WOODS[3:])
    brass = (0.85, 0.68, 0.28)
    parts = [
        box((0.3, 0.5, 0.5), (0.0, 0.0, 0.0), wood, "wood"),
        box((0.24, 0.4, 1.0), (-0.02, 0.0, 0.5), wood, "wood"),
        box((0.3, 0.5, 0.5), (0.0, 0.0, 1.5), wood, "wood"),
        trim((0.32, 0.54, 0.06), (0.0, 0.0, 2.0), lighter(wood, 0.12), "wood"),
        trim((0.01, 0.26, 0.8), (0.1, 0.0, 0.6), (0.22, 0.16, 0.12)),
        trim((0.01, 0.02, 0.5), (0.106, 0.0, 0.86), brass),
        rod(0.14, 0.012, (0.108, 0.0, 0.82), brass, along="x"),
        rod(0.4, 0.02, (0.152, 0.0, 1.75), WHITE, along="x"),
        trim((0.01, 0.02, 0.15), (0.165, 0.0, 1.75), BLACK),
        trim((0.01, 0.11, 0.02), (0.167, 0.05, 1.745), BLACK),
    ]
    return Piece("grandfather clock", 0.35, 0.54, 2.06, parts, color=word)
