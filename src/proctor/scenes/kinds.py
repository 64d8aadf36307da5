"""The kinds of things that can be made, and what they are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from proctor.core.errors import did_you_mean
from proctor.scenes.colors import PALETTE

if TYPE_CHECKING:  # names of kinds and colours are there for those who have no meshes
    from proctor.scenes.shapes import Triple

SPELLINGS = {"gray": "grey"}


class Kind(NamedTuple):
    """What can be made under one name; the function of this name in `things` or `vessels` makes it."""

    size_m: Triple
    """Full extents unless an episode says otherwise. A handle stands out beyond them."""
    color: str
    """Unless an episode says otherwise."""
    is_graspable: bool = False
    is_round: bool = False
    """Whether depth and width must be equal."""


KINDS: dict[str, Kind] = {
    "ball": Kind((0.06, 0.06, 0.06), "red", is_graspable=True, is_round=True),
    "block": Kind((0.045, 0.045, 0.045), "blue", is_graspable=True),
    "bottle": Kind((0.065, 0.065, 0.22), "green", is_graspable=True, is_round=True),
    "box": Kind((0.05, 0.07, 0.1), "beige", is_graspable=True),
    "can": Kind((0.06, 0.06, 0.115), "red", is_graspable=True, is_round=True),
    "cup": Kind((0.06, 0.06, 0.09), "white", is_graspable=True, is_round=True),
    "cylinder": Kind((0.05, 0.05, 0.1), "yellow", is_graspable=True, is_round=True),
    "mug": Kind((0.068, 0.068, 0.095), "blue", is_graspable=True, is_round=True),
    "basket": Kind((0.24, 0.2, 0.09), "beige"),
    "bowl": Kind((0.18, 0.18, 0.06), "white", is_round=True),
    "plate": Kind((0.22, 0.22, 0.02), "white", is_round=True),
    "tray": Kind((0.24, 0.34, 0.03), "black"),
    "counter": Kind((0.6, 1.2, 0.9), "white"),
    "desk": Kind((0.6, 1.3, 0.74), "white"),
    "shelf": Kind((0.35, 0.9, 0.8), "beige"),
    "stand": Kind((0.5, 0.5, 0.7), "black", is_round=True),
    "table": Kind((0.55, 1.2, 0.8), "brown"),
}
"""By name. Their origin is the middle of their bottom or, of furniture, their centre."""


def check_kind(kind: str) -> None:
    """Raise a ValueError if there is no such kind."""
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise ValueError(f"kind: expected one of {', '.join(sorted(KINDS))}, found '{kind[:40]}'{hint}")


def color_of(word: str) -> Triple:
    """Return the red, green and blue of an English word; raise a ValueError if it is not a known colour."""
    word = SPELLINGS.get(word.lower(), word.lower())
    if word not in PALETTE:
        hint = did_you_mean(word, PALETTE)
        raise ValueError(f"color: expected one of {', '.join(PALETTE)}, found '{word[:40]}'{hint}")
    return PALETTE[word]


def kind_and_color(name: str) -> tuple[str, str] | None:
    """Return kind and colour ("" if none) in a name such as `cup_red`, `red_cup_2` or `table`, if known."""
    words = [word for word in re.split(r"[_\-\s]+", name.lower()) if not word.isdigit()]
    kinds = [word for word in words if word in KINDS]
    colors = [word for word in words if SPELLINGS.get(word, word) in PALETTE]
    if len(kinds) != 1 or len(colors) > 1 or len(words) != len(kinds) + len(colors):
        return None
    return kinds[0], colors[0] if colors else ""
