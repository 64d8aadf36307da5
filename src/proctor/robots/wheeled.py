"""The robot of the embedded VLN exam: a round differential drive with a camera on a mast and a 2D lidar."""

from __future__ import annotations

import math

import msgspec


class Camera(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An RGB-D camera, looking along the robot's +x."""

    width: int = 640
    height: int = 480
    fov_deg: float = 60.0
    """Vertical field of view."""
    height_m: float = 1.25
    pitch_deg: float = 0.0
    """Positive looks up."""
    near_m: float = 0.05
    far_m: float = 20.0
    """Beyond this, depth is 0: no return."""


class Lidar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A 2D laser scanner at the robot's centre. Beam 0 looks backwards, angles grow to the left."""

    beams: int = 360
    height_m: float = 0.2
    range_min_m: float = 0.02
    range_max_m: float = 10.0

    @property
    def angle_min(self) -> float:
        """Direction of the first beam in the robot's frame."""
        return -math.pi

    @property
    def angle_increment(self) -> float:
        """Angle between neighbouring beams."""
        return math.tau / self.beams


class WheeledRobot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes and limits of the base. The radius is half the width of a Hello Robot Stretch."""

    radius_m: float = 0.17
    height_m: float = 1.3
    ground_clearance_m: float = 0.05
    """It drives over what is lower than this."""
    mass_kg: float = 20.0
    drive_force_n: float = 80.0
    drive_torque_nm: float = 20.0
    camera: Camera = Camera()
    lidar: Lidar = Lidar()
