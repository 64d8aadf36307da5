"""The floor plan of a house: which rooms there are, where they lie and which doors join them.

Rooms tile a rectangle whose corner is the world's origin. A room's `cell` reaches to the middle of its
walls, its `floor` to their surface.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from proctor.core.types import Array

WALL_THICKNESS_M = 0.12
WALL_HEIGHT_M = 2.6
DOOR_HEIGHT_M = 2.05
DOOR_FRAME_M = 0.05
ARCHWAY_M = 1.4
"""Openings from this width on are archways."""


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
