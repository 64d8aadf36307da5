"""The shell of a house: floors, walls with door openings, door frames and the ceiling.

Every room has its own half of the walls around it, so that each can have its own colour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.types import Vector3
from proctor.scenes.floor_plan import (
    DOOR_FRAME_M,
    DOOR_HEIGHT_M,
    WALL_HEIGHT_M,
    WALL_THICKNESS_M,
    Door,
    FloorPlan,
    Room,
    Side,
    sides,
)
from proctor.scenes.scene_config import Part, SceneObject, Texture
from proctor.scenes.shapes import Triple, box

FLOOR_TOP_M = 0.002
"""A little above the world's plane, so that the renderer does not mix the two."""
DOOR_FRAME_COLOR: Triple = (0.36, 0.23, 0.14)
WALL_COLORS: tuple[Triple, ...] = (
    (0.93, 0.90, 0.83),
    (0.80, 0.86, 0.80),
    (0.78, 0.84, 0.91),
    (0.93, 0.85, 0.76),
    (0.88, 0.82, 0.89),
    (0.94, 0.90, 0.70),
    (0.86, 0.78, 0.72),
    (0.90, 0.91, 0.92),
)


class Surface(NamedTuple):
    """What a floor or a wall is made of."""

    color: Triple
    texture: Texture


BATHROOM_WALLS = Surface((0.82, 0.91, 0.94), "tiles")
FLOORS: dict[str, Surface] = {
    "hall": Surface((0.72, 0.62, 0.52), "tiles"),
    "living room": Surface((0.66, 0.45, 0.28), "planks"),
    "dining room": Surface((0.55, 0.36, 0.22), "planks"),
    "kitchen": Surface((0.82, 0.80, 0.76), "tiles"),
    "bathroom": Surface((0.62, 0.74, 0.80), "tiles"),
    "bedroom": Surface((0.62, 0.58, 0.66), "carpet"),
    "guest room": Surface((0.56, 0.64, 0.56), "carpet"),
    "study": Surface((0.48, 0.31, 0.20), "planks"),
}


def build_shell(plan: FloorPlan, rng: np.random.Generator) -> list[SceneObject]:
    """Return floors, walls, door frames and ceiling."""
    colors = rng.permutation(len(WALL_COLORS))
    objects = []
    for room, color in zip(plan.rooms, colors, strict=False):
        objects.append(_floor(room))
        surface = BATHROOM_WALLS if room.name == "bathroom" else Surface(WALL_COLORS[color], "plaster")
        objects.append(_walls(room, plan, surface))
    objects += [_door_frame(door) for door in plan.doors]
    objects.append(_ceiling(plan))
    return objects


def _floor(room: Room) -> SceneObject:
    surface = FLOORS[room.name]
    size = (room.cell.width_m, room.cell.depth_m, FLOOR_TOP_M)
    part = box(size, (*room.cell.centre, 0.0), surface.color, surface.texture, collision=False)
    return SceneObject(name=f"{room.name} floor", category="floor", room=room.name, parts=[part])


def _ceiling(plan: FloorPlan) -> SceneObject:
    size = (plan.outline.width_m, plan.outline.depth_m, 0.05)
    part = box(size, (*plan.outline.centre, WALL_HEIGHT_M), (0.96, 0.96, 0.95), collision=False)
    return SceneObject(name="ceiling", category="ceiling", parts=[part])


def _walls(room: Room, plan: FloorPlan, surface: Surface) -> SceneObject:
    parts = []
    for side in sides(room.cell):
        doors = [door for door in plan.doors if room.name in door.rooms and _is_in(door, side)]
        parts += _wall(side, doors, surface, outer=plan.is_outer(side))
    return SceneObject(name=f"{room.name} walls", category="wall", room=room.name, parts=parts)


def _is_in(door: Door, side: Side) -> bool:
    across, along = (door.y, door.x) if side.along == "x" else (door.x, door.y)
    return door.along == side.along and across == side.at and side.start < along < side.end


def _wall(side: Side, doors: list[Door], surface: Surface, *, outer: bool) -> list[Part]:
    """Return one side's wall: solid between the doors, and a lintel over each door."""
    openings = []
    for door in doors:
        middle = door.x if side.along == "x" else door.y
        half_m = door.width_m / 2 + DOOR_FRAME_M
        openings.append((middle - half_m, middle + half_m))
    # Outer walls also cover the corners, which nobody else would.
    reach_m = WALL_THICKNESS_M / 2 if outer else 0.0
    edges = [side.start - reach_m, *np.ravel(sorted(openings)).tolist(), side.end + reach_m]
    solid = [(start, end, 0.0) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    # A little too wide: faces that only meet leave cracks in the picture.
    lintels = [(start - 0.02, end + 0.02, DOOR_HEIGHT_M + DOOR_FRAME_M) for start, end in openings]
    thickness_m = WALL_THICKNESS_M if outer else WALL_THICKNESS_M / 2
    inward = 1 if side.inward_deg in (0, 90) else -1
    across = side.at if outer else side.at + inward * thickness_m / 2
    parts = []
    for start, end, bottom in solid + lintels:
        size = (end - start, thickness_m, WALL_HEIGHT_M - bottom)
        at = ((start + end) / 2, across, bottom)
        if side.along == "y":
            size, at = (size[1], size[0], size[2]), (at[1], at[0], at[2])
        parts.append(box(size, at, surface.color, surface.texture))
    return parts


def _door_frame(door: Door) -> SceneObject:
    depth_m = WALL_THICKNESS_M + 0.04
    offset_m = (door.width_m + DOOR_FRAME_M) / 2
    lintel_m = door.width_m + 2 * DOOR_FRAME_M
    parts = [
        box((depth_m, DOOR_FRAME_M, DOOR_HEIGHT_M), (0.0, -offset_m, 0.0), DOOR_FRAME_COLOR, "wood"),
        box((depth_m, DOOR_FRAME_M, DOOR_HEIGHT_M), (0.0, offset_m, 0.0), DOOR_FRAME_COLOR, "wood"),
        box((depth_m, lintel_m, DOOR_FRAME_M), (0.0, 0.0, DOOR_HEIGHT_M), DOOR_FRAME_COLOR, "wood"),
    ]
    return SceneObject(
        name=f"door {door.rooms[0]} - {door.rooms[1]}",
        category="door",
        room=door.rooms[0],
        translate=Vector3(door.x, door.y, 0.0),
        rotate=Vector3(0.0, 0.0, 90.0 if door.along == "x" else 0.0),
        parts=parts,
    )
