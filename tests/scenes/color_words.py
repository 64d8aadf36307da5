"""The word for any colour, to test that things have the colour that is said of them."""

import numpy as np

from proctor.scenes.colors import PALETTE, STEEL, WOODS, oklab

LIGHTNESS_WEIGHT = 0.5
"""A thing in the shade keeps its name: hue counts more than lightness."""


def color_word(rgb):
    """Return the palette's word for a colour: that of the nearest one as eyes measure."""
    return color_words(np.asarray(rgb)[np.newaxis])[0]


def color_words(rgb):
    """Return the words of many colours (N, 3)."""
    words, shades = zip(*PALETTE.items(), *WOODS, STEEL, strict=True)
    known = oklab(np.array(shades))
    distances = np.linalg.norm((oklab(rgb)[:, np.newaxis] - known) * (LIGHTNESS_WEIGHT, 1.0, 1.0), axis=2)
    return [words[index] for index in distances.argmin(axis=1)]
