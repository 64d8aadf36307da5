"""Robots on wheels as data: size, limits and sensors, read from the file that a registry name stands for.

Nothing else in the package knows the numbers of a base. Another one is another file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from proctor.core.documents import convert, read_json
from proctor.core.registry import BUILT_IN, package_file
from proctor.robots.dynamics import Dynamics

STANDARD = "standard"
"""The base that the exams were made for, and that drives where nobody names another one."""

Metres: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=100)]
Size: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=5)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Strength: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e5)]


def _check_more(name: str, value: float, least_name: str, least: float) -> None:
    if not value > least:
        raise ValueError(f"{name}: expected more than {least_name}, {least:g}, found {value:g}")


def _check_most(name: str, value: float, most_name: str, most: float) -> None:
    if value > most:
        raise ValueError(f"{name}: expected at most {most_name}, {most:g}, found {value:g}")


class Camera(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An RGB-D camera, looking along the robot's +x."""

    width: Pixels = 640
    height: Pixels = 480
    fov_deg: Annotated[float, msgspec.Meta(gt=0, lt=180)] = 60.0
    """Vertical field of view."""
    height_m: Size = 1.25
    pitch_deg: Annotated[float, msgspec.Meta(ge=-90, le=90)] = 0.0
    """Positive looks up."""
    near_m: Metres = 0.05
    far_m: Metres = 20.0
    """Beyond this, depth is 0: no return."""

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        _check_more("far_m", self.far_m, "near_m", self.near_m)


class Lidar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A 2D laser scanner at the robot's centre. Beam 0 looks backwards, angles grow to the left."""

    beams: Annotated[int, msgspec.Meta(ge=12, le=7200)] = 360
    height_m: Size = 0.2
    range_min_m: Metres = 0.02
    range_max_m: Metres = 10.0

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        _check_more("range_max_m", self.range_max_m, "range_min_m", self.range_min_m)

    @property
    def angle_min(self) -> float:
        """Direction of the first beam in the robot's frame."""
        return -math.pi

    @property
    def angle_increment(self) -> float:
        """Angle between neighbouring beams."""
        return math.tau / self.beams


class RobotSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A round base with a drive, a camera on a mast and a laser scanner."""

    description: str = ""
    radius_m: Size
    """Of the footprint, a disc."""
    height_m: Size
    ground_clearance_m: Annotated[float, msgspec.Meta(ge=0, le=1)]
    """It drives over what is lower than this."""
    mass_kg: Strength
    drive_force_n: Strength
    drive_torque_nm: Strength
    dynamics: Dynamics
    """What `navigate_to` may ask of the base."""
    action_speed_mps: Annotated[float, msgspec.Meta(ge=0.001, le=5)]
    """How fast it does a FORWARD."""
    action_speed_radps: Annotated[float, msgspec.Meta(ge=0.001, le=10)]
    """How fast it does a LEFT or RIGHT."""
    collision_threshold_m: Annotated[float, msgspec.Meta(ge=0, le=10)]
    """A range below this, measured from the scanner, ends a FORWARD as a collision."""
    camera: Camera
    lidar: Lidar

    def __post_init__(self) -> None:
        """Refuse numbers that contradict each other."""
        _check_more("height_m", self.height_m, "ground_clearance_m", self.ground_clearance_m)
        _check_most("action_speed_mps", self.action_speed_mps, "dynamics.v_max", self.dynamics.v_max)
        _check_most(
            "action_speed_radps", self.action_speed_radps, "dynamics.omega_max", self.dynamics.omega_max
        )

    @property
    def height_band_m(self) -> tuple[float, float]:
        """Only what reaches into this range above the floor is an obstacle."""
        return self.ground_clearance_m, self.height_m

    def with_camera(self, **changes: Any) -> RobotSpec:
        """Return the same robot with other numbers of its camera; None leaves a number as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(self, camera=replace(self.camera, **given))


@cache
def load_robot(name: str = STANDARD) -> RobotSpec:
    """Return the robot of a name, or of a spec file `path/to/robot.json`; an edited file is not read again.

    Raises a kind of UserError that says file and place if there is none, or its spec is invalid.
    """
    if name not in BUILT_IN["robot"] and (name.endswith(".json") or "/" in name):
        file = Path(name)
    else:
        file = package_file("robot", name)
    return convert(read_json(file), RobotSpec, file)


def standard_robot(**changes: Any) -> RobotSpec:
    """Return the standard base, with these fields changed."""
    return replace(load_robot(), **changes)


def robot_identity(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `robot` among an env's options as what makes another run; nothing for the standard base."""
    name = options.get("robot", STANDARD)
    return {} if name == STANDARD else {"robot": msgspec.to_builtins(load_robot(str(name)))}
