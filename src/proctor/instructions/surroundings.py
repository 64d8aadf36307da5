"""Rooms, doors and landmarks of a scene, found in the scene file alone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from proctor.core.types import Array
from proctor.instructions.clauses import Passage
from proctor.scenes.frames import Frame, placed_parts
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

FLOOR, DOOR = "floor", "door"
ARCHWAY_M = 1.35
"""An opening wider than this is not called a door."""
POST_M, DOOR_HEIGHT_M = 0.15, 1.5
OPAQUE = 0.9
"""What is more transparent than this hides nothing."""


class RoomFloor(NamedTuple):
    """A room by its floor: rectangles that reach to the middle of the walls."""

    name: str
    low: Array  # (N, 2)
    high: Array  # (N, 2)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Tell for points (N, 2) whether they lie in the room."""
        inside = np.all((points[:, None] >= self.low) & (points[:, None] <= self.high), axis=2)
        return np.asarray(np.any(inside, axis=1))


class DoorFrame(NamedTuple):
    """A door frame, centred at (x, y)."""

    x: float
    y: float
    yaw: float
    """Direction through the door, one of two."""
    width_m: float

    @property
    def passage(self) -> Passage:
        """What people would call it."""
        return "archway" if self.width_m > ARCHWAY_M else "door"


class VisibleSolid(NamedTuple):
    """A box, an upright cylinder or a ball in the world, as the camera sees it."""

    shape: str
    centre: Array  # (3,)
    half: Array  # (3,)
    yaw: float
    thing: int
    """Index of the landmark, or of any other object, that it belongs to."""


class Landmark(NamedTuple):
    """A thing with a name, and where it is."""

    number: int
    """Index of the object in the scene."""
    name: str
    category: str
    color: str
    room: str
    outline: Array  # (N, 2) corners of its hull on the floor, counter-clockwise
    front_yaw: float
    """Where it faces, if it has a front: furniture turns its back to -x."""

    @property
    def centre(self) -> Array:
        """The middle of its outline."""
        middle: Array = (self.outline.min(axis=0) + self.outline.max(axis=0)) / 2
        return middle

    def nearest(self, points: Array) -> Array:
        """Return the nearest point of the outline, or the point itself inside of it, for points (N, 2)."""
        start, edge = self.outline, np.roll(self.outline, -1, axis=0) - self.outline
        offset = points[:, None] - start  # (N, M, 2)
        share = np.clip((offset * edge).sum(axis=2) / np.maximum((edge**2).sum(axis=1), 1e-12), 0.0, 1.0)
        foot = start + share[..., None] * edge
        best = ((points[:, None] - foot) ** 2).sum(axis=2).argmin(axis=1)
        inside = np.all(edge[:, 0] * offset[..., 1] - edge[:, 1] * offset[..., 0] >= 0, axis=1, keepdims=True)
        found: Array = np.where(inside, points, foot[np.arange(len(points)), best])
        return found

    def distances_m(self, points: Array) -> Array:
        """Return how far points (N, 2) are from it."""
        distances: Array = np.linalg.norm(points - self.nearest(points), axis=1)
        return distances


class Surroundings(NamedTuple):
    """All that can be spoken of in a scene, and all that can hide it."""

    rooms: tuple[RoomFloor, ...]
    doors: tuple[DoorFrame, ...]
    landmarks: tuple[Landmark, ...]
    solids: tuple[VisibleSolid, ...]
    has_meshes: bool
    """Whether there are objects whose shape only a mesh file tells."""

    @classmethod
    def of(cls, scene: SceneConfig) -> Surroundings:
        """Read a scene."""
        floors: dict[str, list[VisibleSolid]] = {}
        doors, landmarks, solids = [], [], []
        for index, item in enumerate(scene.objects):
            placed = [_placed(part, frame, index) for part, frame in placed_parts(item)]
            if item.category == FLOOR and item.room:
                floors.setdefault(item.room, []).extend(placed)
            elif item.category == DOOR:
                doors.append(_door(item))
            elif item.category and item.room and placed and item.category != "wall":
                landmarks.append(_landmark(item, index, placed))
            alphas = [part.color[3] if len(part.color) == 4 else 1.0 for part in item.parts]
            solids += [solid for solid, alpha in zip(placed, alphas, strict=True) if alpha >= OPAQUE]
        rooms = tuple(_room(name, parts) for name, parts in floors.items())
        meshes = any(not item.parts for item in scene.objects)
        return cls(rooms, tuple(doors), tuple(landmarks), tuple(solids), meshes)

    def rooms_at(self, points: Array) -> list[str]:
        """Return the name of the room at each point (N, 2); empty outside of all."""
        names = [""] * len(points)
        for room in reversed(self.rooms):
            for index in np.flatnonzero(room.contains(points)):
                names[index] = room.name
        return names


def _door(item: SceneObject) -> DoorFrame:
    """Return a door, as wide as its posts are apart."""
    posts = [part.translate.y for part in item.parts if part.size.y < POST_M and part.size.z > DOOR_HEIGHT_M]
    width_m = max(posts) - min(posts) if posts else 0.0
    return DoorFrame(item.translate.x, item.translate.y, math.radians(item.rotate.z), width_m)


def _placed(part: Part, frame: Frame, index: int) -> VisibleSolid:
    turn, half = frame.rotation, frame.size / 2
    if abs(turn[2, 2]) > 0.999:
        return VisibleSolid(part.shape, frame.translation, half, math.atan2(turn[1, 0], turn[0, 0]), index)
    # A part that leans counts as the upright box around it.
    return VisibleSolid("box", frame.translation, np.abs(turn) @ half, 0.0, index)


def _landmark(item: SceneObject, index: int, placed: list[VisibleSolid]) -> Landmark:
    corners = np.concatenate([_corners(solid) for solid in placed])
    hull = corners[ConvexHull(corners).vertices]
    front_yaw = math.radians(item.rotate.z)
    return Landmark(index, item.name, item.category, item.color, item.room, hull, front_yaw)


def _corners(solid: VisibleSolid) -> Array:
    """Return the four corners of a solid's box on the floor, counter-clockwise."""
    cos, sin = math.cos(solid.yaw), math.sin(solid.yaw)
    x, y = solid.half[:2]
    local = np.array([(x, y), (-x, y), (-x, -y), (x, -y)])
    corners: Array = local @ np.array([(cos, sin), (-sin, cos)]) + solid.centre[:2]
    return corners


def _room(name: str, parts: list[VisibleSolid]) -> RoomFloor:
    corners = np.array([_corners(part) for part in parts])
    return RoomFloor(name, corners.min(axis=1), corners.max(axis=1))
