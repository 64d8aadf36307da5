"""Furniture to put things on. Like all furniture it turns its back to -x; its origin is its centre."""

from __future__ import annotations

import numpy as np

from proctor.scenes.boards import board, merged, moved
from proctor.scenes.colors import STEEL, darker, lighter
from proctor.scenes.lathe import disc, lathe
from proctor.scenes.meshes import Surface
from proctor.scenes.pieces import BLACK, GREY
from proctor.scenes.scene_config import Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import box_solid, cylinder_solid
from proctor.scenes.thing import Solid, Thing

WOOD_KG_M3 = 600.0


class Joinery:
    """Boards put together from the floor up.

    Args:
        kind: What it is called.
        height_m: Of the whole.
    """

    def __init__(self, kind: str, height_m: float) -> None:
        self.kind, self.height_m = kind, height_m
        self.surfaces: list[Surface] = []
        self.solids: list[Solid] = []

    def add(
        self, size: Triple, at: Triple, color: Triple, texture: Texture | None = "wood", *, solid: bool = True
    ) -> None:
        """Add a board whose bottom stands at `at`; what is not solid is only looked at."""
        self.surfaces.append(board(size, at, color, texture))
        if solid:
            self.solids.append(box_solid(size, at))

    def thing(self) -> Thing:
        """Return the piece of furniture, its centre at the origin."""
        shift = np.array([0.0, 0.0, -self.height_m / 2])
        return Thing(
            kind=self.kind,
            surfaces=[moved(surface, shift) for surface in merged(self.surfaces)],
            solids=[
                solid._replace(translation=solid.translation + shift, points=solid.points + shift)
                for solid in self.solids
            ],
            mass_kg=sum(solid.volume_m3 for solid in self.solids) * WOOD_KG_M3,
            is_furniture=True,
        )


def table(size: Triple, color: Triple) -> Thing:
    """Return a wooden table on four legs, free to drive beneath where it is wide enough."""
    depth, width, height = size
    made, thick, leg = Joinery("table", height), min(0.035, height / 4), min(0.05, depth / 5, width / 5)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    x, y = depth / 2 - 0.6 * leg, width / 2 - 0.6 * leg
    for i in (-1, 1):
        for j in (-1, 1):
            made.add((leg, leg, height - thick), (i * x, j * y, 0.0), color)
    return made.thing()


def desk(size: Triple, color: Triple) -> Thing:
    """Return a desk: steel legs at its left, drawers at its right."""
    depth, width, height = size
    made, thick, leg = Joinery("desk", height), min(0.03, height / 4), min(0.04, depth / 6, width / 6)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    below = height - thick
    for side in (-1, 1):
        made.add((leg, leg, below), (side * (depth / 2 - leg), width / 2 - leg, 0.0), STEEL.rgb, None)
    chest = min(0.4, width / 3)
    y = -width / 2 + chest / 2 + 0.02 * width
    made.add((0.9 * depth, chest, below), (0.0, y, 0.0), darker(color, 0.12))
    _fronts(made, (0.45 * depth, y), chest, (0.03, below), lighter(color, 0.1), rows=3)
    return made.thing()


def counter(size: Triple, color: Triple) -> Thing:
    """Return a kitchen counter: doors below a stone top, on a base that stands back."""
    depth, width, height = size
    made, thick, base = Joinery("counter", height), min(0.04, height / 5), 0.1 * height
    made.add((depth, width, thick), (0.0, 0.0, height - thick), darker(GREY, 0.1), "marble")
    made.add((0.8 * depth, 0.98 * width, base), (-0.05 * depth, 0.0, 0.0), BLACK, None)
    made.add((0.92 * depth, 0.98 * width, height - thick - base), (-0.02 * depth, 0.0, base), color, "wood")
    x, doors = 0.44 * depth, max(1, round(width / 0.5))
    for index in range(doors):
        y = ((index + 0.5) / doors - 0.5) * 0.98 * width
        _fronts(made, (x, y), 0.98 * width / doors, (base, height - thick), lighter(color, 0.12))
    return made.thing()


def shelf(size: Triple, color: Triple) -> Thing:
    """Return an open shelf of three boards between two sides; its top can be used, too."""
    depth, width, height = size
    made, thick = Joinery("shelf", height), min(0.025, height / 8, width / 8)
    inner = width - 2 * thick
    for side in (-1, 1):
        made.add((depth, thick, height - thick), (0.0, side * (width - thick) / 2, 0.0), color)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    for share in (0.06, 0.5):
        made.add((depth, inner, thick), (0.0, 0.0, share * (height - thick)), lighter(color, 0.1))
    made.add((0.3 * thick, inner, height - thick), (-depth / 2 + 0.15 * thick, 0.0, 0.0), darker(color, 0.25))
    return made.thing()


def stand(size: Triple, color: Triple) -> Thing:
    """Return a small round table on one foot."""
    diameter, _, height = size
    thick, foot = min(0.025, height / 6), min(0.02, height / 6)
    shift = (0.0, 0.0, -height / 2)
    parts = [
        (diameter, thick, height - thick),
        (0.12 * diameter, height - thick - foot, foot),
        (0.6 * diameter, foot, 0.0),
    ]
    tones = (color, STEEL.rgb, darker(color, 0.3))
    surfaces = [
        moved(lathe(disc(wide, high, bottom), tone, 40), shift)
        for (wide, high, bottom), tone in zip(parts, tones, strict=True)
    ]
    solids = [cylinder_solid(wide, high, (0.0, 0.0, bottom - height / 2)) for wide, high, bottom in parts]
    mass_kg = sum(solid.volume_m3 for solid in solids) * WOOD_KG_M3
    return Thing("stand", surfaces, solids, mass_kg, is_furniture=True)


def _fronts(
    made: Joinery,
    at: tuple[float, float],
    width_m: float,
    heights: tuple[float, float],
    color: Triple,
    *,
    rows: int = 1,
) -> None:
    """Add a door, or drawers, with their handles; they are only looked at."""
    (x, y), (low, high) = at, heights
    step_m = (high - low) / rows
    for row in range(rows):
        z = low + (row + 0.06) * step_m
        made.add((0.012, 0.94 * width_m, 0.88 * step_m), (x + 0.006, y, z), color, solid=False)
        handle = (0.012, 0.3 * width_m, 0.012)
        made.add(handle, (x + 0.018, y, low + (row + 0.8) * step_m), STEEL.rgb, None, solid=False)
