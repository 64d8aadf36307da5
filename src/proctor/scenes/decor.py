"""What makes a house a home: plants, lamps, rugs, pictures; and windows and the front door."""

from __future__ import annotations

import math

from proctor.scenes.colors import FABRICS, WOODS, darker, lighter, paints
from proctor.scenes.floor_plan import WALL_HEIGHT_M
from proctor.scenes.pieces import BLACK, METAL, WHITE, Piece, Rng, pick
from proctor.scenes.scene_config import Part, Texture
from proctor.scenes.shapes import Triple, box, cylinder, rod, sphere, trim

LEAF: Triple = (0.16, 0.44, 0.18)
STEM: Triple = (0.35, 0.24, 0.14)
LAMP_SHADE: Triple = (1.0, 0.95, 0.78)
POTS = paints("white", "black", "red", "blue", "yellow", "turquoise", "beige", "grey")
ENTRANCES = paints("red", "blue", "green", "yellow", "brown", "turquoise", "black")


def plant(rng: Rng) -> Piece:
    """Return a potted plant: a little tree, a palm, a snake plant or a cactus."""
    return (_tree, _palm, _snake_plant, _cactus)[rng.integers(4)](rng)


def _pot(rng: Rng, diameter_m: float, height_m: float) -> list[Part]:
    color = pick(rng, POTS).rgb
    return [
        cylinder(diameter_m, height_m, (0.0, 0.0, 0.0), color),
        cylinder(diameter_m - 0.05, 0.01, (0.0, 0.0, height_m), (0.22, 0.15, 0.1), collision=False),
    ]


def _tree(rng: Rng) -> Piece:
    height_m = round(rng.uniform(0.6, 0.9), 2)
    parts = [
        *_pot(rng, 0.3, 0.3),
        cylinder(0.05, height_m - 0.2, (0.0, 0.0, 0.3), STEM),
        sphere(0.44, (0.0, 0.0, height_m - 0.05), LEAF, "leaves"),
        sphere(0.3, (0.04, 0.05, height_m + 0.2), lighter(LEAF, 0.12), "leaves"),
    ]
    return Piece("plant", 0.46, 0.46, height_m + 0.5, parts)


def _palm(rng: Rng) -> Piece:
    height_m = round(rng.uniform(0.9, 1.2), 2)
    parts = [*_pot(rng, 0.32, 0.3), cylinder(0.06, height_m - 0.25, (0.0, 0.0, 0.3), STEM)]
    for index in range(8):
        pitch = 25 if index % 2 else -20
        parts.append(_leaf(0.34, 45.0 * index, pitch, (0.14, height_m), lighter(LEAF, 0.1 * (index % 2))))
    return Piece("plant", 0.62, 0.62, height_m + 0.2, parts)


def _snake_plant(rng: Rng) -> Piece:
    height_m = round(rng.uniform(0.5, 0.75), 2)
    parts = _pot(rng, 0.3, 0.34)
    for index in range(7):
        parts.append(_leaf(height_m, 51.0 * index, -78 + 3 * (index % 3), (0.05, 0.32 + height_m / 2), LEAF))
    return Piece("plant", 0.38, 0.38, 0.4 + height_m, parts)


def _leaf(length_m: float, yaw_deg: float, pitch_deg: float, at: tuple[float, float], color: Triple) -> Part:
    """Return a long thin leaf, its middle this far from the stem and this high."""
    out_m, z = at
    x, y = out_m * math.cos(math.radians(yaw_deg)), out_m * math.sin(math.radians(yaw_deg))
    return trim((length_m, 0.08, 0.012), (x, y, z), color, "leaves", turn=(0, pitch_deg, yaw_deg))


def _cactus(rng: Rng) -> Piece:
    height_m = round(rng.uniform(0.6, 0.9), 2)
    green = (0.30, 0.50, 0.26)
    parts = [
        *_pot(rng, 0.3, 0.26),
        cylinder(0.16, height_m, (0.0, 0.0, 0.26), green, "fabric"),
        sphere(0.16, (0.0, 0.0, height_m + 0.18), green, "fabric", collision=False),
        rod(0.09, 0.2, (0.0, 0.1, 0.5), green, along="y"),
        cylinder(0.09, 0.24, (0.0, 0.17, 0.46), green, "fabric", collision=False),
        rod(0.09, 0.2, (0.0, -0.1, 0.64), green, along="y"),
        cylinder(0.09, 0.18, (0.0, -0.17, 0.6), green, "fabric", collision=False),
        trim((0.06, 0.06, 0.06), (0.0, 0.0, height_m + 0.32), (0.93, 0.35, 0.55), turn=(0, 0, 45)),
    ]
    return Piece("plant", 0.36, 0.44, height_m + 0.4, parts)


def floor_lamp(rng: Rng) -> Piece:
    """Return a standing lamp."""
    word, shade = pick(rng, FABRICS)
    parts = [
        cylinder(0.3, 0.03, (0.0, 0.0, 0.0), BLACK),
        cylinder(0.035, 1.35, (0.0, 0.0, 0.03), BLACK),
        cylinder(0.4, 0.32, (0.0, 0.0, 1.3), shade, "fabric"),
        cylinder(0.3, 0.01, (0.0, 0.0, 1.615), LAMP_SHADE, collision=False),
    ]
    return Piece("floor lamp", 0.42, 0.42, 1.63, parts, color=word)


def rug(rng: Rng, depth_m: float, width_m: float) -> Piece:
    """Return a rug, which nobody bumps into."""
    word, color = pick(rng, FABRICS)
    inner = trim((depth_m - 0.24, width_m - 0.24, 0.018), (0.0, 0.0, 0.0), color, _RUGS[rng.integers(2)])
    parts = [trim((depth_m, width_m, 0.012), (0.0, 0.0, 0.0), lighter(color, 0.45), "carpet"), inner]
    return Piece("rug", depth_m, width_m, 0.018, parts, landmark=False, color=word)


def mirror() -> Piece:
    """Return a framed mirror."""
    parts = [
        trim((0.03, 0.7, 0.85), (0.0, 0.0, 1.12), WOODS[0].rgb, "wood"),
        trim((0.02, 0.62, 0.77), (0.01, 0.0, 1.16), (0.78, 0.86, 0.90)),
        trim((0.01, 0.1, 0.5), (0.016, 0.06, 1.3), (0.88, 0.94, 0.97), turn=(35, 0, 0)),
    ]
    return Piece("mirror", 0.04, 0.7, 2.0, parts, bottom_m=1.1, landmark=False)


def picture(rng: Rng) -> Piece:
    """Return a painting in a frame."""
    width_m, height_m = round(rng.uniform(0.5, 1.1), 2), round(rng.uniform(0.45, 0.7), 2)
    tint = lighter(pick(rng, FABRICS).rgb, 0.7)
    frame = pick(rng, WOODS).rgb
    parts = [
        trim((0.03, width_m, height_m), (0.0, 0.0, 1.3), frame, "wood"),
        trim(
            (0.02, width_m - 0.08, height_m - 0.08),
            (0.01, 0.0, 1.34),
            tint,
            ("painting", "landscape")[rng.integers(2)],
        ),
    ]
    return Piece("picture", 0.05, width_m, 1.3 + height_m, parts, bottom_m=1.3, landmark=False)


def wall_clock(rng: Rng) -> Piece:
    """Return a round clock."""
    rim = pick(rng, FABRICS).rgb
    parts = [
        rod(0.36, 0.03, (0.0, 0.0, 1.8), rim, along="x"),
        rod(0.3, 0.04, (0.0, 0.0, 1.8), WHITE, along="x"),
        trim((0.01, 0.02, 0.13), (0.018, 0.0, 1.8), BLACK),
        trim((0.01, 0.09, 0.02), (0.02, 0.04, 1.795), BLACK),
    ]
    return Piece("clock", 0.05, 0.36, 1.98, parts, bottom_m=1.62, landmark=False)


def window(rng: Rng, *, curtains: bool = True) -> Piece:
    """Return a window with two wings, set onto the wall: the world outside is a picture."""
    width_m = round(rng.uniform(1.1, 1.7), 1)
    wing_m = (width_m - 0.18) / 2
    cloth = pick(rng, FABRICS).rgb
    parts = [
        trim((0.05, width_m, 1.32), (-0.025, 0.0, 0.94), WHITE),
        *(
            trim((0.02, wing_m, 1.18), (-0.005, hand * (wing_m + 0.06) / 2, 1.01), WHITE, "landscape")
            for hand in (-1, 1)
        ),
        trim((0.1, width_m + 0.1, 0.04), (0.0, 0.0, 0.92), WHITE),
    ]
    if not curtains:
        return Piece("window", 0.1, width_m + 0.1, 2.26, parts, bottom_m=0.92, landmark=False)
    total_m = width_m + 0.5
    parts.append(rod(0.03, total_m, (0.02, 0.0, 2.36), METAL, along="y"))
    for hand in (-1, 1):
        for fold in range(2):
            y = hand * (total_m / 2 - 0.08 - 0.14 * fold)
            parts.append(trim((0.05, 0.16, 1.55), (0.025 * fold - 0.005, y, 0.8), cloth, "fabric"))
    return Piece("window", 0.1, total_m, 2.375, parts, bottom_m=0.8, landmark=False)


def front_door(rng: Rng) -> Piece:
    """Return the closed door to the street."""
    word, color = pick(rng, ENTRANCES)
    parts = [
        box((0.05, 1.14, 2.14), (-0.02, 0.0, 0.0), WHITE, "wood"),
        box((0.05, 1.0, 2.05), (-0.01, 0.0, 0.01), color, "wood"),
        *(trim((0.02, 0.7, 0.7), (0.01, 0.0, z), darker(color), "wood") for z in (0.2, 1.0)),
        trim((0.02, 0.5, 0.18), (0.01, 0.0, 1.8), (0.75, 0.88, 0.95)),
        trim((0.05, 0.03, 0.16), (0.02, 0.42, 0.98), (0.85, 0.68, 0.28)),
    ]
    return Piece("front door", 0.09, 1.14, 2.14, parts, color=word)


def coat_rack(rng: Rng) -> Piece:
    """Return a board on the wall with coats and hats."""
    coats = [FABRICS[index].rgb for index in rng.choice(len(FABRICS), 3, replace=False)]
    parts = [box((0.04, 1.1, 0.12), (-0.09, 0.0, 1.6), pick(rng, WOODS).rgb, "wood")]
    for index, coat in enumerate(coats):
        y, length_m = (index - 1) * 0.36, 0.9 - 0.12 * index
        parts.append(box((0.14, 0.26, length_m), (0.0, y, 1.62 - length_m), coat, "fabric"))
        parts += [
            trim(
                (0.1, 0.08, 0.7 * length_m),
                (0.0, y + hand * 0.15, 1.58 - 0.7 * length_m),
                coat,
                "fabric",
                turn=(hand * 6, 0, 0),
            )
            for hand in (-1, 1)
        ]
        parts.append(trim((0.05, 0.03, 0.03), (-0.05, y, 1.64), METAL))
    return Piece("coat rack", 0.24, 1.18, 1.72, parts)


def ceiling_lamp(rng: Rng) -> Piece:
    """Return a lamp under the ceiling: a flat one, or one that hangs down a little."""
    if rng.random() < 0.5:
        part = cylinder(0.4, 0.08, (0.0, 0.0, WALL_HEIGHT_M - 0.08), LAMP_SHADE, collision=False)
        return Piece(
            "ceiling lamp", 0.4, 0.4, WALL_HEIGHT_M, [part], bottom_m=WALL_HEIGHT_M - 0.08, landmark=False
        )
    bottom = WALL_HEIGHT_M - 0.5
    parts = [
        trim((0.02, 0.02, 0.3), (0.0, 0.0, bottom + 0.2), BLACK),
        cylinder(0.36, 0.2, (0.0, 0.0, bottom), pick(rng, FABRICS).rgb, "fabric", collision=False),
        cylinder(0.3, 0.01, (0.0, 0.0, bottom - 0.005), LAMP_SHADE, collision=False),
    ]
    return Piece("ceiling lamp", 0.36, 0.36, WALL_HEIGHT_M, parts, bottom_m=bottom - 0.01, landmark=False)


_RUGS: tuple[Texture, Texture] = ("carpet", "pattern")
