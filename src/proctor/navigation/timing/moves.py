"""Simple moves: a turn in place and a straight line, from rest or from a turn that goes on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.navigation.timing.curve import LONGEST_STEP_S, Curve
from proctor.navigation.timing.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics


class _Profile(NamedTuple):
    """The quickest way to rest at a place, in one dimension: at most three constant accelerations."""

    times: Array
    places: Array
    speeds: Array


def turn(pose: Pose2, angle_rad: float, dynamics: Dynamics, *, omega: float = 0.0) -> Trajectory:
    """Return a turn in place, to the left if the angle is positive.

    Args:
        pose: Where the robot stands.
        angle_rad: How far it turns; more than half a turn is done as it is asked.
        dynamics: Its limits.
        omega: How fast it turns already.
    """
    return _move(
        pose, np.array([0.0, 0.0, 1.0]), _profile(angle_rad, omega, dynamics.omega_max, dynamics.alpha_max)
    )


def turn_to(pose: Pose2, yaw: float, dynamics: Dynamics, *, omega: float = 0.0) -> Trajectory:
    """Return a turn in place to a heading, the short way from where the robot could stop turning."""
    stop_rad = turn_to_stop_rad(omega, dynamics)
    return turn(pose, stop_rad + wrap_angle(yaw - pose.yaw - stop_rad), dynamics, omega=omega)


def turn_to_stop_rad(omega: float, dynamics: Dynamics) -> float:
    """Return how far the robot still turns when it stops turning."""
    return omega * abs(omega) / (2 * dynamics.alpha_max)


def straight(pose: Pose2, distance_m: float, dynamics: Dynamics) -> Trajectory:
    """Return a straight drive from rest to rest, backwards if the distance is negative."""
    ahead = np.array([math.cos(pose.yaw), math.sin(pose.yaw), 0.0])
    return _move(pose, ahead, _profile(distance_m, 0.0, dynamics.v_max, dynamics.a_max))


def _move(pose: Pose2, direction: Array, profile: _Profile) -> Trajectory:
    poses = np.array([pose.x, pose.y, pose.yaw]) + profile.places[:, None] * direction
    curve = Curve(profile.times, poses, profile.speeds[:, None] * direction)
    if len(profile.times) > 1:
        curve = curve.refined(LONGEST_STEP_S)
    return Trajectory(*curve)


def _profile(distance: float, speed: float, highest: float, gain: float) -> _Profile:
    sign = math.copysign(1.0, distance - speed * abs(speed) / (2 * gain))
    way, start = sign * distance, sign * speed
    peak = min(math.sqrt(max(gain * way + start * start / 2, 0.0)), highest)
    pull_s, brake_s = abs(peak - start) / gain, peak / gain
    cruise_m = way - pull_s * (start + peak) / 2 - brake_s * peak / 2
    durations = [pull_s, max(cruise_m, 0.0) / peak if peak > 0 else 0.0, brake_s]
    times, places, speeds = [0.0], [0.0], [start]
    for duration, after in zip(durations, (peak, peak, 0.0), strict=True):
        if duration > 1e-9:
            times.append(times[-1] + duration)
            places.append(places[-1] + duration * (speeds[-1] + after) / 2)
            speeds.append(after)
    places[-1], speeds[-1] = (way, 0.0) if len(times) > 1 else (0.0, 0.0)
    return _Profile(np.array(times), sign * np.array(places), sign * np.array(speeds))
