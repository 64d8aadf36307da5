"""Angles, rotations and distances. Quaternions are wxyz, angles in radians unless named `_deg`."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array, Vector3


def wrap_angle(angle: float) -> float:
    """Return the same direction in (-pi, pi]."""
    wrapped = math.remainder(angle, math.tau)
    return math.pi if wrapped == -math.pi else wrapped


def quaternion_of_euler_deg(euler_deg: Vector3) -> Array:
    """Return the wxyz quaternion of Euler angles in degrees, applied Z·Y·X (x is turned first)."""
    cr, cp, cy = (math.cos(math.radians(angle) / 2) for angle in (euler_deg.x, euler_deg.y, euler_deg.z))
    sr, sp, sy = (math.sin(math.radians(angle) / 2) for angle in (euler_deg.x, euler_deg.y, euler_deg.z))
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def yaw_of_quaternion(wxyz: Array) -> float:
    """Return the heading of a wxyz quaternion: the Z part of its Z·Y·X Euler angles."""
    w, x, y, z = wxyz
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def rotation_matrix(wxyz: Array) -> Array:
    """Return the (3, 3) rotation matrix of a unit wxyz quaternion."""
    w, x, y, z = wxyz
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def multiply_quaternions(first: Array, second: Array) -> Array:
    """Return first ⊗ second, both wxyz: turn by `second`, then by `first`."""
    w, x, y, z = first
    matrix = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    product: Array = matrix @ second
    return product


def distance(a: Vector3, b: Vector3) -> float:
    """Return the 3D Euclidean distance."""
    return math.dist((a.x, a.y, a.z), (b.x, b.y, b.z))
