"""A drive: what was asked of a robot, what it planned, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from proctor.core.geometry import path_length
from proctor.core.types import Array, Pose2
from proctor.maps.grid_map import GridMap
from proctor.navigation.path import Path, Trajectory
from proctor.robots.dynamics import Dynamics
from proctor.robots.spec import standard_robot

KEPT_TICKS = 6  # every sixth tick of a drive is written down, ten in a second
DIGITS = 4
JUMP = 3.0  # a target that moves or turns faster than this, in m/s or rad/s, is that of another trajectory
Point = tuple[float, float]

AROUND_M = 1.2  # so much is shown around what was planned and driven
IN_VIEW_M = 0.4  # so much at least, where the rest is better used to show the map


class DriveLog(msgspec.Struct, frozen=True, kw_only=True):
    """What happened at each tick. Poses are (x, y, yaw) in the world frame."""

    times_s: Array  # (N,) the robot's clock
    poses: Array  # (N, 3) where the robot was
    velocities: Array  # (N, 3) vx, vy and omega as measured, in the robot's frame
    targets: Array  # (N, 3) where the trajectory wanted it to be; NaN while there was none
    commands: Array  # (N, 3) vx, vy and omega as commanded, in the robot's frame

    @classmethod
    def of(cls, rows: Sequence[ArrayLike]) -> DriveLog:
        """Make a log of rows of 13 numbers: time, pose, velocity, target, command. There may be none."""
        table = np.array(rows, dtype=float).reshape(len(rows), 13)
        return cls(
            times_s=table[:, 0],
            poses=table[:, 1:4],
            velocities=table[:, 4:7],
            targets=table[:, 7:10],
            commands=table[:, 10:13],
        )

    @property
    def elapsed_s(self) -> Array:
        """(N,) time since the first tick."""
        return self.times_s - self.times_s[:1]

    @property
    def length_m(self) -> float:
        """How far the robot went."""
        return path_length(self.poses[:, :2])

    @property
    def reference_speeds(self) -> Array:
        """(N, 2) how fast the targets went, in m/s, and turned, in rad/s; NaN without, or at a jump."""
        if len(self.times_s) < 2:
            return np.full((len(self.times_s), 2), np.nan)
        seconds = np.maximum(np.diff(self.times_s), 1e-9)
        ahead = np.diff(self.targets[:, :2], axis=0)
        yaw = self.targets[:-1, 2]
        steps_m = np.hypot(ahead[:, 0], ahead[:, 1])
        backwards = np.cos(yaw) * ahead[:, 0] + np.sin(yaw) * ahead[:, 1] < -0.9 * steps_m
        turns = (np.diff(self.targets[:, 2]) + np.pi) % (2 * np.pi) - np.pi
        rates = np.stack([np.where(backwards, -steps_m, steps_m), turns], axis=1) / seconds[:, None]
        rates[(np.abs(rates) > JUMP).any(axis=1)] = np.nan
        return np.concatenate([rates[:1], rates])

    @property
    def cross_track_m(self) -> Array:
        """How far the robot was to the left of its target, at all ticks that had one."""
        off = self.poses[:, :2] - self.targets[:, :2]
        yaw = self.targets[:, 2]
        beside_m: Array = np.cos(yaw) * off[:, 1] - np.sin(yaw) * off[:, 0]
        return beside_m[np.isfinite(beside_m)]


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """One goal, from the moment it was given to the result."""

    result: dict[str, Any]  # of the skill: `status`, `message`, `final_distance`, `total_time` or `reason`
    start: Pose2
    goal: tuple[float, float]  # x and y in the world frame; NaN if the request was not a place
    goal_yaw: float | None = None  # the heading that was asked for, if one was
    grid: GridMap  # the map that was planned on, without what was only seen while driving
    path: Path | None = None  # the first path; None if there was none
    trajectory: Trajectory | None = None  # the first trajectory
    replanned: tuple[Path, ...] = ()  # the paths that were planned on the way, in order
    log: DriveLog
    timings_s: dict[str, float] = {}  # wall time of each stage, such as `plan`, `smooth`, `trajectory`
    recoveries: int = 0
    planner: str = "grid"
    seen: Array = msgspec.field(default_factory=lambda: np.zeros((0, 2)))
    """(N, 2) centres of cells that were seen occupied on the way and are free on the map."""
    dynamics: Dynamics = Dynamics()
    radius_m: float = standard_robot().radius_m

    @property
    def arrived(self) -> bool:
        """Whether the robot got there."""
        return bool(self.result["status"] == "succeeded")

    def document(self) -> dict[str, Any]:
        """Return the result, what was planned and what was driven, as JSON holds it."""
        path, log = self.path, self.log
        rows = np.column_stack([log.elapsed_s, log.poses, log.velocities])
        return {
            **self.result,
            "planner": self.planner,
            "start": [self.start.x, self.start.y, self.start.yaw],
            "goal": [*self.goal, self.goal_yaw],
            "timings_s": self.timings_s,
            "path_length_m": None if path is None else path.length_m,
            "raw_path": [] if path is None else path.raw.round(DIGITS).tolist(),
            "path": [] if path is None else path.points.round(DIGITS).tolist(),
            "replans": len(self.replanned),
            "recoveries": self.recoveries,
            "driven_length_m": log.length_m,
            "driven_columns": ["time_s", "x", "y", "yaw", "vx", "vy", "omega"],
            "driven": np.concatenate([rows[:-1:KEPT_TICKS], rows[-1:]]).round(DIGITS).tolist(),
        }


class DriveView(NamedTuple):
    """A rectangle of the world."""

    low: Point
    high: Point

    @property
    def width_m(self) -> float:
        """Its extent along x."""
        return self.high[0] - self.low[0]

    @property
    def height_m(self) -> float:
        """Its extent along y."""
        return self.high[1] - self.low[1]


def view_of(drive: Drive, *, flattest: float, tallest: float) -> DriveView:
    """Return a rectangle with all of a drive in it, of a height from `flattest` to `tallest` by its width."""
    parts = [np.array([[drive.start.x, drive.start.y], drive.goal]), drive.log.poses[:, :2]]
    for path in [drive.path, *drive.replanned]:
        parts += [path.raw, path.points] if path is not None else []
    points = np.concatenate(parts)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0) - AROUND_M, points.max(axis=0) + AROUND_M
    middle, size = (low + high) / 2, high - low
    size = np.array([max(size[0], size[1] / tallest), max(size[1], size[0] * flattest)])
    # Show as little beyond the map as can be, but all of the drive.
    begin = np.array(drive.grid.origin_world)
    end = begin + np.array(drive.grid.occupied.shape[::-1]) * drive.grid.resolution_m
    middle = np.clip(middle, *np.sort([begin + size / 2, end - size / 2], axis=0))
    highest, lowest = points.max(axis=0) + IN_VIEW_M, points.min(axis=0) - IN_VIEW_M
    low, high = (
        np.clip(middle, highest - size / 2, lowest + size / 2) + half for half in (-size / 2, size / 2)
    )
    return DriveView((float(low[0]), float(low[1])), (float(high[0]), float(high[1])))
