"""Draws floor plans: halls first, rooms around them by the area they need, doors where people want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from proctor.scenes.doors import place_doors, shared_wall
from proctor.scenes.floor_plan import FloorPlan, Rect, Room
from proctor.scenes.rooms import (
    CORRIDOR,
    FEWEST_ROOMS,
    HALL,
    MOST_ROOMS,
    ROOM_KINDS,
    WELCOME,
    draw_rooms,
    pair,
)

Rng: TypeAlias = np.random.Generator
STEP_M = 0.05
"""Walls stand on this grid: equal walls get equal coordinates, and files stay short."""
LONGEST = 2.3
"""How many times longer than wide a room may be."""
DRAFTS = 4
"""So many plans are drawn, and the one that people like best is built."""


class Draft(NamedTuple):
    """The outline of a house and a cell for each room."""

    outline: Rect
    cells: dict[str, Rect]


class Misfit(Exception):
    """A draft in which a room is too narrow or cannot be reached."""


def plan_floor(rng: Rng, *, rooms: int | None = None) -> FloorPlan:
    """Draw a house, every room of it behind a door.

    Args:
        rng: Where chance comes from.
        rooms: How many, halls and corridors included.
    """
    if rooms is None:
        rooms = int(rng.integers(FEWEST_ROOMS, MOST_ROOMS + 1))
    drafts: list[FloorPlan] = []
    tries = 0
    while len(drafts) < DRAFTS:
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
    if not names:
        raise Misfit
    if min(rect.width_m, rect.depth_m) < 1.5:
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
