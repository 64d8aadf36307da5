"""Simple moves: a turn in place, a straight drive, and braking along a trajectory."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.geometry import wrap_angle
from proctor.core.types import Array, Pose2
from proctor.navigation.path import Trajectory
from proctor.navigation.timing.curve import LONGEST_STEP_S, Curve, slowest_rates
from proctor.robots.dynamics import Dynamics

STILL = 1e-6  # metres or radians per second


def turn(pose: Pose2, angle_rad: float, dynamics: Dynamics, *, omega: float = 0.0) -> Trajectory:
    """Return a turn in place, left if positive, of any size; `omega` is the present yaw rate."""
    profile = _profile(angle_rad, omega, dynamics.omega_max, dynamics.alpha_max)
    return _move(pose, np.array([0.0, 0.0, 1.0]), *profile)


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
    return _move(pose, ahead, *_profile(distance_m, 0.0, dynamics.v_max, dynamics.a_max))


def _move(pose: Pose2, direction: Array, times_s: Array, places: Array, speeds: Array) -> Trajectory:
    poses = np.array([pose.x, pose.y, pose.yaw]) + places[:, None] * direction
    curve = Curve(times_s, poses, speeds[:, None] * direction)
    if len(times_s) > 1:
        curve = curve.refined(LONGEST_STEP_S)
    return Trajectory(*curve)


def _profile(distance: float, speed: float, highest: float, gain: float) -> tuple[Array, Array, Array]:
    """Return times, places and speeds of the quickest move to rest: at most three constant accelerations."""
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
    return (np.array(times), sign * np.array(places), sign * np.array(speeds))


def brake(trajectory: Trajectory, time_s: float, dynamics: Dynamics) -> Trajectory:
    """Return how the robot comes to rest soonest on its path, from where it is at a time of a trajectory.

    It brakes with `a_max`, so that it stands within its stopping distance, and turns as the path does;
    with `alpha_max` where it turns in place. In a bend the yaw rate may therefore change faster than
    `alpha_max`: to keep that, too, a robot that leaves a bend would have to speed up first. The new
    trajectory begins at 0 with the state of that time.
    """
    pose, velocity = trajectory.at(time_s)
    speed, omega = float(np.hypot(velocity[0], velocity[1])), abs(float(velocity[2]))
    if max(speed, omega) < STILL:
        return Trajectory([0.0], [pose], [np.zeros(3)])
    turns = speed < STILL
    horizon_s = omega / dynamics.alpha_max if turns else speed / dynamics.a_max
    step_s = horizon_s / 400
    while True:
        curve = _ahead(trajectory, time_s, horizon_s, (pose, velocity)).refined(step_s)
        rates, end_s = slowest_rates(curve, dynamics)
        if rates[-1] == 0.0 or not curve.slopes[-1].any():
            return curve.at(np.append(curve.knots[: len(rates) - 1], end_s)).timed(rates)
        horizon_s *= 2


def _ahead(trajectory: Trajectory, time_s: float, horizon_s: float, state: tuple[Array, Array]) -> Curve:
    """Return a trajectory as a curve over its time, from a state on for a while or until it rests."""
    times_s = trajectory.times_s
    later = np.flatnonzero(times_s > time_s + 1e-4)
    enough = np.searchsorted(times_s[later], time_s + horizon_s) + 1
    later = later[: max(enough, 1)]
    still = np.flatnonzero((np.abs(trajectory.velocities[later]) < STILL).all(axis=1))
    later = later[: still[0] + 1] if len(still) else later
    poses, velocities = trajectory.poses[later], trajectory.velocities[later]
    if len(still):
        velocities[-1] = 0.0
    return Curve(
        np.append(time_s, times_s[later]), np.vstack([state[0], poses]), np.vstack([state[1], velocities])
    )
