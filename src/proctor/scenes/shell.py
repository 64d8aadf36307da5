"""The shell of a house: floors, walls with door openings, door frames and the ceiling.

Every room has its own half of the walls around it, so that each can have its own colour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proctor.core.types import Vector3
from proctor.scenes.colors import PALETTE, STEEL, darker
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
from proctor.scenes.shapes import Triple, box, trim

FLOOR_TOP_M = 0.002
"""A little above the world's plane, so that the renderer does not mix the two."""
FRAME_COLORS: tuple[Triple, ...] = (PALETTE["white"], (0.36, 0.23, 0.14), PALETTE["beige"])
SKIRTING_COLORS: tuple[Triple, ...] = (PALETTE["white"], (0.36, 0.23, 0.14))
SKIRTING_M = 0.08
WALL_COLORS: tuple[Triple, ...] = (
    (0.94, 0.91, 0.84),
    (0.78, 0.87, 0.80),
    (0.76, 0.84, 0.93),
    (0.95, 0.84, 0.74),
    (0.88, 0.81, 0.91),
    (0.96, 0.91, 0.68),
    (0.86, 0.78, 0.70),
    (0.91, 0.92, 0.93),
    (0.95, 0.80, 0.82),
    (0.72, 0.88, 0.88),
)
"""One for each room of the largest house."""


class Material(NamedTuple):
    """What a surface is made of."""

    texture: Texture | None
    color: Triple


OAK, WALNUT, PINE = (0.68, 0.48, 0.30), (0.45, 0.29, 0.18), (0.80, 0.64, 0.44)
_FLOORS: dict[str, tuple[tuple[Texture, Triple], ...]] = {
    "hall": (("tiles", (0.72, 0.62, 0.52)), ("marble", (0.80, 0.76, 0.70)), ("parquet", OAK)),
    "corridor": (("tiles", (0.70, 0.60, 0.50)), ("planks", PINE), ("carpet", (0.6, 0.3, 0.28))),
    "living room": (("planks", OAK), ("planks", WALNUT), ("parquet", OAK)),
    "dining room": (("parquet", WALNUT), ("planks", PINE), ("marble", (0.80, 0.77, 0.72))),
    "kitchen": (("checks", (0.86, 0.84, 0.80)), ("tiles", (0.82, 0.80, 0.76)), ("tiles", (0.70, 0.42, 0.32))),
    "bathroom": (
        ("tiles", (0.62, 0.74, 0.80)),
        ("checks", (0.85, 0.88, 0.9)),
        ("mosaic", (0.55, 0.75, 0.72)),
    ),
    "bedroom": (("carpet", (0.62, 0.58, 0.66)), ("planks", PINE), ("carpet", (0.55, 0.62, 0.72))),
    "guest room": (("carpet", (0.56, 0.64, 0.56)), ("planks", OAK), ("carpet", (0.72, 0.64, 0.54))),
    "nursery": (
        ("planks", (0.90, 0.78, 0.62)),
        ("carpet", (0.72, 0.82, 0.90)),
        ("carpet", (0.88, 0.74, 0.78)),
    ),
    "study": (("planks", WALNUT), ("carpet", (0.40, 0.46, 0.42))),
    "library": (("parquet", WALNUT), ("carpet", (0.52, 0.22, 0.20))),
    "gym": (("carpet", (0.34, 0.36, 0.38)), ("planks", PINE)),
    "laundry room": (("mosaic", (0.78, 0.82, 0.84)), ("tiles", (0.66, 0.70, 0.74))),
    "storage room": (("plaster", (0.58, 0.57, 0.55)), ("planks", (0.55, 0.45, 0.38))),
    "pantry": (("tiles", (0.72, 0.48, 0.36)), ("tiles", (0.74, 0.72, 0.66))),
}
FLOORS = {room: tuple(Material(*floor) for floor in floors) for room, floors in _FLOORS.items()}
WALLPAPERS: dict[str, tuple[Texture, ...]] = {
    "living room": ("plaster", "plaster", "stripes", "ornament"),
    "dining room": ("plaster", "stripes", "ornament"),
    "bedroom": ("plaster", "stripes", "ornament"),
    "guest room": ("plaster", "stripes", "ornament"),
    "nursery": ("ornament", "stripes"),
    "library": ("plaster", "stripes"),
    "storage room": ("brick", "plaster"),
    "gym": ("brick", "plaster"),
    "bathroom": ("tiles", "mosaic"),
    "laundry room": ("tiles", "plaster"),
}
"""Where walls may be other than plaster."""
ACCENTED = frozenset({"living room", "dining room", "bedroom", "nursery", "study", "library", "guest room"})


def build_shell(plan: FloorPlan, rng: np.random.Generator) -> list[SceneObject]:
    """Return floors, walls, skirting boards, doors and the ceiling."""
    colors = rng.permutation(len(WALL_COLORS))
    skirting = SKIRTING_COLORS[rng.integers(len(SKIRTING_COLORS))]
    frame = FRAME_COLORS[rng.integers(len(FRAME_COLORS))]
    objects = []
    for room, color in zip(plan.rooms, colors, strict=False):
        floors, papers = FLOORS[room.name], WALLPAPERS.get(room.name, ("plaster",))
        floor, texture = floors[rng.integers(len(floors))], papers[rng.integers(len(papers))]
        accent = int(rng.integers(4)) if room.name in ACCENTED and rng.random() < 0.6 else None
        objects.append(_floor(room, floor))
        objects.append(_walls(room, plan, Material(texture, WALL_COLORS[color]), accent, skirting))
    objects += [_door(door, frame) for door in plan.doors]
    objects.append(_ceiling(plan))
    return objects


def _floor(room: Room, material: Material) -> SceneObject:
    size = (room.cell.width_m, room.cell.depth_m, FLOOR_TOP_M)
    part = trim(size, (*room.cell.centre, 0.0), material.color, material.texture)
    return SceneObject(name=f"{room.name} floor", category="floor", room=room.name, parts=[part])


def _ceiling(plan: FloorPlan) -> SceneObject:
    size = (plan.outline.width_m, plan.outline.depth_m, 0.05)
    part = trim(size, (*plan.outline.centre, WALL_HEIGHT_M), (0.97, 0.97, 0.96))
    return SceneObject(name="ceiling", category="ceiling", parts=[part])


def _walls(
    room: Room, plan: FloorPlan, material: Material, accent: int | None, skirting: Triple
) -> SceneObject:
    """Return a room's walls, one of them in a darker colour if an accent is wanted."""
    parts = []
    for index, side in enumerate(sides(room.cell)):
        doors = [door for door in plan.doors if room.name in door.rooms and _is_in(door, side)]
        color = darker(material.color, 0.32) if index == accent else material.color
        parts += _wall(side, doors, material._replace(color=color), outer=plan.is_outer(side))
        if material.texture not in ("tiles", "mosaic"):
            parts += _skirting(side, doors, skirting)
    return SceneObject(name=f"{room.name} walls", category="wall", room=room.name, parts=parts)


def _is_in(door: Door, side: Side) -> bool:
    across, along = (door.y, door.x) if side.along == "x" else (door.x, door.y)
    return door.along == side.along and across == side.at and side.start < along < side.end


def _openings(side: Side, doors: list[Door]) -> list[tuple[float, float]]:
    """Return where the wall is interrupted, frames included, from its start to its end."""
    found = []
    for door in doors:
        middle = door.x if side.along == "x" else door.y
        half_m = door.width_m / 2 + DOOR_FRAME_M
        found.append((middle - half_m, middle + half_m))
    return sorted(found)


def _wall(side: Side, doors: list[Door], material: Material, *, outer: bool) -> list[Part]:
    """Return one side's wall: solid between the doors, and a lintel over each door."""
    openings = _openings(side, doors)
    # Outer walls also cover the corners, which nobody else would.
    reach_m = WALL_THICKNESS_M / 2 if outer else 0.0
    edges = [side.start - reach_m, *(edge for pair in openings for edge in pair), side.end + reach_m]
    solid = [(start, end, 0.0) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    # A little too wide: faces that only meet leave cracks in the picture.
    lintels = [(start - 0.02, end + 0.02, DOOR_HEIGHT_M + DOOR_FRAME_M) for start, end in openings]
    thickness_m = WALL_THICKNESS_M if outer else WALL_THICKNESS_M / 2
    across = side.at if outer else side.at + _inward(side) * thickness_m / 2
    parts = []
    for start, end, bottom in solid + lintels:
        size, at = _along(side, start, end, across, thickness_m)
        parts.append(box((*size, WALL_HEIGHT_M - bottom), (*at, bottom), material.color, material.texture))
    return parts


def _skirting(side: Side, doors: list[Door], color: Triple) -> list[Part]:
    inset_m = WALL_THICKNESS_M / 2
    edges = [
        side.start + inset_m,
        *(edge for pair in _openings(side, doors) for edge in pair),
        side.end - inset_m,
    ]
    across = side.at + _inward(side) * (inset_m + 0.006)
    parts = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        size, at = _along(side, start, end, across, 0.012)
        parts.append(trim((*size, SKIRTING_M), (*at, FLOOR_TOP_M), color))
    return parts


def _inward(side: Side) -> int:
    return 1 if side.inward_deg in (0, 90) else -1


def _along(
    side: Side, start: float, end: float, across: float, thickness_m: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return size and place on the floor of something that runs along a side."""
    middle, length_m = (start + end) / 2, end - start
    if side.along == "x":
        return (length_m, thickness_m), (middle, across)
    return (thickness_m, length_m), (across, middle)


def _door(door: Door, frame: Triple) -> SceneObject:
    """Return a door's frame and leaf, in a frame whose x leads through the door."""
    depth_m = WALL_THICKNESS_M + (0.01 if door.is_archway else 0.04)
    offset_m = (door.width_m + DOOR_FRAME_M) / 2
    lintel_m = door.width_m + 2 * DOOR_FRAME_M
    parts = [
        *(
            box((depth_m, DOOR_FRAME_M, DOOR_HEIGHT_M), (0.0, hand * offset_m, 0.0), frame, "wood")
            for hand in (-1, 1)
        ),
        trim((depth_m, lintel_m, DOOR_FRAME_M), (0.0, 0.0, DOOR_HEIGHT_M), frame, "wood"),
    ]
    turned = door.along == "x"
    if door.leaf is not None:
        x, y = (value - origin for value, origin in zip(door.leaf.centre, (door.x, door.y), strict=True))
        parts += _leaf(door, (y, -x) if turned else (x, y))
    return SceneObject(
        name=f"door {door.rooms[0]} - {door.rooms[1]}",
        category="door",
        color=door.color,
        room=door.rooms[0],
        translate=Vector3(door.x, door.y, 0.0),
        rotate=Vector3(0.0, 0.0, 90.0 if turned else 0.0),
        parts=parts,
    )


def _leaf(door: Door, at: tuple[float, float]) -> list[Part]:
    """Return an open leaf with panels and handles, its middle at this place in the door's frame."""
    (x, y), color = at, PALETTE[door.color]
    width_m = door.width_m - 0.02
    # Hinged at the door, it leans from the wall towards its tip.
    lean = 5.0 * (1 if x * y < 0 else -1)
    into = 1 if x > 0 else -1
    turn = (0.0, 0.0, lean)
    tip = width_m / 2 - 0.08
    c, s = np.cos(np.radians(lean)), np.sin(np.radians(lean))
    hand = 1 if y > 0 else -1
    knob_x, knob_y = x - s * hand * tip, y + c * hand * tip
    parts = [box((0.04, width_m, DOOR_HEIGHT_M - 0.02), (x, y, 0.01), color, "wood", turn=turn)]
    parts += [
        trim((0.05, width_m - 0.3, 0.7), (x, y, z), darker(color, 0.12), "wood", turn=turn)
        for z in (0.2, 1.15)
    ]
    parts.append(trim((0.06, 0.12, 0.03), (knob_x + into * 0.03, knob_y, 1.0), STEEL.rgb, turn=turn))
    return parts
