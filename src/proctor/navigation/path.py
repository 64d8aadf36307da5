"""What is planned: a path on the floor, and a trajectory, which says when to be where on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from proctor.core.geometry import distances_along
from proctor.core.types import Array
from proctor.kernels.timing import sample

Point = tuple[float, list[float], list[float]]
MOVING_MPS = 1e-3


class RobotMotion(msgspec.Struct, frozen=True):
    """Where the robot is in the world, and how it moves there."""

    x: float
    y: float
    yaw: float
    v: float = 0.0  # metres per second; negative if backwards
    omega: float = 0.0  # radians per second to the left
    curvature: float = 0.0  # of its path, 1 / metres to the left; with `v`, how a new path must begin
    sideways: float = 0.0  # radians from its heading to its motion, left; for holonomic bases

    @property
    def direction(self) -> float:
        """Where its path leads, in the world; backwards along it if `v` is negative."""
        return self.yaw + self.sideways


class Leg(msgspec.Struct, frozen=True):
    """A part of a path that is driven without a stop: dense points, a few centimetres apart."""

    points: Array  # (N, 2), N at least 2
    yaw: Array  # (N,) directions of the path, unwrapped and continuous
    curvature: Array  # (N,) 1 / metres, positive to the left; continuous

    @property
    def arc_m(self) -> Array:
        """The way from the first point to each."""
        return distances_along(self.points)


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """A path that was found, and what it was made smooth to."""

    raw: Array  # (N, 2) corners as the planner gave them
    legs: tuple[Leg, ...]
    """What is driven. One leg if the path could be made smooth, else one for each straight part, with a stop
    and a turn between."""
    planner: str
    margin_m: float  # what was kept beyond the robot's radius when planning, 0 where only the bare robot fits
    clearance_m: float  # the least clearance along the legs

    @property
    def points(self) -> Array:
        """(N, 2) all points of all legs."""
        return np.concatenate([leg.points for leg in self.legs])

    @property
    def length_m(self) -> float:
        """The way along all legs."""
        return float(sum(leg.arc_m[-1] for leg in self.legs))


class Trajectory(Sequence[Point]):
    """Poses and velocities over time; as a sequence, `[(t, [x, y, yaw], [vx, vy, omega]), ...]`.

    All in the world frame, `yaw` unwrapped; times increase from 0. Between two points the pose is a cubic
    in time that has the velocities of both; after the last point the robot rests there.
    """

    def __init__(self, times_s: ArrayLike, poses: ArrayLike, velocities: ArrayLike) -> None:
        self.times_s: Array = np.ascontiguousarray(times_s, dtype=float)
        self.poses: Array = np.ascontiguousarray(poses, dtype=float)
        self.velocities: Array = np.ascontiguousarray(velocities, dtype=float)
        count = len(self.times_s)
        if not count or self.poses.shape != (count, 3) or self.velocities.shape != (count, 3):
            shapes = f"{self.times_s.shape}, {self.poses.shape} and {self.velocities.shape}"
            raise ValueError(f"expected shapes (N,), (N, 3) and (N, 3) with N at least 1, found {shapes}")
        if not all(np.isfinite(part).all() for part in (self.times_s, self.poses, self.velocities)):
            raise ValueError("expected finite numbers in a trajectory")
        if (np.diff(self.times_s) <= 0).any():
            raise ValueError("expected times of a trajectory that increase")

    @classmethod
    def of(cls, points: Trajectory | Iterable[Any]) -> Trajectory:
        """Take a trajectory, or make one of `[(t, pos, vel), ...]`; ValueError if it is neither.

        If all positions have 0 as their third number, as a list of points on the floor has, the
        headings are those of the velocities.
        """
        if isinstance(points, cls):
            return points
        wanted = "expected points (t, [x, y, yaw], [vx, vy, omega]), at least one"
        try:
            rows = [(float(t), list(map(float, pos)), list(map(float, vel))) for t, pos, vel in points]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{wanted}: {error}") from None
        if not rows or any(len(pos) != 3 or len(vel) != 3 for _, pos, vel in rows):
            raise ValueError(wanted)
        times_s, poses, velocities = (np.array(column) for column in zip(*rows, strict=True))
        if not poses[:, 2].any() and not velocities[:, 2].any():
            poses[:, 2] = _headings(velocities)
            if len(times_s) > 1 and (np.diff(times_s) > 0).all():  # else it is refused below
                velocities[:, 2] = np.gradient(poses[:, 2], times_s)
        return cls(times_s - times_s[0], poses, velocities)

    @classmethod
    def joined(cls, parts: Sequence[Trajectory]) -> Trajectory:
        """Return trajectories one after the other, each beginning where the one before it ends."""
        times_s, poses, velocities = [], [], []
        begin_s = 0.0
        for index, part in enumerate(parts):
            end = len(part) - (index < len(parts) - 1)  # the next part has the last point, too
            times_s.append(part.times_s[:end] + begin_s)
            poses.append(part.poses[:end])
            velocities.append(part.velocities[:end])
            begin_s += part.duration_s
        return cls(np.concatenate(times_s), np.concatenate(poses), np.concatenate(velocities))

    @property
    def duration_s(self) -> float:
        """When the last point is reached."""
        return float(self.times_s[-1])

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Return pose and velocity at a time; before the first point it is that one."""
        row = self.sampled(np.array([time_s]))[0]
        return row[:3], row[3:]

    def sampled(self, times_s: Array) -> Array:
        """Return (N, 6) rows of x, y, yaw, vx, vy, omega."""
        return sample(self.times_s, self.poses, self.velocities, times_s)

    def remaining(self, time_s: float, spacing_s: float = 0.05) -> Array:
        """Return (N, 2) positions from a time on to the end."""
        times_s = np.append(np.arange(time_s, self.duration_s, spacing_s), max(time_s, self.duration_s))
        return self.sampled(times_s)[:, :2]

    def __len__(self) -> int:
        return len(self.times_s)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> list[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | list[Point]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return float(self.times_s[index]), self.poses[index].tolist(), self.velocities[index].tolist()


def _headings(velocities: Array) -> Array:
    """Return the directions of motion; where there is none, the next one, or the last."""
    moving = np.flatnonzero(np.hypot(velocities[:, 0], velocities[:, 1]) > MOVING_MPS)
    if not len(moving):
        return np.zeros(len(velocities))
    headings = np.unwrap(np.arctan2(velocities[moving, 1], velocities[moving, 0]))
    at = np.searchsorted(moving, np.arange(len(velocities))).clip(max=len(moving) - 1)
    return np.asarray(headings[at])
