"""Paths and trajectories as ROS 2's messages carry them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage
from plan_msgs.msg import TrajectoryPoint

from proctor.core.errors import UserError
from proctor.core.geometry import distances_along, evenly_spaced, wrap_angle
from proctor.core.types import Array
from proctor.navigation.path import Leg, Path, Trajectory
from proctor.worlds.ros2.node.convert import quaternion, stamp

MOST_POINTS = 100_000
CORNER_RAD = math.radians(20)
"""Where a path turns by more than this from one point to the next, it is driven with a stop and a turn."""
SPACING_M = 0.05


def path_message(
    points: Array, yaws: Array, *, frame: str, time_s: float, goal_yaw: float | None = None
) -> PathMessage:
    """Return (N, 2) points with their headings as a message; the last heading may be another one."""
    message = PathMessage()
    message.header.frame_id, message.header.stamp = frame, stamp(time_s)
    for (x, y), yaw in zip(points.tolist(), yaws.tolist(), strict=True):
        pose = PoseStamped(header=message.header)
        pose.pose.position.x, pose.pose.position.y = x, y
        pose.pose.orientation = quaternion(yaw)
        message.poses.append(pose)
    if goal_yaw is not None and message.poses:
        message.poses[-1].pose.orientation = quaternion(goal_yaw)
    return message


def points_of(message: PathMessage) -> Array:
    """Return the (N, 2) points of a path; UserError if they are too few, too many or not finite."""
    if not 2 <= len(message.poses) <= MOST_POINTS:
        raise UserError(f"expected a path of 2 to {MOST_POINTS} poses, found {len(message.poses)}")
    points = np.array([[pose.pose.position.x, pose.pose.position.y] for pose in message.poses])
    if not np.isfinite(points).all():
        raise UserError("expected a path of finite numbers")
    return points


def path_of(points: Array) -> Path:
    """Return a path along (N, 2) points, dense ones of a curve or only its corners."""
    moved = np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-4  # else they are one point
    points = points[np.concatenate([[True], moved])]
    if len(points) < 2:
        raise UserError("expected a path that leads somewhere, found one whose points are all the same")
    steps = np.diff(points, axis=0)
    directions = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    corners = np.flatnonzero(np.abs(np.diff(directions)) > CORNER_RAD) + 1
    bounds = [0, *corners.tolist(), len(points) - 1]
    legs = tuple(_leg(points[i : j + 1]) for i, j in pairwise(bounds))
    return Path(raw=points, legs=legs, planner="", margin_m=0.0, clearance_m=0.0)


def _leg(points: Array) -> Leg:
    """Return what is driven along points without a corner among them."""
    if np.linalg.norm(np.diff(points, axis=0), axis=1).max() > 2 * SPACING_M:
        points = evenly_spaced(points, SPACING_M)
    arc_m, steps = distances_along(points), np.diff(points, axis=0)
    yaw = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    if len(yaw) == 1:
        return Leg(points, np.repeat(yaw, 2), np.zeros(2))
    # Directions hold in the middle between two points; the ends go on as the curve does there.
    middle_m = (arc_m[1:] + arc_m[:-1]) / 2
    yaws = np.interp(arc_m, middle_m, yaw)
    slopes = np.diff(yaw) / np.diff(middle_m)
    yaws[0], yaws[-1] = yaw[0] - slopes[0] * middle_m[0], yaw[-1] + slopes[-1] * (arc_m[-1] - middle_m[-1])
    return Leg(points, yaws, np.gradient(yaws, arc_m))


def directions_of(path: Path) -> Array:
    """Return the headings along all legs of a path."""
    return np.array([wrap_angle(float(yaw)) for leg in path.legs for yaw in leg.yaw])


def trajectory_messages(trajectory: Trajectory) -> list[TrajectoryPoint]:
    """Return a trajectory as messages."""
    return [TrajectoryPoint(t=t, pos=pos, vel=vel) for t, pos, vel in trajectory]


def trajectory_of(points: Trajectory | Iterable[Any]) -> Trajectory:
    """Convert plan_msgs/TrajectoryPoint messages or `[(t, pos, vel), ...]`; a Trajectory stays."""
    if isinstance(points, Trajectory):
        return points
    return Trajectory.of((p.t, p.pos, p.vel) if isinstance(p, TrajectoryPoint) else p for p in points)
