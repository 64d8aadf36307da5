"""The palette of houses: colours that people have one word for, so that "the red sofa" is not disputed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from proctor.core.types import Array

if TYPE_CHECKING:  # names of kinds and colours are there for those who have no meshes
    from proctor.scenes.shapes import Triple

PALETTE: dict[str, Triple] = {
    "red": (0.74, 0.12, 0.12),
    "orange": (0.95, 0.48, 0.08),
    "yellow": (0.96, 0.82, 0.18),
    "green": (0.20, 0.50, 0.20),
    "turquoise": (0.16, 0.68, 0.68),
    "blue": (0.14, 0.31, 0.70),
    "purple": (0.44, 0.20, 0.60),
    "pink": (0.95, 0.56, 0.70),
    "brown": (0.43, 0.26, 0.14),
    "beige": (0.86, 0.75, 0.57),
    "black": (0.09, 0.09, 0.10),
    "grey": (0.50, 0.50, 0.51),
    "white": (0.95, 0.95, 0.94),
}


class Paint(NamedTuple):
    """A colour and what people call it."""

    word: str
    rgb: Triple


def paints(*words: str) -> tuple[Paint, ...]:
    """Return the paints of these words of the palette."""
    return tuple(Paint(word, PALETTE[word]) for word in words)


WOODS = (*paints("brown", "beige", "white", "black"), Paint("brown", (0.55, 0.34, 0.18)))
STEEL = Paint("grey", (0.63, 0.65, 0.68))
FABRICS = paints("red", "blue", "green", "yellow", "orange", "purple", "pink", "turquoise", "grey", "beige")


def lighter(rgb: Triple, share: float = 0.25) -> Triple:
    """Return a colour on its way to white."""
    red, green, blue = (round(channel + share * (1 - channel), 2) for channel in rgb)
    return red, green, blue


def darker(rgb: Triple, share: float = 0.2) -> Triple:
    """Return a colour on its way to black."""
    red, green, blue = (round((1 - share) * channel, 2) for channel in rgb)
    return red, green, blue


def oklab(rgb: Array) -> Array:
    """Return sRGB colours (N, 3) in OKLab, where equal distances look equal (Björn Ottosson, 2020)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ CONES_OF_RGB) @ LAB_OF_CONES)


CONES_OF_RGB = np.array(
    [
        [0.4122214708, 0.2119034982, 0.0883024619],
        [0.5363325363, 0.6806995451, 0.2817188376],
        [0.0514459929, 0.1073969566, 0.6299787005],
    ]
)
LAB_OF_CONES = np.array(
    [
        [0.2104542553, 1.9779984951, 0.0259040371],
        [0.7936177850, -2.4285922050, 0.7827717662],
        [-0.0040720468, 0.4505937099, -0.8086757660],
    ]
)
