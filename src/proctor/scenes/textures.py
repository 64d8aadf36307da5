"""Surfaces that make a box look like a wall, a floor or a sofa, as small pictures made by formula.

A picture is nearly white, or has colours of its own, and is tinted by the colour of the part that wears it.
Its edges fit together, so that it repeats without a seam (a landscape only to its sides), and it covers
`TILE_M` metres whatever the size of the part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from proctor.core.array_cache import cached_arrays
from proctor.core.types import Array
from proctor.scenes.scene_config import Texture

PIXELS = 512

TILE_M: dict[Texture, float] = {
    "plaster": 2.0,
    "stripes": 0.8,
    "ornament": 0.6,
    "brick": 1.0,
    "tiles": 1.2,
    "mosaic": 0.6,
    "checks": 1.2,
    "marble": 2.0,
    "wood": 1.0,
    "planks": 1.6,
    "parquet": 1.2,
    "carpet": 0.8,
    "pattern": 0.6,
    "fabric": 0.3,
    "leaves": 0.3,
    "books": 0.9,
    "painting": 1.4,
    "landscape": 4.0,
}
"""How many metres of surface one picture covers."""

GRAINED: frozenset[Texture] = frozenset({"wood", "planks"})
"""Textures with a direction: their grain runs along the longer side of a face."""


@cache
def texture_image(name: Texture) -> NDArray[np.uint8]:
    """Return the picture of a texture, (PIXELS, PIXELS, 3), seamless; the grain runs along the rows."""
    # To paint those of one house takes 0.3 s, to read them 10 ms.
    stored = cached_arrays(
        f"texture-{name}", lambda: {"pixels": _paint(name)}, source=__file__, packages=("numpy", "scipy")
    )
    pixels = stored["pixels"]
    return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, np.newaxis], 3, axis=2)


def _paint(name: Texture) -> NDArray[np.uint8]:
    """Return the picture of a texture, without colours (PIXELS, PIXELS)."""
    painted = _PAINTERS[name](np.random.default_rng(list(name.encode())))
    return (np.clip(painted, 0, 1) * 255).round().astype(np.uint8)


def _noise(rng: np.random.Generator, *, falloff: float, stretch: float = 1.0) -> Array:
    """Return periodic noise of deviation 1: smoother by falloff, drawn out along the rows by stretch."""
    from scipy import fft  # noqa: PLC0415  (not needed to read a texture from the cache)

    down, right = fft.fftfreq(PIXELS, 1 / PIXELS), fft.rfftfreq(PIXELS, 1 / PIXELS)
    squares = (down**2)[:, np.newaxis] + (right * stretch)[np.newaxis, :] ** 2
    weights = np.maximum(squares, 1).astype(np.float32) ** np.float32(-falloff / 2)
    weights[0, 0] = 0
    # Single precision halves the time, and 8 bits of it will be seen.
    field = fft.irfft2(fft.rfft2(rng.standard_normal((PIXELS, PIXELS), dtype=np.float32)) * weights)
    return np.asarray(field / field.std(), dtype=np.float64)


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
    return 0.035 * rings + 0.04 * _noise(rng, falloff=0.7, stretch=24.0)


def _wood(rng: np.random.Generator) -> Array:
    return 0.91 + _grain(rng)


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


def _stripes(rng: np.random.Generator) -> Array:
    across: Array = np.sin(2 * np.pi * 8 * np.arange(PIXELS) / PIXELS)
    return 0.95 + 0.04 * np.clip(8 * across, -1, 1)[np.newaxis, :] + 0.006 * _noise(rng, falloff=0.6)


def _ornament(rng: np.random.Generator) -> Array:
    """Return leaves around diamonds, row by row shifted by half a figure."""
    steps = 2 * np.pi * 3 * np.arange(PIXELS) / PIXELS
    down, right = np.cos(steps)[:, np.newaxis], np.cos(steps)[np.newaxis, :]
    figure: Array = np.clip(9 * (down * right - 0.35 + 0.25 * np.cos(2 * steps)[np.newaxis, :]), -1, 1)
    return 0.94 + 0.05 * figure + 0.006 * _noise(rng, falloff=0.6)


def _mosaic(rng: np.random.Generator) -> Array:
    joint, tile = _joints(6, 6, width_px=4.0)
    shade: Array = rng.uniform(-0.07, 0.04, tile.max() + 1)[tile]
    return (0.94 + shade) * (1 - 0.22 * joint)


def _checks(rng: np.random.Generator) -> Array:
    joint, _ = _joints(4, 4, width_px=3.0)
    _, _, row, column = _grid(4, 4)
    shade = np.where((row + column) % 2 == 0, 0.97, 0.62)
    return (shade + 0.012 * _noise(rng, falloff=1.2)) * (1 - 0.2 * joint)


def _parquet(rng: np.random.Generator) -> Array:
    """Return squares of five strips each, laid lengthwise and crosswise in turn."""
    down, right, row, column = _grid(4, 4)
    crosswise = (row + column) % 2 == 0
    across = np.where(crosswise, right, down)
    strip = ((row * 4 + column) * 5 + np.minimum(across * 5, 4)).astype(np.intp)
    shade: Array = rng.uniform(-0.08, 0.06, strip.max() + 1)[strip]
    grain = _grain(rng)
    gap = np.abs(np.modf(across * 5)[0] - 0.5) > 0.46
    return (0.88 + shade + 0.7 * np.where(crosswise, grain.T, grain)) * np.where(gap, 0.72, 1.0)


def _pattern(rng: np.random.Generator) -> Array:
    """Return the diamonds of a woven rug."""
    down, right, _, _ = _grid(2, 2)
    ring = 2 * (np.abs(down - 0.5) + np.abs(right - 0.5))
    bands = np.where((ring * 4).astype(np.intp) % 2 == 0, 0.98, 0.74)
    return bands + 0.04 * _noise(rng, falloff=0.3)


def _leaves(rng: np.random.Generator) -> Array:
    spots: Array = np.clip(_noise(rng, falloff=1.1), -1.5, 1.5)
    return 0.8 + 0.13 * spots


def _books(rng: np.random.Generator) -> Array:
    """Return two rows of spines that stand on the lower edges of their halves, dark behind them."""
    image = np.full((PIXELS, PIXELS, 3), 0.16)
    half = PIXELS // 2
    inks = np.array(
        [
            (0.6, 0.13, 0.12),
            (0.14, 0.25, 0.5),
            (0.15, 0.36, 0.22),
            (0.78, 0.66, 0.42),
            (0.3, 0.2, 0.14),
            (0.85, 0.83, 0.78),
            (0.75, 0.45, 0.12),
            (0.36, 0.2, 0.42),
            (0.2, 0.22, 0.25),
        ]
    )
    for foot in (half, PIXELS):
        left = 0
        while left < PIXELS:
            right = min(PIXELS, left + int(rng.integers(11, 26)))
            head = foot - int(rng.integers(half * 3 // 5, half * 17 // 20))
            ink = inks[rng.integers(len(inks))]
            image[head:foot, left : right - 1] = ink
            image[head + 14 : head + 20, left + 2 : right - 3] = 0.5 * ink + 0.45
            left = right
    return image


def _painting(rng: np.random.Generator) -> Array:
    """Return fields of colour, as abstract painters make them."""
    height = _noise(rng, falloff=2.6, stretch=0.7)
    inks = rng.uniform(0.35, 1.0, (7, 3))
    field: NDArray[np.intp] = np.digitize(height, (-1.2, -0.7, -0.2, 0.2, 0.7, 1.2))
    return np.asarray(inks[field] + 0.03 * _noise(rng, falloff=0.4)[:, :, np.newaxis])


def _landscape(rng: np.random.Generator) -> Array:
    """Return sky, hills, trees and a lawn, the horizon as high as a robot's eyes: 1.25 m above the floor."""
    rows = np.arange(PIXELS)[:, np.newaxis]
    horizon = round((1 - 1.25 / TILE_M["landscape"]) * PIXELS)
    share = np.clip((horizon - rows) / (0.35 * PIXELS), 0, 1)[:, :, np.newaxis]
    drift = np.roll(_noise(rng, falloff=1.6, stretch=2.5), PIXELS // 2, axis=0)  # into view
    cloud = np.clip(drift - 0.3, 0, 1.2)[:, :, np.newaxis] / 1.2
    sky = (1 - share) * (0.86, 0.94, 1.0) + share * (0.42, 0.66, 0.95)
    image = sky + (1 - sky) * 0.9 * cloud
    crest = _noise(rng, falloff=1.5)
    for index, (height, color) in enumerate(((34, (0.52, 0.66, 0.72)), (20, (0.36, 0.56, 0.36)))):
        skyline = horizon - height * (1 + 0.35 * crest[200 * index])
        image = np.where((rows > skyline[np.newaxis, :])[:, :, np.newaxis], color, image)
    trees = horizon - 14 * np.clip(1 + _noise(rng, falloff=1.2)[0], 0, 3)
    image = np.where((rows > trees[np.newaxis, :])[:, :, np.newaxis], (0.17, 0.38, 0.18), image)
    lawn = np.array((0.45, 0.66, 0.30)) + 0.03 * _noise(rng, falloff=0.5)[:, :, np.newaxis]
    return np.where((rows > horizon + 6)[:, :, np.newaxis], lawn, image)


_PAINTERS: dict[str, Callable[[np.random.Generator], Array]] = {
    painter.__name__.removeprefix("_"): painter
    for painter in (
        *(_plaster, _stripes, _ornament, _brick, _tiles, _mosaic, _checks, _marble, _wood, _planks),
        *(_parquet, _carpet, _pattern, _fabric, _leaves, _books, _painting, _landscape),
    )
}
