"""Drives that nobody drove: real maps, made-up paths, speeds and logs."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.interpolate import splev, splprep

from proctor.core.registry import suite_path
from proctor.core.types import Pose2
from proctor.exams.datasets import load_dataset
from proctor.navigation.path import Leg, Trajectory
from proctor.navigation.path import Path as NavigationPath
from proctor.navigation.skill.drive import Drive, DriveLog
from proctor.robots.dynamics import Dynamics
from proctor.scenes.scene import Scene

SUCCEEDED = {
    "status": "succeeded",
    "message": "Navigation completed successfully",
    "final_distance": 0.008,
    "total_time": 20.0,
}


def an_episode(index=0):
    return load_dataset(suite_path("houses-v1")).episodes[index]


def smooth_leg(corners):
    corners = np.concatenate([np.linspace(a, b, 8)[:-1] for a, b in pairwise(corners)])
    spline, _ = splprep(corners.T, s=0.1, k=5)
    at = np.linspace(0, 1, 400)
    (x, y), (dx, dy), (ddx, ddy) = (np.array(splev(at, spline, der=order)) for order in range(3))
    curvature = (dx * ddy - dy * ddx) / np.hypot(dx, dy) ** 3
    return Leg(np.stack([x, y], axis=1), np.unwrap(np.arctan2(dy, dx)), curvature)


def timed(leg, dynamics):
    arc = leg.arc_m
    speed = np.minimum(dynamics.v_max, dynamics.omega_max / (np.abs(leg.curvature) + 1e-9))
    speed[[0, -1]] = 0.02
    for order in (range(1, len(arc)), range(len(arc) - 2, -1, -1)):
        for i in order:
            before = i - 1 if order.step > 0 else i + 1
            gain = 2 * dynamics.a_max * abs(arc[i] - arc[before])
            speed[i] = min(speed[i], np.sqrt(speed[before] ** 2 + gain))
    times = np.concatenate([[0], np.cumsum(np.diff(arc) / ((speed[1:] + speed[:-1]) / 2))])
    along = np.stack([np.cos(leg.yaw), np.sin(leg.yaw), leg.curvature], axis=1)
    return Trajectory(times, np.column_stack([leg.points, leg.yaw]), speed[:, None] * along)


def made_up_drive(index=0, *, seed=0, result=SUCCEEDED, seen=()):
    """Return an episode as it would be driven by a robot that is a little beside its path."""
    episode = an_episode(index)
    start = Pose2(episode.start_position.x, episode.start_position.y, episode.start_yaw)
    goal = (episode.goal.x, episode.goal.y)
    grid = Scene.load(Path(episode.scene_config_path)).map()
    raw = grid.shortest_path((start.x, start.y), goal, radius_m=0.25)
    leg = smooth_leg(raw)
    trajectory = timed(leg, Dynamics())
    times = np.arange(0, trajectory.duration_s + 0.5, 1 / 60)
    targets = trajectory.sampled(times)
    rng = np.random.default_rng(seed)
    beside = np.convolve(rng.normal(0, 0.08, len(times) + 120), np.ones(120) / 120, "same")[60:-60]
    poses = targets[:, :3].copy()
    poses[:, 0] -= beside * np.sin(poses[:, 2])
    poses[:, 1] += beside * np.cos(poses[:, 2])
    speed = np.hypot(targets[:, 3], targets[:, 4])
    measured = np.stack([speed + rng.normal(0, 0.01, len(times)), 0 * speed, targets[:, 5]], axis=1)
    commands = np.stack([speed, 0 * speed, targets[:, 5]], axis=1)
    return Drive(
        result=result,
        start=start,
        goal=goal,
        goal_yaw=float(leg.yaw[-1]),
        grid=grid,
        path=NavigationPath(raw=raw, legs=(leg,), planner="grid", margin_m=0.05, clearance_m=0.2),
        trajectory=trajectory,
        log=DriveLog.of(np.column_stack([times, poses, measured, targets[:, :3], commands])),
        timings_s={"plan": 0.004, "smooth": 0.002, "trajectory": 0.003},
        seen=np.array(seen, dtype=float).reshape(-1, 2),
    )
