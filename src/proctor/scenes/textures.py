"""Surfaces that make a box look like a wall, a floor or a sofa, as small pictures made by formula.

A picture is nearly white and is tinted by the colour of the part that wears it. Its edges fit together, so
that it repeats without a seam, and it covers `TILE_M` metres whatever the size of the part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.scenes.scene_config import Texture

PIXELS = 512

TILE_M: dict[Texture, float] = {
    "plaster": 2.0,
    "wood": 1.0,
    "planks": 1.6,
    "tiles": 1.2,
    "carpet": 0.8,
    "fabric": 0.3,
    "brick": 1.0,
    "marble": 2.0,
}
"""How many metres of surface one picture covers."""

GRAINED: frozenset[Texture] = frozenset({"wood", "planks"})
"""Textures with a direction: their grain runs along the longer side of a face."""


@cache
def texture_image(name: Texture) -> NDArray[np.uint8]:
    """Return the picture of a texture, (PIXELS, PIXELS, 3), seamless; the grain runs along the rows."""
    brightness = _PAINTERS[name](np.random.default_rng(list(name.encode())))
    grey = (np.clip(brightness, 0, 1) * 255).round().astype(np.uint8)
    return np.repeat(grey[:, :, np.newaxis], 3, axis=2)


def _noise(rng: np.random.Generator, *, falloff: float, stretch: float = 1.0) -> Array:
    """Return periodic noise of deviation 1: smoother by falloff, drawn out along the rows by stretch."""
    frequency = np.fft.fftfreq(PIXELS, 1 / PIXELS)
    distance = np.hypot(frequency[:, np.newaxis], frequency[np.newaxis, :] * stretch)
    spectrum = np.fft.fft2(rng.standard_normal((PIXELS, PIXELS))) / np.maximum(distance, 1) ** falloff
    spectrum[0, 0] = 0
    field = np.fft.ifft2(spectrum).real
    return np.asarray(field / field.std())


def _grid(
    rows: int, columns: int, *, shift: float = 0.0
) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.intp]]:
    """Return, for each pixel, its place in its cell (0 to 1, down and right) and the cell's indices.

    Every second row is shifted by this fraction of a cell, as bricks are.
    """
    steps = np.arange(PIXELS) / PIXELS
    down, row = np.modf(steps * rows)
    row = row.astype(np.intp)[:, np.newaxis]
    right, column = np.modf(steps[np.newaxis, :] * columns + (row % 2) * shift)
    return np.broadcast_to(down[:, np.newaxis], right.shape), right, row, column.astype(np.intp) % columns


def _joints(
    rows: int, columns: int, *, shift: float = 0.0, width_px: float
) -> tuple[Array, NDArray[np.intp]]:
    """Return where the joints between cells are (1, elsewhere 0) and each pixel's cell number."""
    down, right, row, column = _grid(rows, columns, shift=shift)
    to_edge_px = np.minimum(
        np.minimum(down, 1 - down) * PIXELS / rows, np.minimum(right, 1 - right) * PIXELS / columns
    )
    joint = np.clip(width_px / 2 + 0.5 - to_edge_px, 0, 1)
    return joint, row * columns + column


def _plaster(rng: np.random.Generator) -> Array:
    return 0.97 + 0.012 * _noise(rng, falloff=0.6) + 0.01 * _noise(rng, falloff=1.6)


def _grain(rng: np.random.Generator) -> Array:
    rows = np.arange(PIXELS)[:, np.newaxis] / PIXELS
    rings: Array = np.sin(2 * np.pi * 9 * rows + 2.5 * _noise(rng, falloff=2.0, stretch=6.0))
    return 0.05 * rings + 0.05 * _noise(rng, falloff=0.7, stretch=24.0)


def _wood(rng: np.random.Generator) -> Array:
    return 0.88 + _grain(rng)


def _planks(rng: np.random.Generator) -> Array:
    joint, plank = _joints(12, 2, shift=0.5, width_px=2.0)
    shade: Array = rng.uniform(-0.09, 0.07, plank.max() + 1)[plank]
    return (0.88 + shade + 0.8 * _grain(rng)) * (1 - 0.55 * joint)


def _tiles(rng: np.random.Generator) -> Array:
    joint, tile = _joints(4, 4, width_px=5.0)
    shade: Array = rng.uniform(-0.03, 0.02, tile.max() + 1)[tile]
    return (0.95 + shade + 0.015 * _noise(rng, falloff=1.2)) * (1 - 0.3 * joint)


def _carpet(rng: np.random.Generator) -> Array:
    return 0.85 + 0.07 * _noise(rng, falloff=0.3)


def _fabric(rng: np.random.Generator) -> Array:
    threads = np.arange(PIXELS) * (2 * np.pi * 48 / PIXELS)
    weave: Array = np.sin(threads)[:, np.newaxis] * np.sin(threads)[np.newaxis, :]
    return 0.88 + 0.06 * weave + 0.03 * _noise(rng, falloff=0.5)


def _brick(rng: np.random.Generator) -> Array:
    joint, brick = _joints(14, 4, shift=0.5, width_px=6.0)
    shade: Array = rng.uniform(-0.12, 0.06, brick.max() + 1)[brick]
    face = 0.82 + shade + 0.04 * _noise(rng, falloff=0.7)
    return face * (1 - joint) + joint * (0.97 + 0.02 * _noise(rng, falloff=0.3))


def _marble(rng: np.random.Generator) -> Array:
    veins: Array = np.exp(-np.abs(_noise(rng, falloff=1.7)) * 9) * np.clip(
        0.5 + _noise(rng, falloff=1.5), 0, 1
    )
    return 0.95 - 0.3 * veins + 0.02 * _noise(rng, falloff=1.4)


_PAINTERS: dict[Texture, Callable[[np.random.Generator], Array]] = {
    "plaster": _plaster,
    "wood": _wood,
    "planks": _planks,
    "tiles": _tiles,
    "carpet": _carpet,
    "fabric": _fabric,
    "brick": _brick,
    "marble": _marble,
}
