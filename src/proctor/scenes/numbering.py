"""Floor plans carry a number, so that no two seeds ever give the same house.

Plans are drawn on a grid of 5 cm. The millimetres in between hold the digits of the number: two in the size
of the house, one in the place of each of the first three doors.
"""

from __future__ import annotations

from proctor.scenes.floor_plan import Door, FloorPlan, Rect, Room

BASE = 50
DOORS = 3
"""Even the smallest house has as many."""
LARGEST_NUMBER = BASE ** (2 + DOORS) - 1


def numbered(plan: FloorPlan, number: int) -> FloorPlan:
    """Return a plan that carries a number, of which digits beyond the fifth are lost.

    Args:
        plan: A plan on the grid.
        number: From 0 up.
    """
    east_m, north_m, *shifts_m = (number // BASE**place % BASE / 1000 for place in range(2 + DOORS))
    _, _, x1, y1 = plan.outline

    def stretched(rect: Rect) -> Rect:
        east = round(x1 + east_m, 3) if rect.x1 == x1 else rect.x1
        return rect._replace(x1=east, y1=round(y1 + north_m, 3) if rect.y1 == y1 else rect.y1)

    doors = [_moved(door, shift_m) for door, shift_m in zip(plan.doors, shifts_m, strict=False)]
    rooms = tuple(Room(room.name, stretched(room.cell)) for room in plan.rooms)
    return FloorPlan(stretched(plan.outline), rooms, (*doors, *plan.doors[DOORS:]))


def number_of(plan: FloorPlan) -> int:
    """Read back the number that a plan carries."""
    lengths = [plan.outline.x1, plan.outline.y1]
    lengths += [door.x if door.along == "x" else door.y for door in plan.doors[:DOORS]]
    return sum(round(length * 1000) % BASE * BASE**place for place, length in enumerate(lengths))


def _moved(door: Door, shift_m: float) -> Door:
    """Return a door further along its wall, with its leaf."""
    dx, dy = (shift_m, 0.0) if door.along == "x" else (0.0, shift_m)
    leaf = door.leaf
    if leaf is not None:
        leaf = Rect(*(round(value, 3) for value in (leaf.x0 + dx, leaf.y0 + dy, leaf.x1 + dx, leaf.y1 + dy)))
    return door._replace(x=round(door.x + dx, 3), y=round(door.y + dy, 3), leaf=leaf)
