"""Which things words fit, and whether they fit only one."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.instructions.clauses import Thing
from proctor.instructions.surroundings import Landmark

UNNAMED = frozenset({"ceiling", "ceiling lamp", "door", "floor", "rug", "wall", "window"})
"""Not spoken of: they are everywhere, or underfoot."""
TWINS: tuple[frozenset[str], ...] = (
    frozenset({"armchair", "office chair", "chair", "dining chair"}),
    frozenset({"table", "side table", "coffee table"}),
    frozenset({"sideboard", "cabinet", "dresser", "chest of drawers"}),
    frozenset({"bookshelf", "shelf"}),
    frozenset({"floor lamp", "lamp"}),
    frozenset({"washing machine", "dryer"}),
)
"""Things that one word may mean."""
SHADES: tuple[frozenset[str], ...] = (
    frozenset({"white", "beige", "cream", "silver"}),
    frozenset({"gray", "silver", "black"}),
    frozenset({"brown", "orange", "beige"}),
    frozenset({"orange", "yellow", "gold"}),
    frozenset({"red", "pink", "orange"}),
    frozenset({"blue", "turquoise", "teal", "purple"}),
    frozenset({"green", "turquoise", "teal", "olive"}),
)
"""Colours that somebody may call by each other's name."""


def names(thing: Thing, mark: Landmark) -> bool:
    """Tell whether the words are right for a landmark."""
    return thing.category == mark.category and thing.color in ("", mark.color)


def fits(thing: Thing, mark: Landmark) -> bool:
    """Tell whether somebody might think that the words mean a landmark."""
    kind = thing.category == mark.category or any({thing.category, mark.category} <= twins for twins in TWINS)
    color = (
        not thing.color
        or mark.color in ("", thing.color)
        or any({thing.color, mark.color} <= shades for shades in SHADES)
    )
    return kind and color


def is_unmistakable(thing: Thing, mark: Landmark, others: Iterable[Landmark]) -> bool:
    """Tell whether the words mean one landmark, and none of the others by mistake."""
    return names(thing, mark) and not any(other is not mark and fits(thing, other) for other in others)
