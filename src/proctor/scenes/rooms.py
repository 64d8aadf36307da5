"""The kinds of rooms: how large they are, who passes through them, and which of them a house has."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

HALL, CORRIDOR = "hall", "corridor"
FEWEST_ROOMS, MOST_ROOMS = 4, 10


class RoomKind(NamedTuple):
    """What a room of this kind needs."""

    area_m2: float
    shortest_m: float
    """The least length of a side."""
    passage: int
    """How much people dislike to walk through it to reach another room."""


NEVER = 100
ROOM_KINDS: dict[str, RoomKind] = {
    HALL: RoomKind(9.0, 1.6, 0),
    CORRIDOR: RoomKind(7.0, 1.6, 0),
    "living room": RoomKind(23.0, 3.6, 1),
    "dining room": RoomKind(14.0, 3.1, 1),
    "kitchen": RoomKind(13.0, 2.7, 2),
    "bedroom": RoomKind(15.0, 3.1, 8),
    "guest room": RoomKind(12.0, 2.8, 8),
    "nursery": RoomKind(11.0, 2.7, 8),
    "study": RoomKind(11.0, 2.7, 5),
    "library": RoomKind(12.0, 2.8, 3),
    "gym": RoomKind(13.0, 3.0, 5),
    "bathroom": RoomKind(7.5, 2.2, NEVER),
    "laundry room": RoomKind(6.5, 2.1, NEVER),
    "storage room": RoomKind(6.0, 2.0, NEVER),
    "pantry": RoomKind(5.0, 1.9, NEVER),
}
ESSENTIAL = ("living room", "kitchen", "bedroom")
WELCOME = frozenset(
    {
        ("dining room", "living room"),
        ("dining room", "kitchen"),
        ("kitchen", "living room"),
        ("kitchen", "pantry"),
        ("bathroom", "bedroom"),
        ("bathroom", "laundry room"),
        ("library", "living room"),
        ("bedroom", "nursery"),
    }
)
"""Pairs that people like to have side by side."""
OPEN_PAIRS = frozenset(
    {
        ("dining room", "living room"),
        ("dining room", "kitchen"),
        ("kitchen", "living room"),
        ("library", "living room"),
    }
)
"""Pairs that may be joined by a wide opening instead of a door."""


def draw_rooms(count: int, rng: np.random.Generator) -> list[str]:
    """Return the names of so many rooms, at least three, besides halls and corridors."""
    chosen = [*ESSENTIAL]
    if count > len(chosen):
        chosen.append("bathroom")
    others = [name for name in ROOM_KINDS if name not in (*chosen, HALL, CORRIDOR)]
    # Plans with small rooms fail more often, so these are drawn a little more often.
    wanted = rng.random(len(others)) * [1.0 if ROOM_KINDS[name].area_m2 > 9 else 1.1 for name in others]
    return chosen + [others[index] for index in np.argsort(-wanted)[: count - len(chosen)]]


def pair(first: str, second: str) -> tuple[str, str]:
    """Return two names in the order in which pairs are listed."""
    return (first, second) if first < second else (second, first)
