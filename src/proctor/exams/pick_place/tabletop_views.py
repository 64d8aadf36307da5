"""A tabletop from above and from the side, as flat shapes: for the page and for pictures alike."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from proctor.core.errors import ProctorError
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode, SceneItem
from proctor.exams.results import PickPlaceRecord
from proctor.scenes.meshes import Surface
from proctor.scenes.thing import Thing
from proctor.scenes.things import make_thing

APART_M = 0.05
"""Where the target is nearer than this, it does not say from which side to look."""
GREY = (0.72, 0.72, 0.72)


class Side(NamedTuple):
    """From which side one looks: what goes to the right in the side view."""

    origin_xy: tuple[float, float]
    """Where the distance is 0."""
    along_xy: tuple[float, float]
    """A unit vector."""
    label: str

    def flat(self, points: Array) -> Array:
        """Return distance and height of points, (N, 2)."""
        distances = (points[:, :2] - np.array(self.origin_xy)) @ np.array(self.along_xy)
        return np.stack([distances, points[:, 2]], axis=1)


class Shape(NamedTuple):
    """A thing, or a part of one, as a convex outline in both views."""

    name: str
    is_furniture: bool
    top: Array  # (N, 2): x, y
    side: Array  # (M, 2): distance, height
    rgb: tuple[float, float, float]
    high_z: float


def side_of(record: PickPlaceRecord) -> Side:
    """Return the side from which carrying is seen best: the object goes from the left to the right.

    Where there is no way to go, the robot is at the left and the object at the right.
    """
    start = np.array(record.object_path[0][:2])
    if record.target is not None:
        way = np.array(record.target[:2]) - start
        if math.hypot(*way) > APART_M:
            return _side(start, way, "distance from the object's start towards the target")
    base = np.array(record.base_path[0][:2])
    return _side(base, start - base, "distance from the robot's start towards the object")


def shapes_of(episode: PickAndPlaceEpisode, side: Side) -> tuple[list[Shape], list[str]]:
    """Return the outlines of all that stands still, lower ones first, and what could not be drawn.

    What is to be picked up is left out: it moves.
    """
    shapes: list[Shape] = []
    problems: list[str] = []
    folder = Path(episode.assets_path) if episode.assets_path else None
    target = episode.task_goal.target_object
    for item in episode.scene_objects:
        if target is not None and item.name == target.name:
            continue
        try:
            thing = make_thing(item, folder)
        except (ValueError, ProctorError) as error:
            problems.append(f"No outline of '{item.name}': {error}")
            continue
        shapes += _shapes(item, thing, side)
    return sorted(shapes, key=lambda shape: shape.high_z), problems


def _side(origin: Array, way: Array, label: str) -> Side:
    length = math.hypot(*way)
    along = way / length if length > 1e-6 else np.array([1.0, 0.0])
    return Side((float(origin[0]), float(origin[1])), (float(along[0]), float(along[1])), label)


def _shapes(item: SceneItem, thing: Thing, side: Side) -> list[Shape]:
    """Return furniture part by part, since one sees between a table's legs, and small things as one."""
    bodies = [solid.points for solid in thing.solids] if thing.is_furniture else [thing.points]
    turn = Rotation.from_quat(item.rotation)
    rgb = max(thing.surfaces, key=_area_m2).rgba[:3] if thing.surfaces else GREY
    found = []
    for body in bodies:
        points = turn.apply(body) + np.array(item.position)
        found.append(
            Shape(
                name=item.name,
                is_furniture=thing.is_furniture,
                top=_hull(points[:, :2]),
                side=_hull(side.flat(points)),
                rgb=rgb,
                high_z=float(points[:, 2].max()),
            )
        )
    return found


def _area_m2(surface: Surface) -> float:
    corners = surface.vertices[surface.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float(np.linalg.norm(normals, axis=1).sum() / 2)


def _hull(points: Array) -> Array:
    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except QhullError:  # seen edge-on
        return np.stack([points.min(axis=0), points.max(axis=0)])
