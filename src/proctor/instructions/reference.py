"""Which things words fit, and whether they fit only one."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from proctor.instructions.clauses import Thing
from proctor.instructions.surroundings import Landmark
from proctor.instructions.vocabulary import COLORS, THINGS

UNNAMED = frozenset({"ceiling", "ceiling lamp", "door", "floor", "rug", "shadow", "wall", "window"})
"""Not spoken of: they are everywhere, or underfoot."""
TWINS: tuple[frozenset[str], ...] = (
    frozenset({"armchair", "office chair", "chair"}),
    frozenset({"bar stool", "stool"}),
    frozenset({"bed", "crib"}),
    frozenset({"bench", "weight bench"}),
    frozenset({"bookshelf", "shelf"}),
    frozenset({"clock", "grandfather clock"}),
    frozenset({"coffee table", "dining table", "table"}),
    frozenset({"counter", "kitchen island"}),
    frozenset({"dresser", "shoe cabinet", "sideboard"}),
)
"""Things that one word may mean."""
WITHIN: dict[str, frozenset[str]] = {"counter": frozenset({"sink", "stove"})}
"""Things that may be taken for a part of another."""
SHADES: tuple[frozenset[str], ...] = (
    frozenset({"white", "beige"}),
    frozenset({"white", "grey"}),
    frozenset({"brown", "beige"}),
    frozenset({"orange", "yellow"}),
    frozenset({"orange", "red"}),
    frozenset({"blue", "turquoise"}),
    frozenset({"blue", "purple"}),
    frozenset({"green", "turquoise"}),
)
"""Colours that somebody may call by each other's name."""


def names(thing: Thing, mark: Landmark) -> bool:
    """Tell whether the words are right for a landmark."""
    return thing.category == mark.category and thing.color in ("", mark.color)


def fits(thing: Thing, mark: Landmark) -> bool:
    """Tell whether somebody might think that the words mean a landmark."""
    both = {thing.category, mark.category}
    part = mark.category in WITHIN.get(thing.category, ())
    kind = part or len(both) == 1 or any(both <= twins for twins in TWINS)
    color = (
        not thing.color
        or mark.color in ("", thing.color)
        or any({thing.color, mark.color} <= shades for shades in SHADES)
    )
    return kind and color


def is_named(mark: Landmark) -> bool:
    """Tell whether there are words for a landmark, and people use them to tell the way."""
    return mark.category in THINGS and mark.category not in UNNAMED


def words_for(mark: Landmark, rivals: Collection[Landmark], rng: np.random.Generator) -> Thing | None:
    """Return words that mean this landmark and none of its rivals; with the colour if needed, or at will."""
    options = [Thing(mark.category)]
    if mark.color in COLORS:
        options.append(Thing(mark.category, mark.color))
    good = [thing for thing in options if not any(fits(thing, other) for other in rivals)]
    return good[int(rng.integers(len(good)))] if good else None
