"""The floor plan of a house: rooms that tile a rectangle from the world's origin, and the doors between them.

A room's `cell` reaches to the middle of its walls, its `floor` to their surface.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from proctor.core.types import Array

HALL, CORRIDOR = "hall", "corridor"
FEWEST_ROOMS, MOST_ROOMS = 4, 10
WALL_THICKNESS_M = 0.12
WALL_HEIGHT_M = 2.6
DOOR_HEIGHT_M = 2.05
DOOR_FRAME_M = 0.05
ARCHWAY_M = 1.4
"""Openings from this width on are archways."""


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
OPEN_PAIRS = frozenset(
    {
        ("dining room", "living room"),
        ("dining room", "kitchen"),
        ("kitchen", "living room"),
        ("library", "living room"),
    }
)
"""Pairs that may be joined by a wide opening instead of a door."""
WELCOME = OPEN_PAIRS | {
    ("kitchen", "pantry"),
    ("bathroom", "bedroom"),
    ("bathroom", "laundry room"),
    ("bedroom", "nursery"),
}
"""Pairs that people like to have side by side."""


def draw_rooms(count: int, rng: np.random.Generator) -> list[str]:
    """Return the names of so many rooms, at least three, besides halls and corridors."""
    chosen = [*("living room", "kitchen", "bedroom")]
    if count > len(chosen):
        chosen.append("bathroom")
    others = [name for name in ROOM_KINDS if name not in (*chosen, HALL, CORRIDOR)]
    # Plans with small rooms fail more often, so these are drawn a little more often.
    wanted = rng.random(len(others)) * [1.0 if ROOM_KINDS[name].area_m2 > 9 else 1.1 for name in others]
    return chosen + [others[index] for index in np.argsort(-wanted)[: count - len(chosen)]]


def pair(first: str, second: str) -> tuple[str, str]:
    """Return two names in the order in which pairs are listed."""
    return (first, second) if first < second else (second, first)


class Rect(NamedTuple):
    """A rectangle on the floor, sides along the axes, in metres."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width_m(self) -> float:
        """Length along x."""
        return self.x1 - self.x0

    @property
    def depth_m(self) -> float:
        """Length along y."""
        return self.y1 - self.y0

    @property
    def area_m2(self) -> float:
        """Area in square metres."""
        return self.width_m * self.depth_m

    @property
    def centre(self) -> tuple[float, float]:
        """The middle."""
        return (self.x0 + self.x1) / 2, (self.y0 + self.y1) / 2

    def inset(self, margin_m: float) -> Rect:
        """Return the rectangle with every side moved inwards."""
        return Rect(self.x0 + margin_m, self.y0 + margin_m, self.x1 - margin_m, self.y1 - margin_m)

    def overlaps(self, other: Rect) -> bool:
        """Tell whether the two share more than a border."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def contains(self, other: Rect) -> bool:
        """Tell whether the other lies inside."""
        return self.x0 <= other.x0 and self.y0 <= other.y0 and other.x1 <= self.x1 and other.y1 <= self.y1

    def distances_m(self, points: Array) -> Array:
        """Return how far points (N, 2) are from the rectangle; 0 inside."""
        beside = np.maximum(np.array([self.x0, self.y0]) - points, points - np.array([self.x1, self.y1]))
        return np.asarray(np.hypot(*np.maximum(beside, 0.0).T))


class Side(NamedTuple):
    """One side of a rectangle: the line `along` an axis, `at` a coordinate of the other axis."""

    along: Literal["x", "y"]
    at: float
    start: float
    end: float
    inward_deg: int
    """Direction from the side into the rectangle, as a yaw."""


class Room(NamedTuple):
    """A room. Its name says what it is and occurs once in a house."""

    name: str
    cell: Rect

    @property
    def floor(self) -> Rect:
        """The floor between the walls."""
        return self.cell.inset(WALL_THICKNESS_M / 2)


class Door(NamedTuple):
    """An opening between two rooms, in the wall that runs `along` an axis, centred at (x, y)."""

    x: float
    y: float
    along: Literal["x", "y"]
    width_m: float
    """Clear width, inside the frame."""
    rooms: tuple[str, str]
    color: str = ""
    """Of its leaf, in one word; empty where there is none."""
    leaf: Rect | None = None
    """The floor that the leaf covers, which stands open along the wall."""

    @property
    def is_archway(self) -> bool:
        """Whether it is a wide opening, without frame and leaf."""
        return self.width_m >= ARCHWAY_M

    def zone(self, reach_m: float) -> Rect:
        """Return the floor that somebody passing the door needs, this far to both sides of the wall."""
        half_m = self.width_m / 2
        dx, dy = (half_m, reach_m) if self.along == "x" else (reach_m, half_m)
        return Rect(self.x - dx, self.y - dy, self.x + dx, self.y + dy)


class FloorPlan(NamedTuple):
    """Rooms and the doors that join all of them."""

    outline: Rect
    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]

    def is_outer(self, side: Side) -> bool:
        """Tell whether a side of a room's floor or cell belongs to an outer wall."""
        low, high = (
            (self.outline.y0, self.outline.y1) if side.along == "x" else (self.outline.x0, self.outline.x1)
        )
        return min(abs(side.at - low), abs(side.at - high)) < WALL_THICKNESS_M


def sides(rect: Rect) -> tuple[Side, Side, Side, Side]:
    """Return the south, east, north and west side."""
    return (
        Side("x", rect.y0, rect.x0, rect.x1, 90),
        Side("y", rect.x1, rect.y0, rect.y1, 180),
        Side("x", rect.y1, rect.x0, rect.x1, 270),
        Side("y", rect.x0, rect.y0, rect.y1, 0),
    )
