"""The word for any colour, to test that things have the colour that is said of them."""

import numpy as np

from proctor.scenes.colors import PALETTE, STEEL, WOODS

LIGHTNESS_WEIGHT = 0.5
"""A thing in the shade keeps its name: hue counts more than lightness."""


def color_word(rgb):
    """Return the palette's word for a colour: that of the nearest one as eyes measure."""
    return color_words(np.asarray(rgb)[np.newaxis])[0]


def color_words(rgb):
    """Return the words of many colours (N, 3)."""
    words, shades = zip(*PALETTE.items(), *WOODS, STEEL, strict=True)
    known = _oklab(np.array(shades))
    distances = np.linalg.norm((_oklab(rgb)[:, np.newaxis] - known) * (LIGHTNESS_WEIGHT, 1.0, 1.0), axis=2)
    return [words[index] for index in distances.argmin(axis=1)]


def _oklab(rgb):
    """Return sRGB colours (N, 3) in OKLab, where equal distances look equal (Björn Ottosson, 2020)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    cones = linear @ np.array(
        [
            [0.4122214708, 0.2119034982, 0.0883024619],
            [0.5363325363, 0.6806995451, 0.2817188376],
            [0.0514459929, 0.1073969566, 0.6299787005],
        ]
    )
    return np.asarray(
        np.cbrt(cones)
        @ np.array(
            [
                [0.2104542553, 1.9779984951, 0.0259040371],
                [0.7936177850, -2.4285922050, 0.7827717662],
                [-0.0040720468, 0.4505937099, -0.8086757660],
            ]
        )
    )
