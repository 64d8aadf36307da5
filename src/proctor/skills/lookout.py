"""Looks whether the way ahead is still free, and whether the robot has bumped into something."""

from __future__ import annotations

import enum
import math

import numpy as np

from proctor.core.types import Array
from proctor.navigation.live_map import LiveMap
from proctor.skills.params import NavigationParams
from proctor.skills.pilot import Pilot

SLACK_M = 0.01
"""A course is blocked if it leads closer to something than it did when it was made, by more than this."""
REACTION_S = 0.3
"""From seeing something to braking, with some to spare."""


BUMP_RAD = np.radians([-20.0, 0.0, 20.0])
BUMP_M = 0.05
"""Beyond the hull, so that what was bumped into does not cover the robot itself."""
BUMP_HEIGHT_M = 0.2


class Sight(enum.Enum):
    """What the lookout sees."""

    CLEAR = enum.auto()
    TOUCHED = enum.auto()
    """The robot has begun to touch something."""
    BLOCKED = enum.auto()
    """Something is on the course, far enough ahead to find a way around it without stopping."""
    BLOCKED_NEAR = enum.auto()
    """Something is on the course, and the robot must brake now."""


class Lookout:
    """Compares the rest of the course with the newest map at each tick.

    Args:
        pilot: Knows the course.
        world_map: What is known of the surroundings.
        params: The robot's size.
    """

    def __init__(self, pilot: Pilot, world_map: LiveMap, params: NavigationParams) -> None:
        self._pilot, self._map, self._params = pilot, world_map, params
        self._touching = False

    def bump_world(self) -> Array:
        """Return (N, 3) points where the hull is on the side that it moves to: what it bumped into."""
        pose, course = self._pilot.pose(), self._pilot.course
        backwards = course is not None and course.motion_at(self._pilot.now_s()).v < 0
        angles = pose.yaw + (math.pi if backwards else 0.0) + BUMP_RAD
        reach_m = self._params.radius_m + BUMP_M
        x, y = pose.x + reach_m * np.cos(angles), pose.y + reach_m * np.sin(angles)
        return np.stack([x, y, np.full_like(x, BUMP_HEIGHT_M)], axis=1)

    def begin(self) -> None:
        """Take note of what the robot touches already, which is no collision."""
        self._touching = self._pilot.is_touching()

    def look(self) -> Sight:
        """Return the most urgent of what there is."""
        pilot, course = self._pilot, self._pilot.course
        was_touching, self._touching = self._touching, pilot.is_touching()
        if self._touching and not was_touching:
            return Sight.TOUCHED
        now_s = pilot.now_s()
        if course is None or course.purpose == "stop" or now_s >= course.ends_s:
            return Sight.CLEAR
        room_m = self._params.radius_m if course.path is None else course.path.clearance_m
        limit_m = min(room_m, self._params.radius_m) - SLACK_M
        ahead_m = course.block_ahead_m(self._map.field(now_s), now_s, limit_m)
        if math.isinf(ahead_m) or (course.purpose == "recovery" and ahead_m == 0):
            return Sight.CLEAR
        speed_mps = abs(course.motion_at(now_s).v)
        near_m = pilot.dynamics.stopping_distance_m(speed_mps) + REACTION_S * speed_mps
        return Sight.BLOCKED if ahead_m > near_m else Sight.BLOCKED_NEAR
