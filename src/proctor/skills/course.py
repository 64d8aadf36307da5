"""What a robot is doing: a trajectory that it follows since some moment, and why."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from proctor.core.geometry import path_length, wrap_angle
from proctor.core.types import Array
from proctor.navigation.maps.clearance import least_clearance
from proctor.navigation.maps.clearance_field import ClearanceField
from proctor.navigation.path import Path
from proctor.navigation.process.requests import Motion
from proctor.navigation.timing.braking import brake
from proctor.navigation.timing.trajectory import MOVING_MPS, Trajectory
from proctor.robots.dynamics import Drive, Dynamics

Purpose = Literal["goal", "stop", "recovery"]
SPACING_S = 0.05
SOON_S = 0.02
"""In which a path hardly bends, but enough to be measured."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """A trajectory under way."""

    trajectory: Trajectory
    begun_s: float
    """When it begins, by the robot's clock."""
    purpose: Purpose
    path: Path | None = None
    """What it leads along, if it leads to the goal."""

    @property
    def ends_s(self) -> float:
        """When the robot will be at its end."""
        return self.begun_s + self.trajectory.duration_s

    def motion_at(self, time_s: float, drive: Drive) -> Motion:
        """Return where the robot is to be at a time, and how it moves there."""
        (x, y, yaw), (vx, vy, omega) = (part.tolist() for part in self.trajectory.at(time_s - self.begun_s))
        speed_mps = math.hypot(vx, vy)
        if speed_mps < MOVING_MPS:
            return Motion(x, y, yaw, omega=omega)
        if drive == "differential":
            v = vx * math.cos(yaw) + vy * math.sin(yaw)
            return Motion(x, y, yaw, v, omega, omega / v if abs(v) > MOVING_MPS else 0.0)
        direction = math.atan2(vy, vx)
        _, (soon_vx, soon_vy, _) = self.trajectory.at(time_s - self.begun_s + SOON_S)
        bend_rad = wrap_angle(math.atan2(soon_vy, soon_vx) - direction)
        curvature = bend_rad / (speed_mps * SOON_S) if math.hypot(soon_vx, soon_vy) > MOVING_MPS else 0.0
        return Motion(x, y, yaw, speed_mps, omega, curvature, wrap_angle(direction - yaw))

    def end(self) -> Motion:
        """Return the rest at its end."""
        x, y, yaw = self.trajectory.poses[-1].tolist()
        return Motion(x, y, yaw)

    def braked(self, now_s: float, dynamics: Dynamics) -> Course:
        """Return the course that comes to rest along this one as soon as it can."""
        if now_s >= self.ends_s:
            return self
        trajectory = brake(self.trajectory, max(now_s - self.begun_s, 0.0), dynamics)
        return Course(trajectory=trajectory, begun_s=now_s, purpose="stop", path=self.path)

    def remaining_m(self, now_s: float) -> float:
        """Return how far it still goes."""
        return path_length(self._points_ahead(now_s))

    def block_ahead_m(self, field: ClearanceField, now_s: float, limit_m: float) -> float:
        """Return how far ahead it comes closer to something than a limit, infinite if it does not."""
        points = self._points_ahead(now_s)
        if least_clearance(field, points) > limit_m:
            return math.inf
        first = next(i for i in range(len(points)) if least_clearance(field, points[i : i + 1]) <= limit_m)
        return path_length(points[: first + 1])

    def _points_ahead(self, now_s: float) -> Array:
        return self.trajectory.remaining(max(now_s - self.begun_s, 0.0), SPACING_S)
