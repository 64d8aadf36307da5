"""Angles, rotations and distances. Quaternions are wxyz, angles in radians unless named `_deg`."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import STEP_M, TURN_RAD, Action, Array, Pose2, Vector3


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


def pose_after(action: Action, pose: Pose2) -> Pose2:
    """Return the pose to which an action leads if it is done exactly."""
    if action is Action.FORWARD:
        x, y = pose.x + STEP_M * math.cos(pose.yaw), pose.y + STEP_M * math.sin(pose.yaw)
        return Pose2(x, y, pose.yaw)
    if action is Action.STOP:
        return pose
    turn_rad = TURN_RAD if action is Action.LEFT else -TURN_RAD
    return Pose2(pose.x, pose.y, wrap_angle(pose.yaw + turn_rad))


def pose_out_of(frame: Pose2, pose: Pose2) -> Pose2:
    """Transform a pose from the frame's coordinates to the parent's. Yaws add up."""
    cos, sin = math.cos(frame.yaw), math.sin(frame.yaw)
    x, y = frame.x + cos * pose.x - sin * pose.y, frame.y + sin * pose.x + cos * pose.y
    return Pose2(x, y, frame.yaw + pose.yaw)


def pose_into(frame: Pose2, pose: Pose2) -> Pose2:
    """Transform a pose from the parent's coordinates to the frame's: the reverse of `pose_out_of`."""
    cos, sin = math.cos(frame.yaw), math.sin(frame.yaw)
    x, y = pose.x - frame.x, pose.y - frame.y
    return Pose2(cos * x + sin * y, cos * y - sin * x, pose.yaw - frame.yaw)


def path_length(points: Array) -> float:
    """Return the length of a polyline (N, D)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def distances_along(path: Array) -> Array:
    """Return how far along a polyline (N, D) its points are."""
    return np.concatenate([[0.0], np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()])


def evenly_spaced(path: Array, spacing_m: float) -> Array:
    """Return points along a polyline (N, 2), both ends included, no further apart than this."""
    if len(path) < 2:
        return path
    along_m = distances_along(path)
    marks_m = np.linspace(0.0, along_m[-1], max(2, math.ceil(along_m[-1] / spacing_m) + 1))
    return np.stack([np.interp(marks_m, along_m, path[:, axis]) for axis in (0, 1)], axis=1)


def distance(a: Vector3, b: Vector3) -> float:
    """Return the 3D Euclidean distance."""
    return math.dist((a.x, a.y, a.z), (b.x, b.y, b.z))
