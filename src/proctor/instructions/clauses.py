"""What an instruction says, clause by clause and free of any language.

A clause is a claim about a path through a scene, and so it is true or false.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Hand: TypeAlias = Literal["left", "right"]
Direction: TypeAlias = Literal[
    "left", "right", "slightly left", "slightly right", "sharply left", "sharply right", "around"
]
DoorSide: TypeAlias = Literal["", "left", "right", "ahead"]
Passage: TypeAlias = Literal["", "door", "archway"]
Relation: TypeAlias = Literal["next to", "in front of", "between"]


class SpokenObject(msgspec.Struct, frozen=True):
    """A landmark as it is spoken of: `red sofa`."""

    category: str
    color: str = ""
    """Empty if the colour is not said."""


class Turn(msgspec.Struct, frozen=True):
    """Turn by a quarter or so, a little (`slightly left`), by more (`sharply left`), or around."""

    direction: Direction


class Forward(msgspec.Struct, frozen=True):
    """Go about this far without a bend."""

    distance_m: int


class Toward(msgspec.Struct, frozen=True):
    """Go in the direction of a thing in view."""

    thing: SpokenObject


class RoomClause(msgspec.Struct, frozen=True):
    """A clause about a room."""

    room: str


class Leave(RoomClause, frozen=True):
    """Go out of the room where the path begins."""


class Enter(RoomClause, frozen=True):
    """Go into the next room."""

    side: DoorSide = ""
    """Where the way in lies for who comes near; empty if it is not said."""
    via: Passage = ""
    """What leads there; empty if it is not said."""


class Cross(RoomClause, frozen=True):
    """Go through a room that is neither the first nor the last."""


class Pass(msgspec.Struct, frozen=True):
    """Leave a thing behind that stands on one side."""

    thing: SpokenObject
    side: Hand


class GoTo(RoomClause, frozen=True):
    """Go, by whatever path, to the room where the goal is."""


class Stay(RoomClause, frozen=True):
    """Do not leave the room where the path begins."""


class StopAt(msgspec.Struct, frozen=True):
    """Stop at a thing, or between two."""

    relation: Relation
    thing: SpokenObject
    other: SpokenObject | None = None
    """The second thing of `between`."""


Clause: TypeAlias = Turn | Forward | Toward | Leave | Enter | Cross | Pass | GoTo | Stay | StopAt
MEANINGS: dict[str, tuple[type, dict[str, str]]] = {
    "turn": (Turn, {}),
    "turn around": (Turn, {"direction": "around"}),
    "forward": (Forward, {}),
    "toward": (Toward, {}),
    "leave": (Leave, {}),
    "enter": (Enter, {}),
    "door": (Enter, {"via": "door"}),
    "archway": (Enter, {"via": "archway"}),
    "ahead": (Enter, {"side": "ahead"}),
    "door ahead": (Enter, {"side": "ahead", "via": "door"}),
    "archway ahead": (Enter, {"side": "ahead", "via": "archway"}),
    "cross": (Cross, {}),
    "pass": (Pass, {}),
    "go to": (GoTo, {}),
    "stay": (Stay, {}),
    "next to": (StopAt, {"relation": "next to"}),
    "in front of": (StopAt, {"relation": "in front of"}),
    "between": (StopAt, {"relation": "between"}),
}
"""What a phrase says: a type of clause, with the values of fields that have no slot."""
