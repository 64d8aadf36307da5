"""Poses and frames of SDF: what a pose is relative to, also inside of nested models, and placement frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.types import Array
from proctor.scenes.world_import import pose_matrix
from proctor.scenes.xml_file import XmlElement

MAX_CHAIN = 100  # frames that depend on each other


class FrameScope:
    """A world or a model, and the names inside of it that a pose can be relative to."""

    def __init__(
        self, owner: XmlElement, include: XmlElement | None = None, models: Sequence[FrameScope] = ()
    ) -> None:
        include = owner if include is None else include
        self.owner, self.models = owner, models
        self.name = include.text_of("name") or owner.name
        self.is_static = include.is_set("static") or owner.is_set("static")
        self.placed = owner if include.find("pose") is None else include  # has the pose
        self.placement_frame = include.text_of("placement_frame") or owner.attributes.get("placement_frame")
        children = owner.all("link", "frame", "joint", "light")
        self._named: dict[str, XmlElement | FrameScope] = {child.name: child for child in children}
        self._named |= {model.name: model for model in models}
        self._poses: dict[str, Array] = {}

    def pose_of(
        self, child: XmlElement | FrameScope, waiting: tuple[str, ...] = (), *, link: XmlElement | None = None
    ) -> Array:
        """Return the (4, 4) pose of a child in this world or model. What is part of a link is given with it.

        `waiting` are the frames that this pose is needed for.
        """
        if isinstance(child, FrameScope):
            pose = self.pose_of(child.placed, waiting)
            inner = child.frame(child.placement_frame or "", child.placed, "placement_frame", waiting)
            return np.asarray(pose @ np.linalg.inv(inner))
        attribute, frame = _reference(child)
        if link is not None and not frame:
            base = self.pose_of(link, waiting)
        else:
            base = self.frame(frame, child, attribute, waiting)
        return base @ read_pose(child.find("pose"))

    def frame(self, frame: str, asker: XmlElement, attribute: str, waiting: tuple[str, ...] = ()) -> Array:
        """Return the pose of a frame such as `link` or `model::link`, which an attribute of `asker` names."""
        if frame in ("", "world", "__model__", "__root__"):
            return np.eye(4)
        if frame in self._poses:
            return self._poses[frame]
        name, _, inner = (frame, "", "") if frame in self._named else frame.partition("::")
        child = self._named.get(name)
        if child is None or (inner and not isinstance(child, FrameScope)):
            known = ", ".join(sorted(filter(None, self._named))[:10]) or "none"
            raise asker.error(f"{attribute}: no frame '{frame}' in '{self.name}', found {known}")
        key = f"{id(self)}::{name}"
        if key in waiting:
            names = [each.partition("::")[2] for each in (*waiting, key)]
            raise asker.error(f"{attribute}: '{frame}' depends on itself: {' -> '.join(names)}")
        if len(waiting) == MAX_CHAIN:
            raise asker.error(f"{attribute}: expected at most {MAX_CHAIN} frames that depend on each other")
        pose = self.pose_of(child, (*waiting, key))
        if isinstance(child, FrameScope):
            pose = pose @ child.frame(inner, asker, attribute, (*waiting, key))
        self._poses[frame] = pose
        return pose


def _reference(element: XmlElement) -> tuple[str, str]:
    """Return what names the frame that the pose of an element is relative to, and that frame or nothing."""
    pose = element.find("pose")
    attributes = {} if pose is None else pose.attributes
    for attribute in ("relative_to", "frame"):
        if attributes.get(attribute):
            return attribute, attributes[attribute]
    if element.tag == "joint":
        return "child", element.text_of("child")
    return "attached_to", element.attributes.get("attached_to", "")


def read_pose(pose: XmlElement | None) -> Array:
    """Return the numbers of a <pose> as a matrix (4, 4)."""
    if pose is None:
        return np.eye(4)
    if pose.attributes.get("rotation_format") == "quat_xyzw":
        x, y, z, *quaternion = pose.numbers(7, default="0 0 0 0 0 0 1")
        if not np.linalg.norm(quaternion) > 1e-9:
            raise pose.error(f"expected a quaternion other than 0, found '{pose.text.strip()}'")
        return pose_matrix((x, y, z), Rotation.from_quat(quaternion).as_matrix())
    x, y, z, *angles = pose.numbers(6, default="0 0 0 0 0 0")
    degrees = pose.attributes.get("degrees", "").lower() in ("1", "true")
    return pose_matrix((x, y, z), Rotation.from_euler("xyz", angles, degrees=degrees).as_matrix())
