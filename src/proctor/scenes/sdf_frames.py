"""Poses of SDF: where the elements of a world or a model stand, by `<pose>`, `<frame>` and `relative_to`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.types import Array
from proctor.scenes.world_import import pose_matrix
from proctor.scenes.xml_file import XmlElement


class FrameScope:
    """The names that a pose can be relative to inside of one world or model: its children of these tags."""

    def __init__(
        self,
        owner: XmlElement,
        tags: Sequence[str],
        *,
        name_of: Callable[[XmlElement], str] = lambda element: element.name,
    ) -> None:
        self._named = {name_of(child): child for child in owner.all(*tags)}

    def frame_of(self, element: XmlElement) -> str | None:
        """Return the name of the frame that the pose of an element is relative to, if it names one."""
        pose = element.find("pose")
        attributes = {} if pose is None else pose.attributes
        named = (
            attributes.get("relative_to") or attributes.get("frame") or element.attributes.get("attached_to")
        )
        return named or None

    def pose_of(self, element: XmlElement, waiting: tuple[str, ...] = ()) -> Array:
        """Return the (4, 4) pose of an element in the frame of the world, model or link that it stands in."""
        pose, frame = element.find("pose"), self.frame_of(element)
        own = np.eye(4) if pose is None else _matrix(pose)
        if frame is None or frame in ("world", "__model__", "__root__"):
            return own
        if frame in waiting:
            raise element.error(f"relative_to: '{frame}' depends on itself: {' -> '.join((*waiting, frame))}")
        if frame not in self._named:
            known = ", ".join(sorted(filter(None, self._named))[:10]) or "none"
            raise element.error(f"relative_to: no frame '{frame}' beside it, found {known}")
        return self.pose_of(self._named[frame], (*waiting, frame)) @ own


def _matrix(pose: XmlElement) -> Array:
    if pose.attributes.get("rotation_format") == "quat_xyzw":
        x, y, z, *quaternion = pose.numbers(7, default="0 0 0 0 0 0 1")
        if not np.linalg.norm(quaternion) > 1e-9:
            raise pose.error(f"expected a quaternion other than 0, found '{pose.text.strip()}'")
        return pose_matrix((x, y, z), Rotation.from_quat(quaternion))
    x, y, z, *angles = pose.numbers(6, default="0 0 0 0 0 0")
    degrees = pose.attributes.get("degrees", "").lower() in ("1", "true")
    return pose_matrix((x, y, z), Rotation.from_euler("xyz", angles, degrees=degrees))
