"""The rest of a trajectory, driven to a stop along its own path."""

from __future__ import annotations

import numpy as np

from proctor.core.types import Array
from proctor.navigation.timing.curve import Curve
from proctor.navigation.timing.time_optimal import slowest_rates
from proctor.navigation.timing.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics

STEPS = 400
APART_S = 1e-4
STILL = 1e-6
"""Metres or radians per second."""


def brake(trajectory: Trajectory, time_s: float, dynamics: Dynamics) -> Trajectory:
    """Return how the robot comes to rest soonest on its path, from where it is at a time of a trajectory.

    It brakes with `a_max`, so that it stands within its stopping distance, and turns as the path does; with
    `alpha_max` where it turns in place. In a bend the yaw rate may therefore change faster than
    `alpha_max`: to keep that, too, a robot that leaves a bend would have to speed up first.

    The new trajectory begins at 0 with the state of that time.
    """
    pose, velocity = trajectory.at(time_s)
    speed, omega = float(np.hypot(velocity[0], velocity[1])), abs(float(velocity[2]))
    if max(speed, omega) < STILL:
        return Trajectory([0.0], [pose], [np.zeros(3)])
    turns = speed < STILL
    horizon_s = omega / dynamics.alpha_max if turns else speed / dynamics.a_max
    step_s = horizon_s / STEPS
    while True:
        curve = _ahead(trajectory, time_s, horizon_s, (pose, velocity)).refined(step_s)
        rates, end_s = slowest_rates(curve, dynamics)
        if rates[-1] == 0.0 or not curve.slopes[-1].any():
            return curve.at(np.append(curve.knots[: len(rates) - 1], end_s)).timed(rates)
        horizon_s *= 2


def _ahead(trajectory: Trajectory, time_s: float, horizon_s: float, state: tuple[Array, Array]) -> Curve:
    """Return a trajectory as a curve over its time, from a state on for a while or until it rests."""
    times_s = trajectory.times_s
    later = np.flatnonzero(times_s > time_s + APART_S)
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
