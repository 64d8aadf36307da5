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
    """What can be made under one name."""

    description: str
    size_m: Triple
    """Full extents unless an episode says otherwise. A handle stands out beyond them."""
    color: str
    """Unless an episode says otherwise."""
    is_graspable: bool = False
    is_container: bool = False
    is_furniture: bool = False
    is_round: bool = False
    """Whether depth and width must be equal."""


KINDS: dict[str, Kind] = {
    "ball": Kind("a rubber ball", (0.06, 0.06, 0.06), "red", is_graspable=True, is_round=True),
    "block": Kind("a wooden toy block", (0.045, 0.045, 0.045), "blue", is_graspable=True),
    "bottle": Kind(
        "a bottle with neck, cap and label", (0.065, 0.065, 0.22), "green", is_graspable=True, is_round=True
    ),
    "box": Kind("a cardboard box", (0.05, 0.07, 0.1), "beige", is_graspable=True),
    "can": Kind("a drinks can", (0.06, 0.06, 0.115), "red", is_graspable=True, is_round=True),
    "cup": Kind("a cup with a handle", (0.06, 0.06, 0.09), "white", is_graspable=True, is_round=True),
    "cylinder": Kind("a wooden cylinder", (0.05, 0.05, 0.1), "yellow", is_graspable=True, is_round=True),
    "mug": Kind(
        "a mug with a large handle, white inside",
        (0.068, 0.068, 0.095),
        "blue",
        is_graspable=True,
        is_round=True,
    ),
    "basket": Kind("a woven basket, rectangular", (0.24, 0.2, 0.09), "beige", is_container=True),
    "bowl": Kind("a bowl", (0.18, 0.18, 0.06), "white", is_container=True, is_round=True),
    "plate": Kind("a plate with a raised rim", (0.22, 0.22, 0.02), "white", is_container=True, is_round=True),
    "tray": Kind("a rectangular tray with low walls", (0.24, 0.34, 0.03), "black", is_container=True),
    "counter": Kind(
        "a kitchen counter with doors below a stone top", (0.6, 1.2, 0.9), "white", is_furniture=True
    ),
    "desk": Kind("a desk with drawers at its right", (0.6, 1.3, 0.74), "white", is_furniture=True),
    "shelf": Kind("an open shelf of three boards", (0.35, 0.9, 0.8), "beige", is_furniture=True),
    "stand": Kind(
        "a small round table on one foot", (0.5, 0.5, 0.7), "black", is_furniture=True, is_round=True
    ),
    "table": Kind("a wooden table on four legs", (0.55, 1.2, 0.8), "brown", is_furniture=True),
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
