"""Looks whether the way ahead is still free, and whether the robot has bumped into something."""

from __future__ import annotations

import enum
import math

import numpy as np

from proctor.navigation.maps.live_map import LiveMap
from proctor.skills.params import NavigationParams
from proctor.skills.pilot import Pilot

SLACK_M = 0.01
"""A course is blocked if it leads closer to something than it did when it was made, by more than this."""
REACTION_S = 0.3
"""From seeing something to braking, with some to spare."""
BUMP_RAD = np.radians([-45.0, -22.5, 0.0, 22.5, 45.0])
BUMP_M = 0.05
"""Beyond the hull, so that what was bumped into does not cover the robot itself."""
BUMP_HEIGHT_M = 0.2
STANDING_MPS = 0.02
REMIND_S = 1.0
"""Sensors do not see what was bumped into, or it would have been avoided: the map is told again and again."""


class Sight(enum.Enum):
    """What the lookout sees."""

    CLEAR = enum.auto()
    TOUCHED = enum.auto()
    """The robot has run into something."""
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
        self._bumps_world = np.zeros((0, 3))
        self._reminded_s = 0.0

    def mark_bump(self, direction_rad: float) -> None:
        """Put on the map what the robot has bumped into, in a direction from its heading."""
        pose = self._pilot.pose()
        angles = pose.yaw + direction_rad + BUMP_RAD
        reach_m = self._params.radius_m + BUMP_M
        x, y = pose.x + reach_m * np.cos(angles), pose.y + reach_m * np.sin(angles)
        bump_world = np.stack([x, y, np.full_like(x, BUMP_HEIGHT_M)], axis=1)
        self._bumps_world = np.concatenate([self._bumps_world, bump_world])
        self._remind()

    def _remind(self) -> None:
        self._reminded_s = self._pilot.now_s()
        self._map.mark_points(self._bumps_world, self._reminded_s)

    def begin(self) -> None:
        """Begin anew. What the robot touches already is no collision."""
        self._touching = self._pilot.is_touching()
        self._bumps_world = np.zeros((0, 3))

    def _has_bumped(self) -> bool:
        """Tell whether the robot has just run into something; what touches it while it stands is no bump."""
        if not self._pilot.is_touching():
            self._touching = False
        elif not self._touching and self._pilot.course_speed_mps() > STANDING_MPS:
            self._touching = True
            return True
        return False

    def look(self) -> Sight:
        """Return the most urgent of what there is."""
        pilot, course = self._pilot, self._pilot.course
        now_s = pilot.now_s()
        if self._has_bumped():
            return Sight.TOUCHED
        if len(self._bumps_world) and now_s - self._reminded_s > REMIND_S:
            self._remind()
        if course is None or course.purpose == "stop" or now_s >= course.ends_s:
            return Sight.CLEAR
        room_m = self._params.radius_m if course.path is None else course.path.clearance_m
        limit_m = min(room_m, self._params.radius_m) - SLACK_M
        ahead_m = course.block_ahead_m(self._map.field(now_s), now_s, limit_m)
        if math.isinf(ahead_m) or (course.purpose == "recovery" and ahead_m == 0):
            return Sight.CLEAR
        stopping_m = course.braked(now_s, pilot.dynamics).remaining_m(now_s)
        near_m = stopping_m + REACTION_S * pilot.course_speed_mps()
        return Sight.BLOCKED if ahead_m > near_m else Sight.BLOCKED_NEAR
