"""Hello Robot Stretch RE2 with its stock gripper, as data: joints, limits, speeds, forces, cameras, sensors.

The base frame has x forward; the arm reaches out along -y. Speeds and accelerations of lift, arm and driving
are the maker's largest; how fast the base turns, the gripper and all forces are chosen, since the maker's
URDF holds placeholders.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from proctor.core.record import Record

JOINT_NAMES = (
    *("translate_x", "translate_y", "rotate_z"),
    *("joint_lift", "joint_arm_l0", "joint_arm_l1", "joint_arm_l2", "joint_arm_l3"),
    *("joint_wrist_yaw", "joint_gripper_finger_left"),
)
"""The ten numbers of `qpos`."""
ARM_SEGMENTS = slice(4, 8)
"""Of the ten: they share one motor and stretch alike."""
GRIPPER_OPEN_M = 0.04
"""Travel of one fingertip from closed."""
Facts: TypeAlias = dict[str, Any]


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """One of the seven things that can be commanded: metres, or radians."""

    name: str
    low: float
    high: float
    speed: float
    acceleration: float
    force: float
    """Newtons or newton metres."""


CONTROLS = (
    # Base targets have no limits of their own, but lie at most this far from where the base is.
    Control(name="base_x", low=-0.5, high=0.5, speed=0.3, acceleration=0.3, force=300.0),
    Control(name="base_y", low=-0.5, high=0.5, speed=0.3, acceleration=0.3, force=300.0),
    Control(name="base_theta", low=-math.pi, high=math.pi, speed=1.0, acceleration=1.0, force=100.0),
    Control(name="lift", low=0.0, high=1.1, speed=0.15, acceleration=0.3, force=150.0),
    Control(name="arm", low=0.0, high=0.52, speed=0.4, acceleration=0.4, force=100.0),
    Control(name="wrist_yaw", low=-1.75, high=1.8, speed=2.0, acceleration=4.0, force=5.0),
    Control(name="gripper", low=0.0, high=GRIPPER_OPEN_M, speed=0.04, acceleration=0.2, force=40.0),
)
"""The seven numbers of a short action."""


FARTHEST_CAMERA_M = 10.0


class CameraConfig(Record, frozen=True, kw_only=True):
    """A camera on the robot. Identity is how it is mounted: the head's looks along the arm and down."""

    position: tuple[float, float, float]
    """The head's in the base frame, the wrist's relative to its mount at the wrist; metres."""
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """x, y, z, w: how it is turned away from its mounting, in the frame of its mount."""
    width: int
    height: int
    fov: float
    """Vertical field of view, degrees."""

    def __post_init__(self) -> None:
        if not all(abs(value) <= FARTHEST_CAMERA_M for value in self.position):  # nor is NaN
            expected = f"metres within ±{FARTHEST_CAMERA_M:g} of its mount"
            raise ValueError(f"position: expected {expected}, found {list(self.position)}")
        if not (1 <= self.width <= 4096 and 1 <= self.height <= 4096):
            raise ValueError(f"width, height: expected 1 to 4096 pixels, found {self.width} x {self.height}")
        if not 1 <= self.fov <= 170:
            raise ValueError(f"fov: expected 1 to 170 degrees, found {self.fov}")
        if not 0.99 < math.hypot(*self.orientation) < 1.01:
            raise ValueError(f"orientation: expected a unit quaternion, found {list(self.orientation)}")


CAMERAS: Mapping[str, CameraConfig] = MappingProxyType(
    {
        "head": CameraConfig(position=(0.1, 0.0, 1.2), width=640, height=480, fov=60.0),
        "wrist": CameraConfig(position=(0.0, 0.0, 0.0), width=320, height=240, fov=90.0),
    }
)
SEGMENT_M = CONTROLS[4].high / 4
UNEVEN_M = 1e-4
"""The segments are measured so far apart, at most, that one motor drives alike."""
JOINT_LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    dict(zip(JOINT_NAMES[:4], ((c.low, c.high) for c in CONTROLS[:4]), strict=True))
    | dict.fromkeys(JOINT_NAMES[ARM_SEGMENTS], (0.0, SEGMENT_M))
    | dict(zip(JOINT_NAMES[8:], ((c.low, c.high) for c in CONTROLS[5:]), strict=True))
)


@dataclass(frozen=True)
class StretchRobotConfig:
    """The robot as the design documents describe it. Its lists and dicts are copies: change them freely."""

    robot_type: str = "stretch"
    base_dof: int = 2
    """x and θ for the real, differential base; commands have x, y and θ."""
    arm_dof: int = 5
    total_dof: int = 7
    joint_names: list[str] = field(default_factory=lambda: list(JOINT_NAMES))
    joint_limits: dict[str, tuple[float, float]] = field(default_factory=lambda: dict(JOINT_LIMITS))
    end_effector: str = "parallel_gripper"
    camera_config: dict[str, CameraConfig] = field(default_factory=lambda: dict(CAMERAS))


STRETCH = StretchRobotConfig()


def controls_of_qpos(qpos: tuple[float, ...]) -> tuple[float, ...]:
    """Return the seven commands that 7 or 10 numbers mean: arm segments, clipped, add up to one extension."""
    if len(qpos) == len(CONTROLS):
        return qpos
    extension_m = sum(min(max(segment, 0.0), SEGMENT_M) for segment in qpos[ARM_SEGMENTS])
    return (*qpos[:4], extension_m, *qpos[8:])


def overstretches(qpos: tuple[float, ...]) -> bool:
    """Whether ten numbers ask an arm segment for more than it can do, which their controls do not show."""
    segments = qpos[ARM_SEGMENTS] if len(qpos) == len(JOINT_NAMES) else ()
    return any(not -UNEVEN_M <= segment <= SEGMENT_M + UNEVEN_M for segment in segments)


def qpos_of_controls(controls: tuple[float, ...]) -> tuple[float, ...]:
    """Return the ten joint positions of seven controls."""
    return (*controls[:4], *(controls[4] / 4,) * 4, *controls[5:])


def limits_as_dict() -> dict[str, Any]:
    """Return the limits of the ten joints as plain lists, to be told to agents."""
    return {name: list(limits) for name, limits in JOINT_LIMITS.items()}


def _picture(camera: str, kind: str) -> Facts:
    config = CAMERAS[camera]
    return {"width": config.width, "height": config.height, "encoding": "base64", "format": kind}


@dataclass(frozen=True)
class StretchSensorSuite:
    """The robot's sensors as the design documents describe them. Its dicts are copies: change them freely.

    `encoding` is how a picture travels in JSON; in process and in msgpack it is an array. Joints have ten
    numbers, one by name; `proctor.robots.stretch` explains the seven of a short action.
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
