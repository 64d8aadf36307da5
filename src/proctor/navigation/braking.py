"""The rest of a trajectory, driven to a stop along its own path."""

from __future__ import annotations

import numpy as np

from proctor.navigation.curve import Curve
from proctor.navigation.time_optimal import slowest_rates
from proctor.navigation.trajectory import Trajectory
from proctor.robots.dynamics import Dynamics

STEP_S = 0.01
APART_S = 1e-4
STILL = 1e-6
"""Metres or radians per second."""


def brake(trajectory: Trajectory, time_s: float, dynamics: Dynamics) -> Trajectory:
    """Return how the robot comes to rest soonest, from where it is at a time of a trajectory, on its path.

    The path is that of the trajectory, turns included. The new trajectory begins at 0 with the state of that
    time, and keeps the limits as well as the old one does.
    """
    curve = _until_rest(trajectory, time_s)
    if len(curve.knots) < 2:
        return Trajectory([0.0], curve.poses[:1], np.zeros((1, 3)))
    curve = curve.refined(STEP_S)
    rates = slowest_rates(curve, dynamics)
    stops = np.flatnonzero(rates == 0.0)
    if len(stops):
        end = stops[0] + 1
        curve, rates = Curve(*(part[:end] for part in curve)), rates[:end]
    return curve.timed(rates)


def _until_rest(trajectory: Trajectory, time_s: float) -> Curve:
    """Return the trajectory as a curve over its time, from a time to where it comes to rest next."""
    pose, velocity = trajectory.at(time_s)
    if np.abs(velocity).max() < STILL:
        return Curve(np.array([time_s]), pose[None], velocity[None])
    later = np.flatnonzero(trajectory.times_s > time_s + APART_S)
    still = np.flatnonzero((np.abs(trajectory.velocities[later]) < STILL).all(axis=1))
    later = later[: still[0] + 1] if len(still) else later
    return Curve(
        np.append(time_s, trajectory.times_s[later]),
        np.vstack([pose, trajectory.poses[later]]),
        np.vstack([velocity, trajectory.velocities[later]]),
    )
