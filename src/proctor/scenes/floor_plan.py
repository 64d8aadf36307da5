"""The floor plan of a house: which rooms there are, where they lie and which doors join them.

Rooms tile a rectangle whose corner is the world's origin. A room's `cell` reaches to the middle of its
walls, its `floor` to their surface.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

WALL_THICKNESS_M = 0.12
WALL_HEIGHT_M = 2.6
DOOR_HEIGHT_M = 2.05
DOOR_FRAME_M = 0.05
MIN_ROOM_M = 2.5

HALL = "hall"
PUBLIC_ROOMS = (HALL, "living room", "kitchen", "dining room", "study")
"""Rooms that one may walk through to reach another."""
ROOMS_BY_SIZE = ("living room", "dining room", "bedroom", "kitchen", "guest room", "study", "bathroom")
ESSENTIAL_ROOMS = ("living room", "kitchen", "bedroom")


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

    def distance_m(self, x: float, y: float) -> float:
        """Return how far a point is from the rectangle; 0 inside."""
        return float(np.hypot(max(self.x0 - x, 0.0, x - self.x1), max(self.y0 - y, 0.0, y - self.y1)))


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

    def room_at(self, x: float, y: float) -> Room | None:
        """Return the room whose cell holds a point."""
        return next((room for room in self.rooms if room.cell.distance_m(x, y) == 0.0), None)

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


def plan_floor(rng: np.random.Generator) -> FloorPlan:
    """Draw a house of four to eight rooms, every one of them behind a door."""
    outline = Rect(0.0, 0.0, _metres(rng.uniform(9.0, 14.0)), _metres(rng.uniform(8.0, 12.0)))
    fewest = max(4, int(outline.area_m2 / 22))
    count = int(rng.integers(fewest, max(fewest, min(8, int(outline.area_m2 / 14))) + 1))
    cells = _corridor_cells(outline, count, rng) if rng.random() < 0.6 else _open_cells(outline, count, rng)
    rooms = _name_rooms(cells, rng)
    return FloorPlan(outline, rooms, _place_doors(rooms, rng))


def _corridor_cells(outline: Rect, count: int, rng: np.random.Generator) -> list[Rect]:
    """Lay a hall across the house, the hall first, and rows of rooms on both sides of it."""
    turned = outline.depth_m > outline.width_m
    length_m, across_m = (outline.depth_m, outline.width_m) if turned else (outline.width_m, outline.depth_m)
    hall_m = _metres(rng.uniform(1.6, 2.1))
    low = _metres(rng.uniform(0.42, 0.58) * (across_m - hall_m))
    high = _metres(low + hall_m)
    most_in_row = int(length_m / 2.9)
    others = min(count - 1, 2 * most_in_row)
    lower_count = int(np.clip(others // 2 + rng.integers(0, 2), others - most_in_row, most_in_row))
    cells = [
        Rect(0.0, low, length_m, high),
        *_row(Rect(0.0, 0.0, length_m, low), lower_count, rng),
        *_row(Rect(0.0, high, length_m, across_m), others - lower_count, rng),
    ]
    return [Rect(cell.y0, cell.x0, cell.y1, cell.x1) for cell in cells] if turned else cells


def _row(rect: Rect, count: int, rng: np.random.Generator) -> list[Rect]:
    shares = rng.uniform(0.9, 1.15, count)
    cuts = [_metres(rect.x0 + rect.width_m * part) for part in np.cumsum(shares) / np.sum(shares)]
    starts = [rect.x0, *cuts[:-1]]
    return [Rect(start, rect.y0, end, rect.y1) for start, end in zip(starts, cuts, strict=True)]


def _open_cells(outline: Rect, count: int, rng: np.random.Generator) -> list[Rect]:
    """Halve the house again and again; the cell with the most neighbours, which becomes the hall, first."""
    cells = _split(outline, count, rng)
    neighbours = [sum(_shared_wall(cell, other) is not None for other in cells) for cell in cells]
    hall = cells.pop(int(np.argmax(neighbours)))
    return [hall, *cells]


def _split(rect: Rect, count: int, rng: np.random.Generator) -> list[Rect]:
    if count == 1:
        return [rect]
    first_count = count // 2 if rng.random() < 0.5 else count - count // 2
    share = first_count / count + rng.uniform(-0.06, 0.06)
    if rect.width_m >= rect.depth_m:
        cut = _metres(np.clip(rect.x0 + share * rect.width_m, rect.x0 + MIN_ROOM_M, rect.x1 - MIN_ROOM_M))
        first, second = rect._replace(x1=cut), rect._replace(x0=cut)
    else:
        cut = _metres(np.clip(rect.y0 + share * rect.depth_m, rect.y0 + MIN_ROOM_M, rect.y1 - MIN_ROOM_M))
        first, second = rect._replace(y1=cut), rect._replace(y0=cut)
    return _split(first, first_count, rng) + _split(second, count - first_count, rng)


def _name_rooms(cells: list[Rect], rng: np.random.Generator) -> tuple[Room, ...]:
    """Name the hall, which is the first cell, and give the other names by size."""
    others = sorted(cells[1:], key=lambda cell: -cell.area_m2 * rng.uniform(0.9, 1.1))
    chosen = {*ESSENTIAL_ROOMS}
    if len(others) > len(chosen):
        chosen.add("bathroom")
    optional = [name for name in ROOMS_BY_SIZE if name not in chosen]
    missing = max(0, len(others) - len(chosen))
    chosen.update(str(name) for name in rng.choice(optional, missing, replace=False))
    names = [name for name in ROOMS_BY_SIZE if name in chosen]
    return (Room(HALL, cells[0]), *(Room(name, cell) for name, cell in zip(names, others, strict=True)))


def _place_doors(rooms: tuple[Room, ...], rng: np.random.Generator) -> tuple[Door, ...]:
    """Join all rooms, through the hall where possible, and some of the public ones twice."""
    candidates: dict[tuple[str, str], Door] = {}
    for index, first in enumerate(rooms):
        for second in rooms[index + 1 :]:
            wall = _shared_wall(first.cell, second.cell)
            if wall is not None:
                candidates[first.name, second.name] = _door_in(wall, (first.name, second.name), rng)
    reached, doors = {HALL}, []
    while len(reached) < len(rooms):
        border = [pair for pair in candidates if (pair[0] in reached) != (pair[1] in reached)]
        pair = min(
            border, key=lambda pair: _detour(pair[0] if pair[0] in reached else pair[1]) + rng.random()
        )
        reached.update(pair)
        doors.append(candidates.pop(pair))
    extra = [
        door for door in candidates.values() if set(door.rooms) <= {*PUBLIC_ROOMS} and rng.random() < 0.5
    ]
    return (*doors, *extra[:2])


def _detour(room: str) -> int:
    """Return how much people dislike to walk through a room to reach the next one."""
    if room == HALL:
        return 0
    return 1 if room in PUBLIC_ROOMS else 5


def _shared_wall(first: Rect, second: Rect) -> Side | None:
    """Return the wall between two cells if a door fits into it."""
    for side in sides(first):
        for other in sides(second):
            if side.along == other.along and side.at == other.at and side.inward_deg != other.inward_deg:
                start, end = max(side.start, other.start), min(side.end, other.end)
                if end - start >= 1.7:
                    return side._replace(start=start, end=end)
    return None


def _door_in(wall: Side, rooms: tuple[str, str], rng: np.random.Generator) -> Door:
    width_m = _metres(rng.uniform(0.9, 1.1))
    margin_m = WALL_THICKNESS_M / 2 + DOOR_FRAME_M + 0.15 + width_m / 2
    along = _metres(rng.uniform(wall.start + margin_m, wall.end - margin_m))
    x, y = (along, wall.at) if wall.along == "x" else (wall.at, along)
    return Door(x, y, wall.along, width_m, rooms)


def _metres(value: float) -> float:
    """Round to 5 cm: equal walls get equal coordinates, and files stay short."""
    return round(round(float(value) * 20) / 20, 2)
