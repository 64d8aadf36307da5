"""What the Stretch senses, as data: the entries of an observation and what each is like."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from proctor.robots.stretch import CAMERAS, GRIPPER_OPEN_M, JOINT_NAMES

Facts: TypeAlias = Mapping[str, Any]


def _facts(**facts: Any) -> Facts:
    return MappingProxyType(facts)


def _picture(camera: str, kind: str) -> Facts:
    config = CAMERAS[camera]
    return _facts(width=config.width, height=config.height, encoding="base64", format=kind)


class StretchSensorSuite(msgspec.Struct, frozen=True, kw_only=True):
    """The robot's sensors as the design documents describe them. Nothing in it can be changed.

    `encoding` is how a picture travels in JSON; in process and in msgpack it is an array. Joints have ten
    numbers, one by name; the seven of a short action are told in `proctor.robots.stretch`.
    """

    rgb_head: Facts = _picture("head", "RGB")
    rgb_wrist: Facts = _picture("wrist", "RGB")
    depth_head: Facts = _picture("head", "depth")
    """Millimetres in 16 bits, 0 where nothing came back."""
    joint_positions: Facts = _facts(dim=len(JOINT_NAMES), names=JOINT_NAMES)
    """`qpos` in observations."""
    joint_velocities: Facts = _facts(dim=len(JOINT_NAMES))
    """`qvel` in observations."""
    gripper_state: Facts = _facts(dim=1, range=(0.0, GRIPPER_OPEN_M))
    """Metres; a number, not an array."""
    ee_pose: Facts = _facts(dim=7, frame="base_link")
    """x, y, z and a quaternion w, x, y, z."""
    instruction: Facts = _facts(type="text", example="Pick up the red cup and place it on the table")
    object_pose: Facts = _facts(position=_facts(dim=3), orientation=_facts(dim=4), optional=True)
    """For debugging; observations have the positions as `object_info` if the env is asked for it."""


SENSORS = StretchSensorSuite()
