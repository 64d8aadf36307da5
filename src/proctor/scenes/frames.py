"""Where the parts and meshes of a scene stand: the one place that computes their poses in the world."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import quaternion_of_euler_deg, rotation_matrix
from proctor.core.types import Array, Vector3
from proctor.scenes.meshes import Surface
from proctor.scenes.scene_config import Part, SceneObject


class Frame(NamedTuple):
    """What turns the points of a shape of size 1, or of a mesh, into points around it."""

    size: Array  # (3,), factors
    rotation: Array  # (3, 3)
    translation: Array  # (3,)

    def points(self, own: Array) -> Array:
        """Return (..., 3) points that are given in the shape's own frame."""
        placed: Array = (own * self.size) @ self.rotation.T + self.translation
        return placed

    def surface(self, own: Surface) -> Surface:
        """Return a surface that is given in the shape's own frame."""
        normals = (own.normals / self.size) @ self.rotation.T
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        return own._replace(vertices=self.points(own.vertices), normals=normals)


def frame_of(item: SceneObject) -> Frame:
    """Return an object's frame in the world."""
    return Frame(item.scale.array(), rotation_of(item.rotate), item.translate.array())


def placed_parts(item: SceneObject, frame: Frame | None = None) -> list[tuple[Part, Frame]]:
    """Return an object's parts and their frames in the world, or where another frame of the object leads."""
    frame = frame or frame_of(item)
    return [(part, frame_of_part(part, frame)) for part in item.parts]


def frame_of_part(part: Part, item: Frame) -> Frame:
    """Return the frame of an object's part, where the object's is."""
    return Frame(
        part.size.array() * item.size,
        item.rotation @ rotation_of(part.rotate),
        item.rotation @ (part.translate.array() * item.size) + item.translation,
    )


@lru_cache(maxsize=1024)
def rotation_of(euler_deg: Vector3) -> Array:
    """Return the matrix of Euler angles, made once: a house turns its thousands of parts in four ways."""
    rotation: Array = rotation_matrix(quaternion_of_euler_deg(euler_deg))
    rotation.flags.writeable = False
    return rotation
