"""Robots that are told to move and do not: they push against something that their scanner does not see."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2

WINDOW_S = 0.5
"""Of the robot's time: robots with latency get going within it."""
UNDERWAY_S = 0.5
"""Of real time: so long a first command may be underway, however fast a simulation runs meanwhile."""
HELD = 0.1
"""Who covers less than this share of the way that was asked for is held by something."""
SLIGHT_M, SLIGHT_RAD = 0.002, 0.005
"""Who was asked for no more than this, all in all, tells nothing by not moving."""


class _Sample(NamedTuple):
    time_s: float
    pose: Pose2
    asked: Array
    """Metres ahead and to the left, and radians, since the robot stood; ways back count as such."""


class StallWatch:
    """Compares what a robot was told in the last half second with what its odometry shows.

    May be used from any thread.

    Args:
        real_s: Returns the real time.
    """

    def __init__(self, real_s: Callable[[], float] = time.monotonic) -> None:
        self._real_s = real_s
        self._lock = threading.Lock()
        self._samples: deque[_Sample] = deque()
        self._velocity = np.zeros(3)
        self._told_real_s = 0.0
        """When the robot, which stood, was told to move."""

    def command(
        self,
        time_s: float,
        pose: Pose2 | None,
        linear_mps: float,
        angular_radps: float,
        sideways_mps: float = 0.0,
    ) -> None:
        """Take in a command; without a pose, or with a stop, the watch begins anew."""
        velocity = np.array([linear_mps, sideways_mps, angular_radps])
        with self._lock:
            if pose is None or not velocity.any():
                self._samples.clear()
            else:
                if not self._samples:
                    self._told_real_s = self._real_s()
                self._samples.append(self._sample(time_s, pose))
                self._drop_old(time_s)
            self._velocity = velocity

    def is_stalled(self, time_s: float, pose: Pose2) -> bool:
        """Tell whether the robot has hardly moved, for as long as the watch looks back."""
        with self._lock:
            self._drop_old(time_s)
            if not self._samples or time_s - self._samples[0].time_s < WINDOW_S:
                return False
            if self._real_s() - self._told_real_s < UNDERWAY_S:
                return False
            first, now = self._samples[0], self._sample(time_s, pose)
        ahead_m, left_m, turn_rad = (now.asked - first.asked).tolist()
        asked_m = math.hypot(ahead_m, left_m)
        if asked_m > SLIGHT_M:
            return math.hypot(pose.x - first.pose.x, pose.y - first.pose.y) < HELD * asked_m
        turned_rad = abs(wrap_angle(pose.yaw - first.pose.yaw))
        return bool(abs(turn_rad) > SLIGHT_RAD and turned_rad < HELD * abs(turn_rad))

    def _drop_old(self, time_s: float) -> None:
        while len(self._samples) > 1 and time_s - self._samples[1].time_s >= WINDOW_S:
            self._samples.popleft()

    def _sample(self, time_s: float, pose: Pose2) -> _Sample:
        if not self._samples:
            return _Sample(time_s, pose, np.zeros(3))
        last = self._samples[-1]
        return _Sample(time_s, pose, last.asked + self._velocity * (time_s - last.time_s))
