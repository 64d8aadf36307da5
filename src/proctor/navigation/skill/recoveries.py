"""What a robot does when it finds no way on: forget, wait, look around, back out."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import numpy as np

from proctor.core.types import Array, Pose2
from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import Trajectory
from proctor.navigation.plugins import (
    PluginOptions,
    Recovery,
    RecoverySituation,
    calling,
    check_returned,
    make_plugin,
)
from proctor.navigation.skill.checkers import Positive
from proctor.navigation.skill.mission import Mission
from proctor.navigation.skill.params import NavigationParams
from proctor.navigation.skill.pilot import Pilot
from proctor.navigation.timing.moves import straight, turn
from proctor.robots.dynamics import Dynamics

PASSING = (Reason.BLOCKED, Reason.NO_PATH, Reason.GOAL_OCCUPIED)  # may pass if unmapped objects cause it
BACK_M = 0.3
STEP_M = 0.02
SLACK_M = 0.01  # a way out of an obstacle never leads deeper into it by more than this


class ClearOptions(PluginOptions, frozen=True):
    """How long to look again."""

    look_s: Positive = 0.5  # until the scanner shows what is there


class ClearRecovery(Recovery):
    """Forgets what was seen, and looks again."""

    options_type = ClearOptions
    message = "Forgetting what was seen"

    def trajectory(self, situation: RecoverySituation) -> Trajectory:
        """Clear the live map and stand for a moment."""
        situation.live_map.clear()
        return rest(situation.pose, self.options.look_s)


class WaitOptions(PluginOptions, frozen=True):
    """How long to wait."""

    wait_s: Positive = 5.0  # until something leaves


class WaitRecovery(Recovery):
    """Waits for something to leave."""

    options_type = WaitOptions
    message = "Waiting for the way to clear"

    def trajectory(self, situation: RecoverySituation) -> Trajectory:
        """Stand."""
        return rest(situation.pose, self.options.wait_s)


class TurnOptions(PluginOptions, frozen=True):
    """How far to turn."""

    angle_rad: Annotated[float, msgspec.Meta(ge=-math.tau, le=math.tau)] = math.pi / 2  # to the left


class TurnRecovery(Recovery):
    """Turns to look around."""

    options_type = TurnOptions
    message = "Turning to look around"

    def trajectory(self, situation: RecoverySituation) -> Trajectory:
        """Turn on the spot."""
        return turn(situation.pose, self.options.angle_rad, situation.dynamics)


class BackOutOptions(PluginOptions, frozen=True):
    """How far to back out."""

    distance_m: Positive = BACK_M
    wait_s: Positive = 5.0  # if that is not free


class BackOutRecovery(Recovery):
    """Backs out, if that is free; else waits."""

    options_type = BackOutOptions
    message = "Backing out"

    def trajectory(self, situation: RecoverySituation) -> Trajectory:
        """Drive straight back, slowly."""
        pose, back_m = situation.pose, self.options.distance_m
        if _clearances(situation.field, pose, -back_m).min() > situation.radius_m:
            return straight(pose, -back_m, _slow(situation.dynamics))
        return rest(pose, self.options.wait_s)


def rest(pose: Pose2, duration_s: float) -> Trajectory:
    """Return the trajectory of a robot that stands."""
    here = np.array([pose.x, pose.y, pose.yaw])
    return Trajectory([0.0, duration_s], np.stack([here, here]), np.zeros((2, 3)))


class WayOut:
    """Finds what to try when there is no path."""

    def __init__(self, world_map: LiveMap, params: NavigationParams, pilot: Pilot) -> None:
        self._map, self._params, self._pilot = world_map, params, pilot
        self._recoveries: list[Recovery] = [
            make_plugin("recovery", name, params.recovery_options.get(name, {})) for name in params.recoveries
        ]

    def find(self, failure: NavigationFailure, mission: Mission, pose: Pose2) -> tuple[Trajectory, str]:
        """Return what to do, and its name; NavigationFailure if there is nothing left to try."""
        field = self._map.field(self._pilot.now_s())
        radius_m, dynamics = self._params.radius_m, self._pilot.dynamics
        trajectory = None
        if failure.reason is Reason.START_OCCUPIED:
            trajectory = escape(field, pose, radius_m, dynamics)
        elif failure.reason not in PASSING:
            raise failure
        if trajectory is None and not (self._map.has_seen and self._recoveries):
            raise failure
        if mission.tries >= self._params.max_recoveries:  # collisions count, too
            raise NavigationFailure(Reason.BLOCKED, f"{failure}, after {mission.tries} recoveries")
        if trajectory is not None:
            return trajectory, "Leaving an obstacle"
        recovery = self._recoveries[mission.tries % len(self._recoveries)]
        situation = RecoverySituation(pose, field, self._map, radius_m, dynamics)
        with calling(recovery):
            trajectory, message = recovery.trajectory(situation), recovery.message
        check_returned(recovery, trajectory, Trajectory, "a Trajectory")
        return trajectory, message

    def back_off(self, pose: Pose2, direction_rad: float) -> Trajectory:
        """Return how to get away from what was bumped into, in a direction from the robot's heading."""
        towards = Pose2(pose.x, pose.y, pose.yaw + direction_rad)
        way_m = _clearances(self._map.field(self._pilot.now_s()), towards, -BACK_M)
        blocked = np.flatnonzero(way_m[1:] < min(self._params.radius_m, way_m[0]) - SLACK_M)
        steps = int(blocked[0]) if len(blocked) else len(way_m) - 1
        away = straight(towards, -steps * STEP_M, _slow(self._pilot.dynamics))
        return Trajectory(away.times_s, away.poses - (0.0, 0.0, direction_rad), away.velocities)


def escape(field: ClearanceField, pose: Pose2, radius_m: float, dynamics: Dynamics) -> Trajectory | None:
    """Return how to leave an obstacle straight back or ahead, or None if that is not safe.

    It is safe if the robot gets no closer to anything on the way than it is now. Where not even its centre is
    free, the map or the pose is wrong, and nothing is safe.
    """
    if clearance_at(field, pose.x, pose.y)[0] <= 0:
        return None
    for direction in (-1.0, 1.0):
        way_m = _clearances(field, pose, direction * 0.6)
        free = np.flatnonzero(way_m > radius_m + STEP_M)
        if not len(free):
            continue
        way_m = way_m[: free[0] + 1]
        if (np.maximum.accumulate(way_m) - way_m).max() <= SLACK_M:
            return straight(pose, direction * max(int(free[0]), 1) * STEP_M, _slow(dynamics))
    return None


def _clearances(field: ClearanceField, pose: Pose2, distance_m: float) -> Array:
    """Return the clearances straight ahead, or back, at every STEP_M from here on; none beyond the map."""
    along = np.arange(round(abs(distance_m) / STEP_M) + 1) * math.copysign(STEP_M, distance_m)
    xs, ys = pose.x + along * math.cos(pose.yaw), pose.y + along * math.sin(pose.yaw)
    return np.array(
        [
            clearance_at(field, x, y)[0] if field.covers(x, y) else -math.inf
            for x, y in zip(xs, ys, strict=True)
        ]
    )


def _slow(dynamics: Dynamics) -> Dynamics:
    return msgspec.structs.replace(dynamics, v_max=0.2 * dynamics.v_max)
