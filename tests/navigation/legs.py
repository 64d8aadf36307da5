"""Legs of paths for tests, and how hard a trajectory drives."""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline

from proctor.navigation.path import Leg, Trajectory
from proctor.robots.dynamics import Dynamics


class Start(NamedTuple):
    yaw: float = 0.0
    v: float = 0.0
    omega: float = 0.0


def leg_of(spline: BSpline, spacing_m: float = 0.025) -> Leg:
    """Return evenly spaced points of a planar spline over [0, 1]."""
    fine = np.linspace(0.0, 1.0, 20_001)
    speeds = np.linalg.norm(spline(fine, 1), axis=1)
    along_m = np.concatenate([[0.0], np.cumsum((speeds[1:] + speeds[:-1]) / 2 * np.diff(fine))])
    count = max(2, int(np.ceil(along_m[-1] / spacing_m)) + 1)
    at = np.interp(np.linspace(0.0, along_m[-1], count), along_m, fine)
    first, second = spline(at, 1), spline(at, 2)
    turning = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    curvature = turning / np.linalg.norm(first, axis=1) ** 3
    return Leg(spline(at), np.unwrap(np.arctan2(first[:, 1], first[:, 0])), curvature)


def winding_leg(rng: np.random.Generator, length_m: float, bend: float, spacing_m: float = 0.025) -> Leg:
    """Return a smooth random leg, somewhere in the world; with a bend of 1 its curves are tight."""
    count = max(6, int(length_m) + 2)
    headings = rng.uniform(-np.pi, np.pi) + np.cumsum(rng.normal(0.0, 0.5 * bend, count))
    steps = length_m / (count - 1) * np.column_stack([np.cos(headings), np.sin(headings)])
    corners = rng.uniform(-30, 30, 2) + np.cumsum(steps, axis=0)
    return leg_of(make_interp_spline(np.linspace(0, 1, count), corners, k=5), spacing_m)


def straight_leg(start: tuple[float, float], end: tuple[float, float], points: int = 2) -> Leg:
    ends = np.array([start, end], dtype=float)
    yaw = np.arctan2(*(ends[1] - ends[0])[::-1])
    return Leg(np.linspace(*ends, points), np.full(points, yaw), np.zeros(points))


def arc_leg(radius_m: float, angle_rad: float, points: int = 80) -> Leg:
    """Return an arc that begins at the origin along x; to the left if the angle is positive."""
    yaw = np.linspace(0.0, angle_rad, points)
    side = np.sign(angle_rad)
    places = radius_m * np.column_stack([side * np.sin(yaw), side * (1 - np.cos(yaw))])
    return Leg(places, yaw, np.full(points, side / radius_m))


def hardest(trajectory: Trajectory, dynamics: Dynamics, step_s: float = 0.002) -> dict[str, float]:
    """Return the largest speeds and accelerations as shares of their limits, by differences of samples."""
    times_s = np.arange(0.0, trajectory.duration_s, step_s)
    rows = trajectory.sampled(times_s)
    moved = np.diff(rows[:, :3], axis=0) / step_s
    np.testing.assert_allclose(moved, (rows[1:, 3:] + rows[:-1, 3:]) / 2, atol=2e-3)
    gains = np.diff(rows[:, 3:], axis=0) / step_s
    speeds = np.hypot(rows[:, 3], rows[:, 4])
    holonomic = dynamics.drive == "holonomic"
    linear = np.hypot(gains[:, 0], gains[:, 1]) if holonomic else np.abs(np.diff(speeds)) / step_s
    return {
        "v_max": speeds.max() / dynamics.v_max,
        "omega_max": np.abs(rows[:, 5]).max() / dynamics.omega_max,
        "a_max": linear.max() / dynamics.a_max,
        "alpha_max": np.abs(gains[:, 2]).max() / dynamics.alpha_max,
    }


def sideways_mps(trajectory: Trajectory) -> float:
    """Return the largest speed across the heading, which a differential drive cannot have."""
    rows = trajectory.sampled(np.arange(0.0, trajectory.duration_s, 0.005))
    return float(np.abs(rows[:, 4] * np.cos(rows[:, 2]) - rows[:, 3] * np.sin(rows[:, 2])).max())
