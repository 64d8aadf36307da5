"""From corners to a trajectory: the time it takes, and how long the robot is under way, against toppra's own.

Ways of `houses-v1` and random ways over generated maps of 512 x 512 cells. For toppra, a way is length and
heading over length at the points of the smooth path, timed with constant accelerations.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import toppra
from toppra.algorithm import TOPPRA
from toppra.constraint import JointAccelerationConstraint, JointVelocityConstraint

from benchmarks.maps import CELL_M, MAPS
from benchmarks.rows import Row
from proctor.core.registry import suite_path
from proctor.core.types import Array
from proctor.exams.datasets import load_dataset
from proctor.kernels.clearance import ClearanceField
from proctor.maps.grid_map import GridMap
from proctor.navigation.path import Leg
from proctor.navigation.planner import find_path
from proctor.navigation.smooth_path import smooth_path
from proctor.navigation.timing.time_path import time_path
from proctor.robots.dynamics import Dynamics
from proctor.scenes.scene import Scene

T = TypeVar("T")
RADIUS_M, MARGIN_M = 0.17, 0.05
HOUSE_WAYS, MAP_WAYS = 40, 20
REPEATS = 3
BUDGET_S = 0.030
DYNAMICS = Dynamics()
EXTREMES = [
    JointVelocityConstraint([DYNAMICS.v_max, DYNAMICS.omega_max]),
    JointAccelerationConstraint([DYNAMICS.a_max, DYNAMICS.alpha_max]),
]


class Way(NamedTuple):
    field: ClearanceField
    corners: Array


class Start(NamedTuple):
    yaw: float
    v: float = 0.0
    omega: float = 0.0


def bench() -> list[Row]:
    logging.getLogger("toppra").setLevel(logging.ERROR)
    ways = [*house_ways(), *map_ways()]
    _smooth_and_time(ways[0])
    whole_s, ours_s, theirs_s, ratios = [], [], [], []
    for way in ways:
        spent_s, legs = best_of(lambda way=way: _smooth_and_time(way))
        whole_s.append(spent_s)
        if len(legs) > 1:
            continue  # toppra has no turns in place
        spent_s, ours = best_of(lambda leg=legs[0]: _timed(leg))
        ours_s.append(spent_s)
        spent_s, duration_s = best_of(lambda leg=legs[0]: toppra_duration_s(leg))
        theirs_s.append(spent_s)
        ratios.append(ours / duration_s)
    p95_s = float(np.percentile(whole_s, 95))
    worst = float(np.max(ratios))
    return [
        Row(f"smoothing and trajectory, p95 of {len(ways)} (vs budget)", p95_s, BUDGET_S, 1.0),
        Row("trajectory alone, mean (vs toppra)", float(np.mean(ours_s)), float(np.mean(theirs_s)), 0.2),
        Row(f"duration of a way, longest of {len(ratios)} (vs toppra's)", worst, 1.0, 1.01, "x"),
    ]


def house_ways() -> Iterator[Way]:
    for episode in load_dataset(suite_path("houses-v1")).select(count=HOUSE_WAYS):
        grid = Scene.load(Path(episode.scene_config_path)).map_at(episode.start_position)
        start, goal = episode.start_position, episode.goal_position
        yield _way(grid.field, np.array([start.x, start.y]), np.array([goal.x, goal.y]))


def map_ways() -> Iterator[Way]:
    rng = np.random.default_rng(0)
    for name, make in MAPS.items():
        if not name.endswith(" 512"):
            continue
        field = GridMap(make(), resolution_m=CELL_M, ends=True).field
        free = np.argwhere(field.cells > RADIUS_M + MARGIN_M)[:, ::-1]
        for _ in range(MAP_WAYS):
            start, goal = (rng.choice(free, 2, replace=False) + 0.5) * CELL_M
            yield _way(field, start, goal)


def _way(field: ClearanceField, start: Array, goal: Array) -> Way:
    return Way(field, find_path(field, start, goal, radius_m=RADIUS_M, margin_m=MARGIN_M).points)


def _smooth_and_time(way: Way) -> tuple[Leg, ...]:
    legs, _ = smooth_path(way.field, way.corners, radius_m=RADIUS_M, margin_m=MARGIN_M, dynamics=DYNAMICS)
    time_path(legs, DYNAMICS, start=Start(0.0), goal_yaw=0.0)
    return legs


def _timed(leg: Leg) -> float:
    return time_path([leg], DYNAMICS, start=Start(float(leg.yaw[0]))).duration_s


def toppra_duration_s(leg: Leg) -> float:
    path = toppra.SplineInterpolator(leg.arc_m, np.column_stack([leg.arc_m, leg.yaw]))
    solver = TOPPRA(EXTREMES, path, gridpoints=leg.arc_m, parametrizer="ParametrizeConstAccel")
    return float(solver.compute_trajectory(0.0, 0.0).duration)


def best_of(work: Callable[[], T]) -> tuple[float, T]:
    """Return the least time of a few, since others may use the machine, and the result."""
    least_s = np.inf
    for _ in range(REPEATS):
        started_s = time.perf_counter()
        result = work()
        least_s = min(least_s, time.perf_counter() - started_s)
    return least_s, result


if __name__ == "__main__":
    for row in bench():
        print(f"{row.name}  {row.ours:.5f}  {row.theirs:.5f}  {row.ours / row.theirs:.4f}")
