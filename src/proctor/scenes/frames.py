"""Where the parts and meshes of a scene stand, for all who draw, drive around or speak of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from proctor.core.geometry import quaternion_of_euler_deg, rotation_matrix
from proctor.core.types import Array, Vector3
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


def frame_of(item: SceneObject) -> Frame:
    """Return an object's frame in the world."""
    return Frame(item.scale.array(), rotation_of(item.rotate), item.translate.array())


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
