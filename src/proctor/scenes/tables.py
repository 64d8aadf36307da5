"""Furniture to put things on. Like all furniture it turns its back to -x; its origin is its centre."""

from __future__ import annotations

import numpy as np

from proctor.scenes.boards import board, merged, moved
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Texture
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import box_solid
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
            mass_kg=sum(float(solid.size.prod()) for solid in self.solids) * WOOD_KG_M3,
            is_furniture=True,
        )


def table(size: Triple, color: Triple) -> Thing:
    """Return a wooden table on four legs, free to drive beneath where it is wide enough."""
    depth, width, height = size
    made, thick, leg = Joinery("table", height), min(0.035, height / 4), min(0.055, depth / 5, width / 5)
    made.add((depth, width, thick), (0.0, 0.0, height - thick), color)
    x, y = depth / 2 - leg, width / 2 - leg
    for i in (-1, 1):
        for j in (-1, 1):
            made.add((leg, leg, height - thick), (i * x, j * y, 0.0), color)
    return made.thing()
