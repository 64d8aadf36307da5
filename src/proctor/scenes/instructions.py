"""What to tell somebody who should walk through a house: rooms in order, and a landmark at the end."""

from __future__ import annotations

from itertools import groupby

from proctor.core.types import Array
from proctor.scenes.floor_plan import FloorPlan
from proctor.scenes.houses import House
from proctor.scenes.placement import Furnishing

NEAR_M = 1.5
NEXT_TO_M = 0.8


def write_instruction(house: House, path_xy: Array) -> str | None:
    """Describe a way in English, only by what is true and unmistakable.

    Args:
        house: The house.
        path_xy: The way as points (N, 2), near enough to each other that none skips a room.

    Returns:
        A sentence, or None where no landmark tells the goal apart.
    """
    goal_x, goal_y = (float(value) for value in path_xy[-1])
    landmark = landmark_at(house, goal_x, goal_y)
    if landmark is None:
        return None
    near = "next to" if landmark.footprint.distance_m(goal_x, goal_y) <= NEXT_TO_M else "near"
    stop = f"stop {near} the {landmark.object.category}."
    first, *others = rooms_along(house.plan, path_xy)
    if not others:
        return f"Stay in the {first} and {stop}"
    *between, last = others
    through = f"through {_listed(between)} " if between else ""
    return f"Leave the {first}, go {through}into the {last} and {stop}"


def landmark_at(house: House, x: float, y: float) -> Furnishing | None:
    """Return what one would name to describe a point: near it, and the only one of its kind in the room."""
    room = house.plan.room_at(x, y)
    items = sorted(house.furniture, key=lambda item: item.footprint.distance_m(x, y))
    for item in items:
        kind = [other for other in items if other.object.category == item.object.category]
        in_room = [other for other in kind if room is not None and other.object.room == room.name]
        # The first of its kind is the nearest in the house: another one may be as close behind a wall.
        if (
            item.landmark
            and in_room == [item]
            and kind[0] is item
            and item.footprint.distance_m(x, y) <= NEAR_M
        ):
            return item
    return None


def rooms_along(plan: FloorPlan, path_xy: Array) -> list[str]:
    """Return the rooms that a way crosses, in order."""
    rooms = [plan.room_at(float(x), float(y)) for x, y in path_xy]
    return [name for name, _ in groupby(room.name for room in rooms if room is not None)]


def _listed(rooms: list[str]) -> str:
    *first, last = [f"the {room}" for room in rooms]
    return f"{', '.join(first)} and {last}" if first else last
