"""What things are kept in: wardrobes, shelves, chests."""

from __future__ import annotations

from proctor.scenes.colors import FABRICS, PALETTE, WOODS, lighter
from proctor.scenes.pieces import BLACK, METAL, WHITE, Piece, Rng, fronts, legs, pick
from proctor.scenes.scene_config import Part
from proctor.scenes.shapes import box, cylinder, rod, sphere, trim

CARDBOARD = (0.72, 0.55, 0.36)
SHELF_PITCH_M = 0.45
"""Of bookshelves; the rows in the picture of books have it, too."""


def wardrobe(rng: Rng) -> Piece:
    """Return a tall wardrobe with doors."""
    width_m, (word, wood) = round(rng.uniform(1.1, 1.7), 1), pick(rng, WOODS)
    columns = 2 if width_m < 1.4 else 3
    parts = [
        box((0.56, width_m, 2.1), (-0.02, 0.0, 0.0), wood, "wood"),
        *fronts(0.27, width_m - 0.02, 0.08, 2.07, lighter(wood, 0.12), columns=columns),
    ]
    return Piece("wardrobe", 0.6, width_m, 2.1, parts, color=word)


def dresser(rng: Rng) -> Piece:
    """Return a chest of drawers with a mirror on it."""
    width_m, (word, wood) = round(rng.uniform(0.9, 1.2), 1), pick(rng, WOODS)
    parts = [
        box((0.42, width_m, 0.82), (-0.01, 0.0, 0.06), wood, "wood"),
        *legs((0.42, width_m, 0.06), wood),
        *fronts(0.205, width_m - 0.02, 0.09, 0.87, lighter(wood, 0.12), columns=2, rows=3),
        trim((0.03, 0.6, 0.7), (-0.19, 0.0, 0.88), wood, "wood"),
        trim((0.02, 0.52, 0.6), (-0.175, 0.0, 0.93), (0.80, 0.88, 0.92)),
        cylinder(0.06, 0.14, (0.0, width_m / 2 - 0.15, 0.88), pick(rng, FABRICS).rgb, collision=False),
    ]
    return Piece("dresser", 0.46, width_m, 1.58, parts, color=word)


def sideboard(rng: Rng) -> Piece:
    """Return a low cabinet with a vase of flowers on it."""
    width_m, (word, wood) = round(rng.uniform(1.1, 1.5), 1), pick(rng, WOODS)
    petal, y = pick(rng, FABRICS[:7]).rgb, width_m / 4
    parts = [
        box((0.36, width_m, 0.7), (-0.01, 0.0, 0.1), wood, "wood"),
        *legs((0.36, width_m, 0.1), wood),
        *fronts(0.18, width_m - 0.02, 0.12, 0.78, lighter(wood, 0.12), columns=3),
        cylinder(0.12, 0.2, (0.0, y, 0.8), pick(rng, FABRICS).rgb, "marble", collision=False),
        *(trim((0.015, 0.015, 0.16), (0.0, y + dy, 0.98), (0.2, 0.45, 0.15)) for dy in (-0.03, 0.03)),
        *(trim((0.08, 0.08, 0.06), (0.0, y + dy, 1.12), petal, turn=(0, 0, 45)) for dy in (-0.05, 0.05)),
        trim((0.02, 0.26, 0.2), (-0.05, -y, 0.8), BLACK, turn=(0, -12, 0)),
        trim((0.02, 0.22, 0.16), (-0.038, -y, 0.82), (0.75, 0.85, 0.9), turn=(0, -12, 0)),
    ]
    return Piece("sideboard", 0.41, width_m, 1.19, parts, color=word)


def shoe_cabinet(rng: Rng) -> Piece:
    """Return a narrow cabinet with flaps, and a pair of shoes on it."""
    word, wood = pick(rng, WOODS)
    shoe = pick(rng, FABRICS).rgb
    parts = [
        box((0.26, 0.9, 1.0), (-0.02, 0.0, 0.0), wood, "wood"),
        *fronts(0.12, 0.88, 0.04, 0.98, lighter(wood, 0.12), rows=3),
        *(trim((0.22, 0.08, 0.07), (0.0, y, 1.0), shoe) for y in (0.2, 0.31)),
    ]
    return Piece("shoe cabinet", 0.3, 0.9, 1.07, parts, color=word)


def bookshelf(rng: Rng) -> Piece:
    """Return a shelf full of books over two doors."""
    width_m, (word, wood) = round(rng.uniform(0.8, 1.3), 1), pick(rng, WOODS)
    top = 4 * SHELF_PITCH_M
    parts = [
        box((0.28, width_m - 0.06, SHELF_PITCH_M), (-0.01, 0.0, 0.0), wood, "wood"),
        box((0.02, width_m, top), (-0.15, 0.0, 0.0), wood, "wood"),
        *(box((0.3, 0.04, top), (0.01, y * (width_m / 2 - 0.02), 0.0), wood, "wood") for y in (-1, 1)),
        *fronts(0.135, width_m - 0.1, 0.04, SHELF_PITCH_M - 0.02, lighter(wood, 0.12), columns=2),
        *(
            box((0.29, width_m - 0.08, 0.04), (0.005, 0.0, k * SHELF_PITCH_M - 0.04), wood, "wood")
            for k in (2, 3, 4)
        ),
        *(
            trim((0.2, width_m - 0.09, SHELF_PITCH_M - 0.04), (-0.04, 0.0, k * SHELF_PITCH_M), WHITE, "books")
            for k in (1, 2, 3)
        ),
    ]
    return Piece("bookshelf", 0.32, width_m, top, parts, color=word)


def storage_shelf(rng: Rng, *, jars: bool = False) -> Piece:
    """Return open shelves with boxes, or with jars, on them."""
    width_m, height_m = round(rng.uniform(0.9, 1.2), 1), 1.8
    word, frame = pick(rng, WOODS) if jars else pick(rng, FABRICS[:2])
    boards = (0.1, 0.55, 1.0, 1.45)
    parts = [
        *legs((0.4, width_m, height_m), frame, None, thick_m=0.04),
        *(box((0.38, width_m - 0.02, 0.04), (0.0, 0.0, z), frame) for z in boards),
    ]
    for z in boards:
        parts += _jars(rng, width_m, z + 0.04) if jars else _boxes(rng, width_m, z + 0.04)
    return Piece("shelf", 0.42, width_m, height_m + 0.03, parts, color=word)


def _jars(rng: Rng, width_m: float, z: float) -> list[Part]:
    count = int(width_m / 0.24)
    return [
        cylinder(
            0.16,
            (0.16, 0.2, 0.24)[rng.integers(3)],
            (0.05, (i + 0.5 - count / 2) * 0.22, z),
            pick(rng, FABRICS).rgb,
            collision=False,
        )
        for i in range(count)
    ]


def _boxes(rng: Rng, width_m: float, z: float) -> list[Part]:
    share, parts = rng.uniform(0.4, 0.6), []
    for start, end in ((0.0, share), (share, 1.0)):
        length_m = (end - start) * (width_m - 0.16)
        y, color = (
            ((start + end) / 2 - 0.5) * (width_m - 0.12),
            (CARDBOARD, WHITE, CARDBOARD)[rng.integers(3)],
        )
        parts.append(trim((0.3, length_m, round(rng.uniform(0.2, 0.34), 2)), (0.0, y, z), color))
    return parts


def cardboard_box(rng: Rng) -> Piece:
    """Return two boxes from the last move, one on the other."""
    parts = [
        box((0.5, 0.6, 0.4), (0.0, 0.0, 0.0), CARDBOARD),
        trim((0.505, 0.08, 0.405), (0.0, 0.0, 0.0), (0.85, 0.75, 0.58)),
        box(
            (0.4, 0.45, 0.32), (0.0, 0.02, 0.4), (0.66, 0.49, 0.31), turn=(0, 0, round(rng.uniform(-12, 12)))
        ),
    ]
    return Piece("cardboard box", 0.52, 0.6, 0.72, parts)


def toy_chest(rng: Rng) -> Piece:
    """Return an open chest with toys in it and a teddy bear before it."""
    (word, color), fur = pick(rng, FABRICS[:8]), (0.62, 0.42, 0.22)
    balls = [pick(rng, FABRICS).rgb for _ in range(3)]
    parts = [
        box((0.4, 0.9, 0.42), (-0.08, 0.0, 0.0), color, "wood"),
        box((0.04, 0.92, 0.42), (-0.27, 0.0, 0.41), color, "wood"),
        *(
            sphere(0.2, (-0.06, y, 0.34), ball, collision=False)
            for y, ball in zip((-0.28, 0, 0.28), balls, strict=True)
        ),
        sphere(0.2, (0.2, 0.2, 0.0), fur),
        sphere(0.15, (0.2, 0.2, 0.17), fur, collision=False),
        *(sphere(0.06, (0.2, 0.2 + y, 0.28), fur, collision=False) for y in (-0.06, 0.06)),
    ]
    return Piece("toy chest", 0.6, 0.92, 0.83, parts, color=word)


def tv(rng: Rng) -> Piece:
    """Return a television on a low cabinet."""
    wood = pick(rng, WOODS).rgb
    parts = [
        box((0.42, 1.5, 0.38), (-0.01, 0.0, 0.06), wood, "wood"),
        *legs((0.42, 1.5, 0.06), BLACK, None),
        *fronts(0.205, 1.46, 0.08, 0.42, lighter(wood, 0.12), columns=2),
        trim((0.2, 0.4, 0.02), (-0.05, 0.0, 0.44), BLACK),
        trim((0.04, 0.1, 0.08), (-0.05, 0.0, 0.45), BLACK),
        box((0.05, 1.2, 0.7), (-0.05, 0.0, 0.52), BLACK),
        trim((0.01, 1.16, 0.64), (-0.021, 0.0, 0.55), (0.13, 0.17, 0.26)),
        trim((0.008, 0.5, 0.12), (-0.019, -0.2, 0.95), (0.22, 0.28, 0.40)),
        trim((0.3, 0.08, 0.06), (0.0, 0.55, 0.44), BLACK),
    ]
    return Piece("TV", 0.46, 1.5, 1.22, parts)


def aquarium(rng: Rng) -> Piece:
    """Return a tank of fish on a cabinet."""
    wood, fish = pick(rng, WOODS).rgb, ((0.98, 0.5, 0.1), (0.95, 0.85, 0.2))
    parts = [
        box((0.4, 1.0, 0.7), (-0.01, 0.0, 0.0), wood, "wood"),
        *fronts(0.195, 0.98, 0.04, 0.68, lighter(wood, 0.12), columns=2),
        box((0.36, 0.96, 0.5), (-0.01, 0.0, 0.74), (0.25, 0.72, 0.82)),
        box((0.38, 0.98, 0.05), (-0.01, 0.0, 0.7), BLACK),
        trim((0.38, 0.98, 0.05), (-0.01, 0.0, 1.22), BLACK),
        trim((0.01, 0.94, 0.08), (0.168, 0.0, 0.75), (0.86, 0.75, 0.57)),
        *(
            trim((0.01, 0.1, 0.05), (0.17, round(rng.uniform(-0.38, 0.38), 2), 0.9 + 0.08 * i), fish[i % 2])
            for i in range(4)
        ),
        *(trim((0.01, 0.03, 0.24), (0.166, y, 0.8), (0.15, 0.5, 0.2), turn=(8, 0, 0)) for y in (-0.3, 0.33)),
    ]
    return Piece("aquarium", 0.44, 1.0, 1.27, parts)


def laundry_basket(rng: Rng) -> Piece:
    """Return a basket with washing in it."""
    word, color = pick(rng, FABRICS)
    parts = [
        cylinder(0.42, 0.5, (0.0, 0.0, 0.0), color, "fabric"),
        cylinder(0.45, 0.04, (0.0, 0.0, 0.48), color, collision=False),
        sphere(0.3, (-0.02, 0.04, 0.36), WHITE, "fabric", collision=False),
    ]
    return Piece("laundry basket", 0.46, 0.46, 0.66, parts, color=word)


def wine_rack(rng: Rng) -> Piece:
    """Return a rack of bottles, their bottoms to the front."""
    word, wood = pick(rng, WOODS)
    glass = (PALETTE["green"], (0.35, 0.08, 0.12))[rng.integers(2)]
    parts = [
        box((0.3, 0.74, 1.1), (-0.02, 0.0, 0.0), wood, "wood"),
        *(
            rod(0.1, 0.08, (0.12, -0.26 + 0.175 * column, 0.14 + 0.2 * row), glass, along="x")
            for column in range(4)
            for row in range(5)
        ),
        trim((0.2, 0.3, 0.02), (-0.02, 0.0, 1.1), METAL),
    ]
    return Piece("wine rack", 0.34, 0.74, 1.12, parts, color=word)
