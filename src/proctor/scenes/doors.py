"""Doors: where rooms are joined, by an archway or a door, and where its open leaf stands."""

from __future__ import annotations

import numpy as np

from proctor.scenes.floor_plan import (
    ARCHWAY_M,
    DOOR_FRAME_M,
    WALL_THICKNESS_M,
    Door,
    Rect,
    Room,
    Side,
    sides,
)
from proctor.scenes.rooms import CORRIDOR, HALL, NEVER, OPEN_PAIRS, ROOM_KINDS, WELCOME, pair

DOOR_COLORS = ("white", "brown", "grey", "red", "blue", "green", "yellow", "beige", "black", "turquoise")
NARROWEST_WALL_M = 1.6
"""The least length of a wall that a door fits into."""
LEAF_REACH_M = 0.16
"""How far an open leaf stands out from the wall."""


def shared_wall(first: Rect, second: Rect) -> Side | None:
    """Return the wall between two cells if a door fits into it, seen from the first."""
    for side in sides(first):
        for other in sides(second):
            if side.along == other.along and side.at == other.at and side.inward_deg != other.inward_deg:
                start, end = max(side.start, other.start), min(side.end, other.end)
                if end - start >= NARROWEST_WALL_M:
                    return side._replace(start=start, end=end)
    return None


def place_doors(rooms: tuple[Room, ...], rng: np.random.Generator) -> tuple[Door, ...] | None:
    """Join all rooms, through halls where possible, and some of those that belong together twice.

    Args:
        rooms: The rooms, the hall first.
        rng: Where chance comes from.

    Returns:
        The doors; None if somebody would have to walk through a bathroom.
    """
    walls = {
        (first.name, second.name): wall
        for index, first in enumerate(rooms)
        for second in rooms[index + 1 :]
        if (wall := shared_wall(first.cell, second.cell)) is not None
    }
    pairs = _tree(rooms, walls, rng)
    if pairs is None:
        return None
    for names in walls:
        through = max(ROOM_KINDS[name].passage for name in names)
        if names not in pairs and pair(*names) in WELCOME and (through <= 2 or rng.random() < 0.15):
            pairs.append(names)
    cells = {room.name: room.cell for room in rooms}
    color = DOOR_COLORS[rng.integers(len(DOOR_COLORS))]
    doors = [_door_in(walls[names], names, rng) for names in pairs]
    for index, door in enumerate(doors):
        # Most doors of a house are alike.
        own = DOOR_COLORS[rng.integers(len(DOOR_COLORS))] if rng.random() < 0.4 else color
        if not door.is_archway:
            doors[index] = _with_leaf(door, own, cells, doors)
    return tuple(doors)


def _tree(
    rooms: tuple[Room, ...], walls: dict[tuple[str, str], Side], rng: np.random.Generator
) -> list[tuple[str, str]] | None:
    """Return pairs of rooms that reach all of them from the hall, on the ways that people like."""
    cost, pairs = {HALL: 0.0}, []

    def known(names: tuple[str, str]) -> str:
        return names[0] if names[0] in cost else names[1]

    def detour(names: tuple[str, str]) -> float:
        welcome = 1.5 if pair(*names) in WELCOME else 0.0
        return cost[known(names)] + ROOM_KINDS[known(names)].passage - welcome

    while len(cost) < len(rooms):
        border = [names for names in walls if (names[0] in cost) != (names[1] in cost)]
        if not border:
            return None
        best = min(border, key=lambda names: detour(names) + rng.random())
        old = known(best)
        new = best[1] if old == best[0] else best[0]
        cost[new] = cost[old] + ROOM_KINDS[old].passage
        if cost[new] >= NEVER:
            return None
        pairs.append(best)
    return pairs


def _door_in(wall: Side, rooms: tuple[str, str], rng: np.random.Generator) -> Door:
    length_m = wall.end - wall.start
    width_m = round(float(rng.uniform(0.85, 1.0)), 2)
    if _may_be_open(rooms) and length_m > ARCHWAY_M + 0.7 and rng.random() < 0.75:
        width_m = round(float(rng.uniform(ARCHWAY_M, min(2.2, length_m - 0.7))), 2)
    margin_m = WALL_THICKNESS_M / 2 + DOOR_FRAME_M + 0.1 + width_m / 2
    low, high = wall.start + margin_m, wall.end - margin_m - 0.05  # numbers move doors by up to 5 cm
    # Doors are rather near a corner, which leaves the rest of the wall to furniture.
    share = rng.beta(0.6, 0.6)
    along = round(float(np.ceil((low + share * max(0.0, high - low - 0.05)) * 20)) / 20, 2)
    x, y = (along, wall.at) if wall.along == "x" else (wall.at, along)
    return Door(x, y, wall.along, width_m, rooms)


def _may_be_open(rooms: tuple[str, str]) -> bool:
    return pair(*rooms) in OPEN_PAIRS or {*rooms} in ({HALL, CORRIDOR}, {HALL, "living room"})


def _with_leaf(door: Door, color: str, cells: dict[str, Rect], doors: list[Door]) -> Door:
    """Return the door with its leaf folded back to the wall, in the second room if it can be, else the first.

    Where no wall beside it is long enough, the door has none.
    """
    for room in reversed(door.rooms):
        side = next(
            side
            for side in sides(cells[room].inset(WALL_THICKNESS_M / 2))
            if side.along == door.along and abs(side.at - (door.y if door.along == "x" else door.x)) < 0.1
        )
        middle, half_m = (door.x if door.along == "x" else door.y), door.width_m / 2
        into = 1 if side.inward_deg in (0, 90) else -1
        for hand in (-1, 1):
            hinge = middle + hand * half_m
            tip = hinge + hand * (door.width_m + 0.05)
            if not side.start + 0.05 < tip < side.end - 0.05:
                continue
            low, high = sorted((hinge, tip))
            near, far = sorted((side.at, side.at + into * LEAF_REACH_M))
            leaf = Rect(low, near, high, far) if door.along == "x" else Rect(near, low, far, high)
            leaf = Rect(*(round(value, 3) for value in leaf))
            others = [other.zone(0.6) for other in doors if other is not door] + [
                other.leaf for other in doors if other.leaf
            ]
            if not any(leaf.inset(-0.05).overlaps(other) for other in others):
                return door._replace(color=color, leaf=leaf)
    return door
