"""Robots that are told to move and do not: they push against something that their scanner does not see."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2

WINDOW_S = 0.5
"""Of the robot's time: robots with latency get going within it."""
LEAST_M, LEAST_RAD = 0.02, 0.02
"""Who was asked for less says nothing: a robot that only begins to move is late by more than that."""
HELD = 0.1
"""Who covers less than this share of the way that was asked for is held by something."""


class _Sample(NamedTuple):
    time_s: float
    pose: Pose2
    asked_m: float
    """Since the robot stood."""
    asked_rad: float


class StallWatch:
    """Compares what a robot was told in the last half second with what its odometry shows."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()
        self._velocity = (0.0, 0.0)

    def command(self, time_s: float, pose: Pose2 | None, linear_mps: float, angular_radps: float) -> None:
        """Take in a command; without a pose, or with a stop, the watch begins anew."""
        if pose is None or (linear_mps == 0 and angular_radps == 0):
            self._samples.clear()
        else:
            self._samples.append(self._sample(time_s, pose))
        self._velocity = (linear_mps, angular_radps)

    def is_stalled(self, time_s: float, pose: Pose2) -> bool:
        """Tell whether the robot has hardly moved, for as long as the watch looks back."""
        samples = self._samples
        while len(samples) > 1 and time_s - samples[1].time_s >= WINDOW_S:
            samples.popleft()
        if not samples or time_s - samples[0].time_s < WINDOW_S:
            return False
        first, now = samples[0], self._sample(time_s, pose)
        asked_m, asked_rad = now.asked_m - first.asked_m, now.asked_rad - first.asked_rad
        if asked_m > LEAST_M:
            return math.hypot(pose.x - first.pose.x, pose.y - first.pose.y) < HELD * asked_m
        return asked_rad > LEAST_RAD and abs(wrap_angle(pose.yaw - first.pose.yaw)) < HELD * asked_rad

    def _sample(self, time_s: float, pose: Pose2) -> _Sample:
        if not self._samples:
            return _Sample(time_s, pose, 0.0, 0.0)
        last, (linear_mps, angular_radps) = self._samples[-1], self._velocity
        passed_s = time_s - last.time_s
        asked_m = last.asked_m + abs(linear_mps) * passed_s
        return _Sample(time_s, pose, asked_m, last.asked_rad + abs(angular_radps) * passed_s)
