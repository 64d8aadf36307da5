"""Furniture to sit, lie, eat and work on, to exercise, play and keep warm with."""

from __future__ import annotations

from proctor.scenes.colors import FABRICS, WOODS, Paint, darker, lighter, paints
from proctor.scenes.floor_plan import WALL_HEIGHT_M
from proctor.scenes.pieces import BLACK, METAL, WHITE, Piece, Rng, fronts, fruit, legs, pick
from proctor.scenes.scene_config import Part
from proctor.scenes.shapes import Triple, box, cylinder, rod, sphere, trim

DARK = (0.2, 0.2, 0.22)
BRICKS = (Paint("red", (0.66, 0.22, 0.16)), *paints("white", "grey", "beige"))


def bed(rng: Rng, *, width_m: float = 1.6) -> Piece:
    """Return a bed with its headboard at the back."""
    wood, (word, cover) = pick(rng, WOODS).rgb, pick(rng, FABRICS)
    head_m = round(rng.uniform(0.85, 1.15), 2)
    pillow_m = 0.6 if width_m > 1.2 else 0.65
    pillows = (-width_m / 4, width_m / 4) if width_m > 1.2 else (0.0,)
    parts = [
        box((0.06, width_m, head_m), (-1.02, 0.0, 0.0), wood, "wood"),
        box((2.0, width_m, 0.18), (0.01, 0.0, 0.08), wood, "wood"),
        *(box((0.08, width_m - 0.1, 0.1), (x, 0.0, 0.0), wood, "wood") for x in (-0.9, 0.93)),
        box((1.96, width_m - 0.06, 0.26), (0.0, 0.0, 0.26), WHITE, "fabric"),
        box((1.38, width_m + 0.02, 0.3), (0.345, 0.0, 0.24), cover, "fabric"),
        trim((0.22, width_m + 0.03, 0.31), (-0.37, 0.0, 0.24), lighter(cover, 0.5), "fabric"),
        *(trim((0.4, pillow_m, 0.14), (-0.76, y, 0.5), WHITE, "fabric", turn=(0, -14, 0)) for y in pillows),
    ]
    return Piece("bed", 2.1, width_m + 0.04, head_m, parts, color=word)


def nightstand(rng: Rng) -> Piece:
    """Return a small cabinet with a lamp on it."""
    word, wood = pick(rng, WOODS)
    parts = [
        box((0.38, 0.42, 0.5), (-0.01, 0.0, 0.0), wood, "wood"),
        *fronts(0.185, 0.42, 0.04, 0.48, lighter(wood, 0.12), rows=2),
        cylinder(0.14, 0.02, (0.0, 0.0, 0.5), METAL, collision=False),
        cylinder(0.05, 0.2, (0.0, 0.0, 0.52), METAL, collision=False),
        cylinder(0.24, 0.2, (0.0, 0.0, 0.7), (1.0, 0.95, 0.78), collision=False),
    ]
    return Piece("nightstand", 0.42, 0.42, 0.9, parts, color=word)


def sofa(rng: Rng, *, seats: int | None = None, category: str = "sofa") -> Piece:
    """Return a sofa, or an armchair if it has one seat."""
    seats = seats or int(rng.integers(2, 4))
    (word, color), seat_m = pick(rng, FABRICS), 0.62
    width_m = seats * seat_m + 0.4
    parts = [
        box((0.86, width_m - 0.06, 0.08), (0.0, 0.0, 0.0), BLACK),
        box((0.9, width_m, 0.24), (0.0, 0.0, 0.08), color, "fabric"),
        box((0.22, width_m, 0.55), (-0.34, 0.0, 0.3), color, "fabric"),
        *(
            box((0.86, 0.2, 0.32), (0.02, hand * (width_m / 2 - 0.1), 0.3), color, "fabric")
            for hand in (-1, 1)
        ),
    ]
    for seat in range(seats):
        y = (seat - (seats - 1) / 2) * seat_m
        parts.append(trim((0.62, seat_m - 0.02, 0.15), (0.14, y, 0.32), lighter(color, 0.1), "fabric"))
        back = (0.14, seat_m - 0.03, 0.4)
        parts.append(trim(back, (-0.2, y, 0.46), lighter(color, 0.1), "fabric", turn=(0, -10, 0)))
    if seats > 1:
        parts += _cushions(rng, -0.09, seats * seat_m / 2 - 0.22, Paint(word, color))
    return Piece(category, 0.9, width_m, 0.87, parts, color=word)


def corner_sofa(rng: Rng) -> Piece:
    """Return a sofa that goes round a corner, with a place to stretch one's legs."""
    (word, color), hand = pick(rng, FABRICS), 1 if rng.random() < 0.5 else -1
    width_m, long_m, x = 2.5, 1.6, -0.35
    parts = [
        box((0.9, width_m, 0.3), (x, 0.0, 0.03), color, "fabric"),
        box((0.72, 0.95, 0.3), (0.44, hand * (width_m / 2 - 0.475), 0.03), color, "fabric"),
        box((0.22, width_m, 0.52), (-0.69, 0.0, 0.33), color, "fabric"),
        box((0.68, 0.2, 0.3), (-0.24, -hand * (width_m / 2 - 0.1), 0.33), color, "fabric"),
        trim((1.38, 0.92, 0.14), (0.11, hand * (width_m / 2 - 0.475), 0.33), lighter(color, 0.1), "fabric"),
    ]
    for seat in (-1.0, 0.0):
        y = -hand * (0.36 + 0.67 * seat) - hand * 0.01
        parts.append(trim((0.67, 0.65, 0.14), (-0.24, y, 0.33), lighter(color, 0.1), "fabric"))
    parts += _cushions(rng, -0.46, 0.85, Paint(word, color))
    return Piece("sofa", long_m, width_m, 0.87, parts, color=word)


def armchair(rng: Rng) -> Piece:
    """Return an upholstered chair for one."""
    return sofa(rng, seats=1, category="armchair")


def _cushions(rng: Rng, x: float, y: float, sofa: Paint) -> list[Part]:
    """Return two scatter cushions that lean in the corners, in another colour than the sofa."""
    paint = pick(rng, tuple(paint for paint in FABRICS if paint.word != sofa.word))
    return [
        trim((0.12, 0.38, 0.36), (x, hand * y, 0.47), paint.rgb, "fabric", turn=(0, -22, hand * -12))
        for hand in (-1, 1)
    ]


def table(rng: Rng, category: str, size: Triple) -> Piece:
    """Return a four-legged table of (depth, width, height) with something on it."""
    depth_m, width_m, height_m = size
    word, wood = pick(rng, WOODS)
    parts = [
        *legs((depth_m - 0.02, width_m - 0.02, height_m - 0.04), wood),
        box((depth_m, width_m, 0.04), (0, 0, height_m - 0.04), wood, "wood"),
    ]
    return Piece(category, depth_m, width_m, height_m + 0.2, [*parts, *_on_table(rng, height_m)], color=word)


def round_table(rng: Rng, category: str, diameter_m: float, height_m: float) -> Piece:
    """Return a round table on one foot."""
    word, wood = pick(rng, WOODS)
    parts = [
        cylinder(0.6 * diameter_m, 0.04, (0.0, 0.0, 0.0), wood, "wood"),
        cylinder(0.12, height_m - 0.08, (0.0, 0.0, 0.04), wood, "wood"),
        cylinder(diameter_m, 0.04, (0.0, 0.0, height_m - 0.04), wood, "wood"),
        *_on_table(rng, height_m),
    ]
    return Piece(category, diameter_m, diameter_m, height_m + 0.2, parts, color=word)


def _on_table(rng: Rng, top: float) -> list[Part]:
    """Return a bowl of fruit, or a vase, or books."""
    paint = pick(rng, FABRICS).rgb
    kind = rng.integers(3)
    if kind == 0:
        return [cylinder(0.26, 0.06, (0.0, 0.0, top), WHITE, collision=False), *fruit(0.09, 0.05, 0.0, top)]
    if kind == 1:
        return [
            cylinder(0.1, 0.18, (0.0, 0.1, top), paint, collision=False),
            cylinder(0.08, 0.1, (0.1, -0.15, top), WHITE, collision=False),
        ]
    return [
        trim((0.18, 0.26, 0.03), (0.0, 0.05, top), paint, turn=(0, 0, 15)),
        trim((0.16, 0.23, 0.025), (0.0, 0.05, top + 0.03), pick(rng, FABRICS).rgb, turn=(0, 0, -8)),
    ]


def chair(rng: Rng) -> Piece:
    """Return a dining chair."""
    word, wood = pick(rng, WOODS)
    seat = pick(rng, FABRICS).rgb if rng.random() < 0.5 else lighter(wood, 0.15)
    parts = [
        box((0.42, 0.41, 0.05), (0.0, 0.0, 0.42), seat, "fabric"),
        *(box((0.04, 0.04, 0.92), (-0.19, hand * 0.19, 0.0), wood, "wood") for hand in (-1, 1)),
        *(box((0.04, 0.04, 0.42), (0.18, hand * 0.18, 0.0), wood, "wood") for hand in (-1, 1)),
        *(trim((0.02, 0.34, 0.09), (-0.19, 0.0, z), wood, "wood") for z in (0.6, 0.78)),
    ]
    return Piece("chair", 0.42, 0.42, 0.92, parts, landmark=False, color=word)


def bar_stool(rng: Rng) -> Piece:
    """Return a high stool on one foot."""
    word, color = pick(rng, FABRICS)
    parts = [
        cylinder(0.36, 0.03, (0.0, 0.0, 0.0), METAL),
        cylinder(0.05, 0.63, (0.0, 0.0, 0.03), METAL),
        cylinder(0.36, 0.1, (0.0, 0.0, 0.66), color, "fabric"),
        box((0.05, 0.3, 0.26), (-0.15, 0.0, 0.74), color, "fabric"),
    ]
    return Piece("bar stool", 0.36, 0.36, 1.0, parts, landmark=False, color=word)


def office_chair(rng: Rng) -> Piece:
    """Return a swivel chair."""
    word, color = pick(rng, FABRICS)
    parts = [
        box((0.5, 0.06, 0.05), (0.0, 0.0, 0.03), BLACK),
        box((0.06, 0.5, 0.055), (0.0, 0.0, 0.03), BLACK),
        cylinder(0.07, 0.38, (0.0, 0.0, 0.08), METAL),
        box((0.46, 0.48, 0.08), (0.0, 0.0, 0.44), color, "fabric"),
        box((0.06, 0.44, 0.5), (-0.22, 0.0, 0.56), color, "fabric"),
        *(trim((0.26, 0.04, 0.03), (0.02, hand * 0.23, 0.66), BLACK) for hand in (-1, 1)),
        *(trim((0.03, 0.03, 0.16), (0.1, hand * 0.23, 0.51), BLACK) for hand in (-1, 1)),
    ]
    return Piece("office chair", 0.52, 0.5, 1.06, parts, landmark=False, color=word)


def desk(rng: Rng) -> Piece:
    """Return a desk with drawers and a computer."""
    width_m, (word, wood) = round(rng.uniform(1.2, 1.5), 1), pick(rng, WOODS)
    drawers = width_m / 2 - 0.22
    parts = [
        box((0.65, width_m, 0.04), (0.0, 0.0, 0.7), wood, "wood"),
        box((0.6, 0.04, 0.7), (0.0, 0.04 - width_m / 2, 0.0), wood, "wood"),
        box((0.6, 0.4, 0.7), (0.0, drawers, 0.0), wood, "wood"),
        *(
            trim((0.02, 0.36, 0.2), (0.3, drawers, z), lighter(wood, 0.12), "wood")
            for z in (0.04, 0.26, 0.48)
        ),
        *(trim((0.02, 0.12, 0.02), (0.315, drawers, z + 0.1), METAL) for z in (0.04, 0.26, 0.48)),
        trim((0.18, 0.22, 0.02), (-0.18, 0.0, 0.74), BLACK),
        trim((0.03, 0.05, 0.12), (-0.18, 0.0, 0.76), BLACK),
        box((0.03, 0.6, 0.38), (-0.16, 0.0, 0.84), BLACK),
        trim((0.01, 0.56, 0.34), (-0.142, 0.0, 0.86), (0.30, 0.52, 0.80)),
        trim((0.14, 0.42, 0.02), (0.12, 0.0, 0.74), (0.25, 0.25, 0.27)),
        trim((0.1, 0.06, 0.02), (0.12, 0.28, 0.74), (0.25, 0.25, 0.27)),
    ]
    return Piece("desk", 0.65, width_m, 1.22, parts, color=word)


def bench(rng: Rng) -> Piece:
    """Return a bench with a cushion."""
    (word, cover), wood = pick(rng, FABRICS), pick(rng, WOODS).rgb
    width_m = round(rng.uniform(1.0, 1.3), 1)
    parts = [
        *legs((0.4, width_m, 0.38), wood),
        box((0.4, width_m, 0.06), (0.0, 0.0, 0.38), wood, "wood"),
        trim((0.38, width_m - 0.02, 0.1), (0.0, 0.0, 0.43), cover, "fabric"),
    ]
    return Piece("bench", 0.4, width_m, 0.53, parts, color=word)


def piano(rng: Rng) -> Piece:
    """Return an upright piano, its lid open."""
    word, wood = pick(rng, tuple(paint for paint in WOODS if paint.word in ("black", "brown", "white")))
    ivory = (0.97, 0.96, 0.90)
    parts = [
        box((0.38, 1.5, 1.2), (-0.16, 0.0, 0.0), wood, "wood"),
        box((0.3, 1.5, 0.12), (0.18, 0.0, 0.58), wood, "wood"),
        *(box((0.28, 0.08, 0.58), (0.18, hand * 0.7, 0.0), wood, "wood") for hand in (-1, 1)),
        trim((0.15, 1.3, 0.03), (0.23, 0.0, 0.69), ivory),
        *(trim((0.1, 0.02, 0.05), (0.2, -0.6 + 0.1 * key, 0.69), BLACK) for key in range(13)),
        trim((0.04, 0.9, 0.26), (0.06, 0.0, 0.78), darker(wood), "wood", turn=(0, -15, 0)),
        trim((0.01, 0.44, 0.28), (0.1, 0.0, 0.8), ivory, turn=(0, -15, 0)),
        trim((0.42, 1.54, 0.03), (-0.15, 0.0, 1.2), wood, "wood"),
    ]
    return Piece("piano", 0.72, 1.54, 1.23, parts, color=word)


def stool(rng: Rng) -> Piece:
    """Return a low stool, such as one for a piano."""
    word, color = pick(rng, FABRICS)
    parts = [
        *legs((0.36, 0.5, 0.42), BLACK, None, thick_m=0.04),
        box((0.36, 0.5, 0.08), (0, 0, 0.42), color, "fabric"),
    ]
    return Piece("stool", 0.36, 0.5, 0.5, parts, landmark=False, color=word)


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
