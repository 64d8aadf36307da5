"""Draws floor plans: halls first, rooms around them by the area they need, doors where people want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from proctor.scenes.floor_plan import (
    ARCHWAY_M,
    CORRIDOR,
    DOOR_FRAME_M,
    FEWEST_ROOMS,
    HALL,
    MOST_ROOMS,
    NEVER,
    OPEN_PAIRS,
    ROOM_KINDS,
    WALL_THICKNESS_M,
    WELCOME,
    Door,
    FloorPlan,
    Rect,
    Room,
    Side,
    draw_rooms,
    pair,
    sides,
)

DOOR_COLORS = ("white", "brown", "grey", "red", "blue", "green", "yellow", "beige", "black", "turquoise")
Rng: TypeAlias = np.random.Generator
STEP_M = 0.05
"""Walls stand on this grid: equal walls get equal coordinates, and files stay short."""
LONGEST = 2.3
"""How many times longer than wide a room may be."""


def shared_wall(first: Rect, second: Rect) -> Side | None:
    """Return the wall between two cells if a door fits into it, seen from the first."""
    for side in sides(first):
        for other in sides(second):
            if side.along == other.along and side.at == other.at and side.inward_deg != other.inward_deg:
                start, end = max(side.start, other.start), min(side.end, other.end)
                if end - start >= 1.6:
                    return side._replace(start=start, end=end)
    return None


def place_doors(rooms: tuple[Room, ...], rng: np.random.Generator) -> tuple[Door, ...] | None:
    """Join all rooms, through halls where possible, and some of those that belong together twice.

    The hall is the first room. None if a path would have to cross a bathroom.
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
    """Return the door with its leaf folded back in the second room, else the first, else without one."""
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
            near, far = sorted((side.at, side.at + into * 0.16))
            leaf = Rect(low, near, high, far) if door.along == "x" else Rect(near, low, far, high)
            leaf = Rect(*(round(value, 3) for value in leaf))
            others = [other.zone(0.6) for other in doors if other is not door] + [
                other.leaf for other in doors if other.leaf
            ]
            if not any(leaf.inset(-0.05).overlaps(other) for other in others):
                return door._replace(color=color, leaf=leaf)
    return door


class Draft(NamedTuple):
    """The outline of a house and a cell for each room."""

    outline: Rect
    cells: dict[str, Rect]


class Misfit(Exception):
    """A draft in which a room is too narrow or cannot be reached."""


def plan_floor(rng: Rng, *, rooms: int | None = None) -> FloorPlan:
    """Draw a house, every room of it behind a door. Halls and corridors count as rooms."""
    if rooms is None:
        rooms = int(rng.integers(FEWEST_ROOMS, MOST_ROOMS + 1))
    drafts: list[FloorPlan] = []
    tries = 0
    # The plan that people like best is built.
    while len(drafts) < 4:
        # What never fits in a small house fits in a larger one.
        spacious = 1.0 + 0.001 * tries
        tries += 1
        try:
            drafts.append(_draw(rooms, spacious, rng))
        except Misfit:
            continue
    return max(drafts, key=_merit)


def _draw(rooms: int, spacious: float, rng: Rng) -> FloorPlan:
    layouts: list[Callable[[list[str], float, Rng], Draft]] = [_corridor, _open, _foyer]
    if rooms >= 6:
        layouts.append(_angle)
    layout = layouts[rng.integers(len(layouts))]
    names = draw_rooms(rooms - (2 if layout is _angle else 1), rng)
    draft = _turned(layout(names, spacious * rng.uniform(0.95, 1.15), rng), rng)
    for name, cell in draft.cells.items():
        _check(name, cell)
    plan_rooms = tuple(Room(name, draft.cells[name]) for name in sorted(draft.cells, key=lambda n: n != HALL))
    doors = place_doors(plan_rooms, rng)
    if doors is None:
        raise Misfit
    return FloorPlan(draft.outline, plan_rooms, doors)


def _check(name: str, cell: Rect) -> None:
    kind = ROOM_KINDS[name]
    short_m, long_m = sorted((cell.width_m, cell.depth_m))
    slim = long_m > LONGEST * short_m and name not in (HALL, CORRIDOR)
    if short_m < kind.shortest_m - 1e-6 or slim:
        raise Misfit


def _merit(plan: FloorPlan) -> float:
    """Return how well people would like to live here: what belongs together is joined, the rest is not."""
    joined = {pair(*door.rooms) for door in plan.doors}
    awkward = sum(min(ROOM_KINDS[name].passage for name in names) > 2 for names in joined - WELCOME)
    from_hall = sum(bool({HALL, CORRIDOR} & {*door.rooms}) for door in plan.doors)
    return 2.0 * len(joined & WELCOME) + 0.5 * from_hall - 3.0 * awkward


def _corridor(names: list[str], spacious: float, rng: Rng) -> Draft:
    """Lay the hall across the house, with rooms on both sides of it."""
    south, north = _halves(names, rng)
    hall_m, areas = _metres(rng.uniform(1.6, 2.0)), [_area(row) * spacious for row in (south, north)]
    length_m = _metres(rng.uniform(0.8, 1.5) * np.sqrt(sum(areas)))
    low = _metres(areas[0] / length_m)
    high = _metres(low + hall_m)
    depth_m = _metres(high + areas[1] / length_m)
    cells = {
        HALL: Rect(0.0, low, length_m, high),
        **_slice(Rect(0.0, 0.0, length_m, low), south, rng),
        **_slice(Rect(0.0, high, length_m, depth_m), north, rng),
    }
    return Draft(Rect(0.0, 0.0, length_m, depth_m), cells)


def _angle(names: list[str], spacious: float, rng: Rng) -> Draft:
    """Lay hall and corridor as an L, rooms on both sides and in the corner."""
    hall_m, corridor_m = _metres(rng.uniform(1.7, 2.1)), _metres(rng.uniform(1.6, 1.8))
    south, others = _halves(names, rng)
    west, east = _halves(others, rng)
    areas = [_area(block) * spacious for block in (south, west, east)]
    length_m = _metres(rng.uniform(1.0, 1.4) * np.sqrt(sum(areas) + 14.0))
    low = _metres(areas[0] / length_m)
    high = _metres(low + hall_m)
    # The blocks in the west and in the east differ by the end of the hall, which lies before one of them.
    inner_m = length_m - corridor_m
    depth_m = _metres(high + (areas[1] + areas[2]) / (inner_m + 1e-9) - hall_m * 0.4)
    if depth_m - high < 2.5:
        raise Misfit
    bend = _metres(areas[1] / (depth_m - high))
    if not 2.0 < bend < inner_m - 2.0:
        raise Misfit
    end = _metres(bend + corridor_m)
    cells = {
        HALL: Rect(0.0, low, end, high),
        CORRIDOR: Rect(bend, high, end, depth_m),
        **_slice(Rect(0.0, 0.0, length_m, low), south, rng),
        **_slice(Rect(0.0, high, bend, depth_m), west, rng),
        **_slice(Rect(end, low, length_m, depth_m), east, rng),
    }
    return Draft(Rect(0.0, 0.0, length_m, depth_m), cells)


def _foyer(names: list[str], spacious: float, rng: Rng) -> Draft:
    """Put the hall in the middle of the front, with wings to both sides and rooms behind it."""
    if len(names) < 3:
        raise Misfit
    wing, others = _halves(names, rng)
    middle, other_wing = _halves(others, rng)
    hall_area = rng.uniform(8.0, 13.0)
    areas = [_area(block) * spacious for block in (wing, middle, other_wing)]
    depth_m = _metres(rng.uniform(0.75, 1.05) * np.sqrt(sum(areas) + hall_area))
    first = _metres(areas[0] / depth_m)
    second = _metres(first + (areas[1] + hall_area) / depth_m)
    length_m = _metres(second + areas[2] / depth_m)
    if second - first < 1.8:
        raise Misfit
    back = _metres(hall_area / (second - first))
    cells = {
        HALL: Rect(first, 0.0, second, back),
        **_slice(Rect(0.0, 0.0, first, depth_m), wing, rng),
        **_slice(Rect(first, back, second, depth_m), middle, rng),
        **_slice(Rect(second, 0.0, length_m, depth_m), other_wing, rng),
    }
    return Draft(Rect(0.0, 0.0, length_m, depth_m), cells)


def _open(names: list[str], spacious: float, rng: Rng) -> Draft:
    """Halve the house again and again, the hall being a room like the others."""
    everything = [*names, HALL]
    area = _area(everything) * spacious * 1.05
    length_m = _metres(rng.uniform(1.0, 1.35) * np.sqrt(area))
    outline = Rect(0.0, 0.0, length_m, _metres(area / length_m))
    cells = _slice(outline, everything, rng)
    hall = cells[HALL]
    outer = hall.x0 == 0.0 or hall.y0 == 0.0 or hall.x1 == outline.x1 or hall.y1 == outline.y1
    neighbours = sum(shared_wall(hall, cell) is not None for name, cell in cells.items() if name != HALL)
    if not outer or neighbours < min(3, len(names)):
        raise Misfit
    return Draft(outline, cells)


def _slice(rect: Rect, names: Sequence[str], rng: Rng) -> dict[str, Rect]:
    """Cut a rectangle into rooms whose areas relate as they should."""
    if not names or min(rect.width_m, rect.depth_m) < 1.5:
        raise Misfit
    if len(names) == 1:
        return {names[0]: rect}
    first, second = _halves(names, rng)
    share = _area(first) / _area(names)
    across = rect.width_m >= rect.depth_m * rng.uniform(0.85, 1.15)
    if across:
        cut = _metres(rect.x0 + share * rect.width_m)
        one, other = rect._replace(x1=cut), rect._replace(x0=cut)
    else:
        cut = _metres(rect.y0 + share * rect.depth_m)
        one, other = rect._replace(y1=cut), rect._replace(y0=cut)
    return {**_slice(one, first, rng), **_slice(other, second, rng)}


def _halves(names: Sequence[str], rng: Rng) -> tuple[list[str], list[str]]:
    """Deal rooms into two groups of about the same area, the larger first as often as not."""
    if len(names) < 2:
        raise Misfit
    shuffled = [names[index] for index in rng.permutation(len(names))]
    groups: tuple[list[str], list[str]] = ([], [])
    for name in shuffled:
        groups[_area(groups[0]) > _area(groups[1])].append(name)
    return groups if rng.random() < 0.5 else (groups[1], groups[0])


def _area(names: Sequence[str]) -> float:
    return sum(ROOM_KINDS[name].area_m2 for name in names)


def _turned(draft: Draft, rng: Rng) -> Draft:
    """Return the draft mirrored or turned, so that halls begin on any side."""
    flip_x, flip_y, swap = rng.random(3) < 0.5
    _, _, x1, y1 = draft.outline

    def moved(cell: Rect) -> Rect:
        ax, bx = (x1 - cell.x1, x1 - cell.x0) if flip_x else (cell.x0, cell.x1)
        ay, by = (y1 - cell.y1, y1 - cell.y0) if flip_y else (cell.y0, cell.y1)
        new = (ay, ax, by, bx) if swap else (ax, ay, bx, by)
        return Rect(*map(_metres, new))

    return Draft(moved(draft.outline), {name: moved(cell) for name, cell in draft.cells.items()})


def _metres(value: float) -> float:
    return round(round(float(value) / STEP_M) * STEP_M, 2)
