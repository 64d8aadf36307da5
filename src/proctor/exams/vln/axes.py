"""Habitat's axes and ours.

Habitat: right-handed, Y up, forward is -Z at rest; quaternions in files are xyzw, and a heading is the
rotation about +Y. Ours: right-handed, Z up, forward is +X at yaw 0. So (x, y, z) there is (x, -z, y) here,
and our yaw is their heading plus 90 degrees.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Vector3

Triple = tuple[float, float, float]
Quadruple = tuple[float, float, float, float]

HEADING_OF_YAW_0_RAD = -math.pi / 2
NO_TILT = 1e-3
"""Of a quaternion's parts that must be zero, and of its length from 1: about a tenth of a degree."""


def from_habitat(point: Triple) -> Vector3:
    """Return a point of Habitat's world in ours."""
    x, y, z = point
    return Vector3(x, -z, y)


def to_habitat(point: Vector3) -> Triple:
    """Return a point of our world in Habitat's."""
    return point.x, point.z, -point.y


def yaw_deg_of_xyzw(xyzw: Quadruple) -> float:
    """Return the yaw, in degrees, of a rotation about Habitat's up axis.

    It is not wrapped, from -270 to 450: a quaternion and its negative are the same rotation, and so the way
    back gives the very quaternion.
    """
    _, y, _, w = xyzw
    return math.degrees(2 * math.atan2(y, w) - HEADING_OF_YAW_0_RAD)


def xyzw_of_yaw_deg(yaw_deg: float) -> Quadruple:
    """Return the quaternion of a yaw in degrees, as Habitat's files write it."""
    half_rad = (math.radians(yaw_deg) + HEADING_OF_YAW_0_RAD) / 2
    return 0.0, math.sin(half_rad), 0.0, math.cos(half_rad)


def heading_of_yaw(yaw_rad: float) -> float:
    """Return Habitat's heading, as VLN-CE's prediction files have it: radians from -Z, left is positive."""
    return wrap_angle(yaw_rad + HEADING_OF_YAW_0_RAD)


def yaw_of_heading(heading_rad: float) -> float:
    """Return the yaw of Habitat's heading."""
    return wrap_angle(heading_rad - HEADING_OF_YAW_0_RAD)


class Rotations(NamedTuple):
    """What the start rotations of a file look like: one truth value per episode."""

    unit: NDArray[np.bool_]
    about_y: NDArray[np.bool_]  # a yaw in Habitat's world, if the order is xyzw: the only right one
    about_y_wxyz: NDArray[np.bool_]
    about_z: NDArray[np.bool_]  # a yaw in a world with Z up, in one order or the other, and no identity

    @property
    def order(self) -> Literal["xyzw", "wxyz"]:
        """In which order most of them make sense. Not even the identity is the same in both."""
        return "wxyz" if self.about_y_wxyz.sum() > self.about_y.sum() else "xyzw"


def classify_rotations(quaternions: Array) -> Rotations:
    """Look at (N, 4) quaternions as they stand in a file."""
    zero = np.abs(quaternions) < NO_TILT
    a, b, c, d = zero.T
    return Rotations(
        unit=np.abs(np.linalg.norm(quaternions.clip(-2, 2), axis=1) - 1) < NO_TILT,  # clipped: no overflow
        about_y=a & c & ~(b & d),
        about_y_wxyz=b & d & ~(a & c),
        about_z=(a & b & ~c & ~d) | (b & c & ~a & ~d),
    )
