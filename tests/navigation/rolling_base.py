"""A base that rolls as it is told, late and not quite, to test what drives it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.navigation.path import Trajectory
from proctor.navigation.tracking.mpc import MpcController
from proctor.robots.dynamics import Dynamics
from proctor.robots.robot import STILL, Twist
from proctor.robots.spec import standard_robot

TICK_S = 1 / 60
SUBSTEPS = 8


class RollingBase:
    """Follows its target velocity with a lag and a wrong gain; its pose is measured with noise.

    Args:
        pose: [x, y, yaw] to start at.
        drive: "differential" or "holonomic".
        lag_s: Time constant of its velocity.
        gains: Of speed and of turn rate.
        noise: Standard deviation of the measured position in metres, and of the yaw in radians.
        seed: Of the noise.
    """

    def __init__(
        self,
        pose: tuple[float, float, float] = (0.0, 0.0, 0.0),
        *,
        drive: str = "differential",
        lag_s: float = 0.0,
        gains: tuple[float, float] = (1.0, 1.0),
        noise: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.at, self.moves = np.array(pose), np.zeros(3)
        self.commanded, self.time_s = STILL, 0.0
        self.limits = Dynamics(drive=drive)
        self.spec = standard_robot(dynamics=self.limits)
        self._lag_s, self._gains, self._noise = lag_s, np.array([gains[0], gains[0], gains[1]]), noise
        self._random = np.random.default_rng(seed)

    def pose(self) -> Pose2:
        x, y, yaw = (self.at + self._noise * self._random.normal(size=3)).tolist()
        return Pose2(x, y, wrap_angle(yaw))

    def velocity(self) -> Twist:
        return Twist(*(self.moves * self._gains).tolist())

    def command(self, twist: Twist) -> None:
        self.commanded = twist

    @property
    def told(self) -> Array:
        return np.array(self.commanded)

    def roll(self) -> None:
        """Let one tick pass."""
        step_s = TICK_S / SUBSTEPS
        for _ in range(SUBSTEPS):
            late = 1.0 if self._lag_s == 0 else 1 - math.exp(-step_s / self._lag_s)
            self.moves = self.moves + late * (self.told - self.moves)
            vx, vy, omega = self.moves * self._gains
            yaw = self.at[2] + 0.5 * step_s * omega
            cos, sin = math.cos(yaw), math.sin(yaw)
            self.at += step_s * np.array([cos * vx - sin * vy, sin * vx + cos * vy, omega])
        self.time_s += TICK_S


class Drive:
    """What happened while a controller drove a base: arrays with a row per tick."""

    def __init__(self) -> None:
        self.poses: list[Array] = []
        self.targets: list[Array] = []
        self.measured: list[Array] = []
        self.commands: list[tuple[float, float, float]] = []
        self.fallbacks = 0
        self.solve_times_s: list[float] = []

    @property
    def errors(self) -> Array:
        return np.array(self.poses) - np.array(self.targets)

    @property
    def rms_m(self) -> float:
        return float(np.sqrt((self.errors[:, :2] ** 2).sum(axis=1).mean()))


def drive_along(
    base: RollingBase,
    reference: Trajectory,
    *,
    rest_s: float = 2.5,
    controller: MpcController | None = None,
    **options: Any,
) -> Drive:
    """Drive a base along a reference, and some time beyond its end."""
    controller = controller or MpcController(base, now_s=lambda: base.time_s, **options)
    controller.set_reference_trajectory(reference)
    start_s, drive = base.time_s, Drive()
    while base.time_s < start_s + reference.duration_s + rest_s:
        target, _ = reference.at(base.time_s - start_s)
        drive.poses.append(base.at.copy())
        drive.targets.append(target)
        controller.control_loop()
        assert controller.last is not None
        drive.measured.append(controller.last.pose)
        drive.commands.append(controller.last.command)
        drive.fallbacks += controller.last.fallback
        drive.solve_times_s.append(controller.last.solve_time_s)
        base.roll()
    return drive


def made_of(
    accelerations: list[tuple[float, float, float]], pose: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Trajectory:
    """Return what a differential drive does that accelerates (ahead, turning) for so many seconds each."""
    step_s = 1 / 240
    x, y, yaw = pose
    speed = rate = time_s = 0.0
    rows = [(time_s, x, y, yaw, 0.0, 0.0, 0.0)]
    for ahead, turning, lasts_s in accelerations:
        for _ in range(round(lasts_s / step_s)):
            middle = yaw + 0.5 * step_s * rate
            x += step_s * (speed + 0.5 * step_s * ahead) * math.cos(middle)
            y += step_s * (speed + 0.5 * step_s * ahead) * math.sin(middle)
            yaw += step_s * (rate + 0.5 * step_s * turning)
            speed, rate, time_s = speed + step_s * ahead, rate + step_s * turning, time_s + step_s
            rows.append((time_s, x, y, yaw, speed * math.cos(yaw), speed * math.sin(yaw), rate))
    table = np.array(rows)
    return Trajectory(table[:, 0], table[:, 1:4], table[:, 4:])


WINDING = [
    (0.45, 0.0, 2.0), (0.0, 0.45, 1.5), (0.0, -0.45, 1.5), (0.0, 0.0, 0.5), (0.0, -0.45, 1.8),
    (0.0, 0.45, 3.6), (0.0, -0.45, 1.8), (-0.3, 0.2, 1.5), (0.0, -0.2, 1.5), (-0.45, 0.0, 1.0),
]  # fmt: skip
"""Up to 0.9 m/s, left, right, left, and to a stop."""


def winding(drive: str, pose: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Trajectory:
    """Return a trajectory with turns both ways; a holonomic base turns slowly meanwhile, as it likes."""
    reference = made_of(WINDING, pose)
    if drive == "differential":
        return reference
    slower = 1.3  # In the bends there is centripetal acceleration, too.
    times_s, length_s = slower * reference.times_s, slower * reference.duration_s
    poses, velocities = reference.poses.copy(), reference.velocities / slower
    phase = np.pi * times_s / length_s
    poses[:, 2] = pose[2] + 1.5 * (1 - np.cos(phase))
    velocities[:, 2] = 1.5 * np.sin(phase) * np.pi / length_s
    return Trajectory(times_s, poses, velocities)
