"""Furnished houses from a seed: plan, shell, furniture, scene."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.scenes.floor_plan import FEWEST_ROOMS, MOST_ROOMS, Door, FloorPlan, Rect, Room
from proctor.scenes.floor_plan_generator import plan_floor
from proctor.scenes.placement import RUG_HEIGHT_M, Furnishing, furnish
from proctor.scenes.scene_config import Light, SceneConfig, SceneObject
from proctor.scenes.shapes import trim
from proctor.scenes.shell import build_shell

MARGIN_M = 0.05
BASE = 50
DOORS = 3
"""Even the smallest house has as many."""
LARGEST_NUMBER = BASE ** (2 + DOORS) - 1
# Lights that shine through walls reach all rooms alike, at the price of two.
LIGHTS = (
    Light(
        name="sun",
        type="directional",
        direction=Vector3(0.45, 0.3, -0.85),
        color=(1.0, 0.97, 0.92),
        intensity=0.3,
    ),
    # What floors throw back: without it, ceilings are black.
    Light(
        name="bounce",
        type="directional",
        direction=Vector3(0.1, 0.2, 1.0),
        color=(1.0, 0.98, 0.95),
        intensity=0.35,
    ),
)


def shadows(furniture: Iterable[Furnishing]) -> list[SceneObject]:
    """Return one object for each room with the shadows of all that stands in it."""
    objects = []
    for room, items in groupby(furniture, key=lambda item: item.object.room):
        parts = []
        for item in items:
            rect, bottom_m, top_m = item.volume
            if bottom_m > 0.0 or top_m < max(0.3, RUG_HEIGHT_M):  # nobody would miss its shadow
                continue
            size = (rect.width_m + 2 * MARGIN_M, rect.depth_m + 2 * MARGIN_M, 0.001)
            parts.append(trim(size, (*rect.centre, 0.02), (0.0, 0.0, 0.0, 0.24)))  # above rugs
        if parts:
            name = f"{room} shadows"
            objects.append(
                SceneObject(name=name, category="shadow", room=room, parts=parts, rigid_body_type="none")
            )
    return objects


def numbered(plan: FloorPlan, number: int) -> FloorPlan:
    """Return a plan that carries a number from 0 up, of which digits beyond the fifth are lost."""
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


class House(NamedTuple):
    """A furnished house and the knowledge of how it was made."""

    plan: FloorPlan
    furniture: tuple[Furnishing, ...]
    scene: SceneConfig

    @property
    def rooms(self) -> tuple[Room, ...]:
        """All rooms, the hall first."""
        return self.plan.rooms


def check_rooms(rooms: int | None) -> None:
    """Raise a UserError for a number of rooms that no house has."""
    if rooms is not None and not FEWEST_ROOMS <= rooms <= MOST_ROOMS:
        raise UserError(f"expected {FEWEST_ROOMS} to {MOST_ROOMS} rooms, found {rooms}")


def generate_house(seed: int, rooms: int | None = None) -> House:
    """Make the house of a seed: always the same for the same seed. Halls count as rooms.

    No two seeds from 0 to `LARGEST_NUMBER` give the same house; larger ones, such as those of 128 bits that
    nobody can guess, could do so by chance only.
    """
    if seed < 0:
        raise UserError(f"expected a seed from 0 up, found {seed}")
    check_rooms(rooms)
    # One stream each, so that other furniture would not move the walls.
    plan_rng, shell_rng, furniture_rng = np.random.default_rng(seed).spawn(3)
    plan = numbered(plan_floor(plan_rng, rooms=rooms), seed)
    furniture = tuple(item for room in plan.rooms for item in furnish(room, plan, furniture_rng))
    objects = [*build_shell(plan, shell_rng), *(item.object for item in furniture), *shadows(furniture)]
    # With a given number of rooms it is another house than the seed's own, even if that has as many.
    name = f"house_{seed}" if rooms is None else f"house_{seed}_of_{rooms}"
    scene = SceneConfig(scene_name=name, objects=objects, lights=list(LIGHTS))
    return House(plan, furniture, scene)
