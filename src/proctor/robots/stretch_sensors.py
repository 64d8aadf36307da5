"""What the Stretch senses, as data: the entries of an observation and what each is like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from proctor.robots.stretch import CAMERAS, GRIPPER_OPEN_M, JOINT_NAMES

Facts: TypeAlias = dict[str, Any]


def _picture(camera: str, kind: str) -> Facts:
    config = CAMERAS[camera]
    return {"width": config.width, "height": config.height, "encoding": "base64", "format": kind}


@dataclass(frozen=True)
class StretchSensorSuite:
    """The robot's sensors as the design documents describe them. Its dicts are copies: change them freely.

    `encoding` is how a picture travels in JSON; in process and in msgpack it is an array. Joints have ten
    numbers, one by name; the seven of a short action are told in `proctor.robots.stretch`.
    """

    rgb_head: Facts = field(default_factory=lambda: _picture("head", "RGB"))
    rgb_wrist: Facts = field(default_factory=lambda: _picture("wrist", "RGB"))
    depth_head: Facts = field(default_factory=lambda: _picture("head", "depth"))
    """Millimetres in 16 bits, 0 where nothing came back."""
    joint_positions: Facts = field(
        default_factory=lambda: {"dim": len(JOINT_NAMES), "names": list(JOINT_NAMES)}
    )
    """`qpos` in observations."""
    joint_velocities: Facts = field(default_factory=lambda: {"dim": len(JOINT_NAMES)})
    """`qvel` in observations."""
    gripper_state: Facts = field(default_factory=lambda: {"dim": 1, "range": [0.0, GRIPPER_OPEN_M]})
    """Metres; a number, not an array."""
    ee_pose: Facts = field(default_factory=lambda: {"dim": 7, "frame": "base_link"})
    """x, y, z and a quaternion w, x, y, z."""
    instruction: Facts = field(
        default_factory=lambda: {"type": "text", "example": "Pick up the red cup and place it on the table"}
    )
    object_pose: Facts = field(
        default_factory=lambda: {"position": {"dim": 3}, "orientation": {"dim": 4}, "optional": True}
    )
    """For debugging; observations have the positions as `object_info` if the env is asked for it."""


SENSORS = StretchSensorSuite()
