"""Furnished houses from a seed: plan, shell, furniture, scene.

Furniture goes along walls, into corners and into the middle, and never into anyone's path.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.scenes.floor_plan import (
    DOOR_HEIGHT_M,
    FEWEST_ROOMS,
    MOST_ROOMS,
    Door,
    FloorPlan,
    Rect,
    Room,
    Side,
    sides,
)
from proctor.scenes.floor_plan_generator import plan_floor
from proctor.scenes.interiors import CEILING_LAMP, INTERIORS, Group, Rule, Slot
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


def _moved(door: Door, shift_m: float) -> Door:
    """Return a door further along its wall, with its leaf."""
    dx, dy = (shift_m, 0.0) if door.along == "x" else (0.0, shift_m)
    leaf = door.leaf
    if leaf is not None:
        leaf = Rect(*(round(value, 3) for value in (leaf.x0 + dx, leaf.y0 + dy, leaf.x1 + dx, leaf.y1 + dy)))
    return door._replace(x=round(door.x + dx, 3), y=round(door.y + dy, 3), leaf=leaf)


TRIES = 60
WALKER_RADIUS_M = 0.3
"""More than what routes are planned for, so that a check on a coarse grid suffices."""
WALKER_HEIGHT_M = 1.4
WALK_CELL_M = 0.1
DOOR_ZONE_M = 0.9
RUG_HEIGHT_M = 0.05


class Volume(NamedTuple):
    """A box in the room: its floor rectangle, bottom and top."""

    rect: Rect
    bottom_m: float
    top_m: float

    def overlaps(self, other: Volume) -> bool:
        """Tell whether the two share space."""
        return self.bottom_m < other.top_m and other.bottom_m < self.top_m and self.rect.overlaps(other.rect)


class Pose(NamedTuple):
    """Where a group's origin goes. The yaw is a multiple of 90."""

    x: float
    y: float
    yaw_deg: int

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return a point of the group's frame in the world, to the millimetre."""
        cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[self.yaw_deg // 90 % 4]
        return round(self.x + cos * x - sin * y, 3), round(self.y + sin * x + cos * y, 3)

    def rect(self, x0: float, y0: float, x1: float, y1: float) -> Rect:
        """Return a rectangle of the group's frame in the world."""
        (ax, ay), (bx, by) = self.point(x0, y0), self.point(x1, y1)
        return Rect(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))


class Furnishing(NamedTuple):
    """A piece in its place."""

    object: SceneObject
    volume: Volume
    landmark: bool

    @property
    def footprint(self) -> Rect:
        """The floor that it covers or hangs over."""
        return self.volume.rect


def furnish(room: Room, plan: FloorPlan, rng: np.random.Generator) -> list[Furnishing]:
    """Fill a room. What would block a door, a way or another piece wherever it is tried is left out."""
    furnisher = _Furnisher(room, plan, rng)
    for rule in (CEILING_LAMP, *INTERIORS[room.name]):
        if rng.random() < rule.chance:
            furnisher.place(rule)
    return furnisher.placed


class _Furnisher:
    """A room while it fills up."""

    def __init__(self, room: Room, plan: FloorPlan, rng: np.random.Generator) -> None:
        self.placed: list[Furnishing] = []
        self._room, self._plan, self._rng = room, plan, rng
        self._doors = [door for door in plan.doors if room.name in door.rooms]
        self._keep_free = [Volume(door.zone(DOOR_ZONE_M), 0.0, DOOR_HEIGHT_M) for door in self._doors]
        self._leaves = [Volume(door.leaf, 0.0, DOOR_HEIGHT_M) for door in plan.doors if door.leaf is not None]
        self._keep_free += self._leaves

    def place(self, rule: Rule) -> None:
        """Try some places and take the first that works."""
        if any(item.object.category == rule.unless for item in self.placed):
            return
        for attempt in range(TRIES):
            group = rule.make(self._rng)
            pose = self._pose(rule, group, attempt)
            if pose is None:
                return
            volumes = [_volume(slot, pose) for slot in group]
            front = _front(group, pose, rule.front_m)
            if self._fits(volumes, front) and self._stays_walkable(volumes):
                self._keep_free += front
                for slot, volume in zip(group, volumes, strict=True):
                    self.placed.append(self._put(slot, pose, volume))
                return

    def _pose(self, rule: Rule, group: Group, attempt: int) -> Pose | None:
        """Propose a place, the bolder the more attempts have failed."""
        floor, rng = self._room.floor, self._rng
        boldness = attempt / TRIES
        if rule.spot == "middle":
            x, y = floor.centre
            dx, dy = 0.4 * boldness * rng.uniform(-1.0, 1.0, 2)
            return _rounded(x + dx * floor.width_m, y + dy * floor.depth_m, 90 * int(rng.integers(2)))
        faced = next((item for item in self.placed if item.object.category == rule.opposite), None)
        if faced is not None and boldness < 0.5:
            return _opposite(faced, floor, rng.uniform(-boldness, boldness))
        walls = [side for side in sides(floor) if rule.spot != "outer wall" or self._plan.is_outer(side)]
        if not walls:
            return None
        wall = walls[rng.integers(len(walls))]
        half_m = max(abs(slot.y) + slot.piece.width_m / 2 for slot in group) + 0.03
        share = float(rng.integers(2)) if rule.spot == "corner" and boldness < 0.7 else rng.random()
        return _at_wall(wall, wall.start + half_m + share * (wall.end - wall.start - 2 * half_m))

    def _fits(self, volumes: list[Volume], front: list[Volume]) -> bool:
        taken = [item.volume for item in self.placed]
        return (
            all(self._room.floor.contains(volume.rect) for volume in volumes)
            and not any(volume.overlaps(other) for volume in volumes for other in (*taken, *self._keep_free))
            and not any(zone.overlaps(other) for zone in front for other in taken)
        )

    def _stays_walkable(self, volumes: list[Volume]) -> bool:
        """Tell whether a walker still gets from every door to every other, and has some room to move."""
        area = self._room.floor.inset(WALKER_RADIUS_M)
        x = np.arange(area.x0, area.x1, WALK_CELL_M)[:, None]
        y = np.arange(area.y0, area.y1, WALK_CELL_M)[None, :]
        free = np.ones((x.size, y.size), dtype=bool)
        for volume in (*volumes, *self._leaves, *(item.volume for item in self.placed)):
            if 0.0 <= volume.bottom_m < WALKER_HEIGHT_M:
                rect = volume.rect.inset(-WALKER_RADIUS_M)
                free &= ~((rect.x0 < x) & (x < rect.x1) & (rect.y0 < y) & (y < rect.y1))
        regions, _ = ndimage.label(free)
        entered = {int(regions[_cell(door, area, free.shape)]) for door in self._doors}
        if len(entered) > 1 or 0 in entered:
            return False
        walkable, all_free = int(np.count_nonzero(regions == max(entered))), int(np.count_nonzero(free))
        needed = 0.2 * self._room.floor.area_m2 / WALK_CELL_M**2  # where a walker can stand
        return walkable > max(needed, 0.9 * all_free)  # reached from the doors

    def _put(self, slot: Slot, pose: Pose, volume: Volume) -> Furnishing:
        piece, room = slot.piece, self._room.name
        earlier = sum(item.object.category == piece.category for item in self.placed)
        x, y = pose.point(slot.x, slot.y)
        item = SceneObject(
            name=f"{room} {piece.category}" + (f" {earlier + 1}" if earlier else ""),
            category=piece.category,
            color=piece.color,
            room=room,
            translate=Vector3(x, y, 0.0),
            rotate=Vector3(0.0, 0.0, float((pose.yaw_deg + slot.yaw_deg) % 360)),
            parts=piece.parts,
        )
        return Furnishing(item, volume, piece.landmark)


def _at_wall(wall: Side, along: float) -> Pose:
    x, y = (along, wall.at) if wall.along == "x" else (wall.at, along)
    return _rounded(x, y, wall.inward_deg)


def _opposite(faced: Furnishing, floor: Rect, shift_m: float) -> Pose:
    """Return the pose at the wall that a piece looks at, straight before it but for a shift."""
    yaw_deg = int(faced.object.rotate.z)
    wall = next(side for side in sides(floor) if side.inward_deg == (yaw_deg + 180) % 360)
    x, y = faced.footprint.centre
    return _at_wall(wall, (x if wall.along == "x" else y) + shift_m)


def _rounded(x: float, y: float, yaw_deg: int) -> Pose:
    return Pose(round(float(x), 2), round(float(y), 2), yaw_deg)


def _volume(slot: Slot, pose: Pose) -> Volume:
    piece = slot.piece
    depth_m, width_m = (
        (piece.depth_m, piece.width_m) if slot.yaw_deg % 180 == 0 else (piece.width_m, piece.depth_m)
    )
    rect = pose.rect(slot.x - depth_m / 2, slot.y - width_m / 2, slot.x + depth_m / 2, slot.y + width_m / 2)
    if piece.height_m < RUG_HEIGHT_M:  # as if under the floor: furniture may stand on it, other rugs may not
        return Volume(rect, -1.0, 0.0)
    return Volume(rect, piece.bottom_m, piece.height_m)


def _front(group: Group, pose: Pose, front_m: float) -> list[Volume]:
    """Return the space to keep free before a group; none if it needs none."""
    if front_m == 0.0:
        return []
    solid = [slot for slot in group if slot.piece.height_m >= RUG_HEIGHT_M]
    x = max(slot.x + slot.piece.depth_m / 2 for slot in solid)
    left = min(slot.y - slot.piece.width_m / 2 for slot in solid)
    right = max(slot.y + slot.piece.width_m / 2 for slot in solid)
    return [Volume(pose.rect(x, left, x + front_m, right), 0.0, WALKER_HEIGHT_M)]


def _cell(door: Door, area: Rect, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the grid cell in which one stands after coming through a door."""
    column = int(np.clip((door.x - area.x0) / WALK_CELL_M, 0, shape[0] - 1))
    row = int(np.clip((door.y - area.y0) / WALK_CELL_M, 0, shape[1] - 1))
    return column, row


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
