"""Furnished houses from a seed: plan, shell, furniture, scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.scenes.floor_plan import FloorPlan, Room
from proctor.scenes.numbering import numbered
from proctor.scenes.placement import Furnishing, furnish
from proctor.scenes.planner import plan_floor
from proctor.scenes.rooms import FEWEST_ROOMS, MOST_ROOMS
from proctor.scenes.scene_config import Light, SceneConfig
from proctor.scenes.shadows import shadows
from proctor.scenes.shell import build_shell

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
    """Refuse a number of rooms that no house has.

    Raises:
        UserError: It is too small or too large.
    """
    if rooms is not None and not FEWEST_ROOMS <= rooms <= MOST_ROOMS:
        raise UserError(f"expected {FEWEST_ROOMS} to {MOST_ROOMS} rooms, found {rooms}")


def generate_house(seed: int, rooms: int | None = None) -> House:
    """Make the house of a seed: always the same for the same seed.

    Args:
        seed: From 0 up. No two seeds up to `numbering.LARGEST_NUMBER` give the same house; larger ones, such
            as those of 128 bits that nobody can guess, could do so by chance only.
        rooms: How many rooms, halls included; drawn from the seed if not given.

    Raises:
        UserError: The seed is below 0, or no house has that many rooms.
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
