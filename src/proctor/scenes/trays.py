"""What things are put into or carried on: boxes that are open above."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from proctor.scenes.boards import board, merged
from proctor.scenes.colors import darker, lighter
from proctor.scenes.shapes import Triple
from proctor.scenes.solids import square_walls
from proctor.scenes.thing import Thing

WICKER_KG_M3, WOOD_KG_M3 = 250.0, 600.0
WEAVE_M, WEAVE_PIXELS = 0.032, 64
"""What the picture of a weave covers, and its size."""


def tray(size: Triple, color: Triple) -> Thing:
    """Return a tray with low walls."""
    solids, inside = square_walls(size, min(0.006, size[2] / 4))
    tones = (lighter(color, 0.08), *(darker(color, 0.25),) * 4)
    surfaces = [
        board(
            solid.size, tuple(solid.translation - [0.0, 0.0, solid.size[2] / 2]), tone, "wood", bevel_m=0.001
        )
        for solid, tone in zip(solids, tones, strict=True)
    ]
    mass_kg = sum(solid.volume_m3 for solid in solids) * WOOD_KG_M3
    return Thing("tray", merged(surfaces), solids, mass_kg, is_furniture=False, cavity=inside)


def basket(size: Triple, color: Triple) -> Thing:
    """Return a woven basket with a rim."""
    wall, rim = min(0.008, size[2] / 6), min(0.012, size[2] / 6)
    solids, inside = square_walls(size, wall)
    surfaces = []
    for solid in solids:
        x, y, z = solid.translation
        depth, width, height = solid.size
        is_wall = height > wall
        at = (float(x), float(y), float(z - height / 2))
        woven = board((depth, width, height - rim * is_wall), at, color)
        surfaces.append(woven._replace(image=_weave(), texcoords=woven.texcoords / WEAVE_M))
        if is_wall:
            top = (at[0], at[1], size[2] - rim)
            surfaces.append(board((depth, width, rim), top, darker(color, 0.35), bevel_m=0.003))
    mass_kg = sum(solid.volume_m3 for solid in solids) * WICKER_KG_M3
    return Thing("basket", merged(surfaces), solids, mass_kg, is_furniture=False, cavity=inside)


@cache
def _weave() -> NDArray[np.uint8]:
    """Return strands that go over and under each other, to be tinted."""
    strand = WEAVE_PIXELS // 2
    across = np.sin(np.pi * (np.arange(strand) + 0.5) / strand)  # the roundness of one strand
    lying = 0.45 + 0.55 * across[:, None] * np.sqrt(across[None, :])
    standing = 0.8 * lying.T
    shades = np.block([[lying, standing], [standing, lying]])
    return np.repeat((255 * shades).astype(np.uint8)[:, :, None], 3, axis=2)
