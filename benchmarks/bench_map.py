"""Maps of point clouds and of what sensors see, against budgets and the plain way in numpy and scipy.

Run it with `python -m benchmarks.bench_map`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt

from benchmarks.rows import Row
from proctor.core.types import Pose2, Scan
from proctor.kernels.clearance import clearances
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.worlds.mujoco.wheeled.robot import TICK_S

CELLS, CELL_M = 512, 0.05
POINTS = 1_000_000
REPEATS = 15
SCANS = 300
TICKS, CLOUD_TICKS = 300, 6
CLOUD_BUDGET_S = 0.040
SCAN_BUDGET_S = 0.002


def bench() -> list[Row]:
    """Make sure that both ways find the same, then time them in turns."""
    cloud = made_up_cloud(np.random.default_rng(0))
    single = cloud.astype(np.float32)
    occupied, field = plain_way(cloud)
    grid = GridMap.from_point_cloud(cloud)
    if not (np.array_equal(grid.occupied, occupied) and np.array_equal(grid.clearance_m, field)):
        raise AssertionError("the map of the cloud differs from numpy's and scipy's")
    ours_s, single_s, plain_s = median_s(
        lambda: GridMap.from_point_cloud(cloud),
        lambda: GridMap.from_point_cloud(single),
        lambda: plain_way(cloud),
    )
    transform_s, scipy_s = median_s(lambda: clearances(occupied, CELL_M), lambda: plain_field(occupied))
    size = f"{CELLS}x{CELLS}"
    return [
        Row(f"1M float64 points to a {size} map (vs the budget)", ours_s, CLOUD_BUDGET_S, bar=1.0),
        Row(f"1M float32 points to a {size} map (vs the budget)", single_s, CLOUD_BUDGET_S, bar=1.0),
        Row(f"1M float64 points to a {size} map (vs numpy and scipy)", ours_s, plain_s, bar=0.5),
        Row(f"distance field {size} (vs scipy's)", transform_s, scipy_s, bar=0.2),
        Row("live map 300x300, scan and field (vs the budget)", scan_s(), SCAN_BUDGET_S, bar=1.0),
        Row("tick of 60 Hz beside 1M points at 10 Hz, p99", ticking_s(single), TICK_S, bar=1.0),
    ]


def made_up_cloud(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A floor with walls on it, in the order in which a scanner would turn past them."""
    side_m = CELLS * CELL_M
    points = rng.uniform((0, 0, 0), (side_m, side_m, 2.0), (POINTS, 3))
    points[: POINTS // 2, 2] = rng.normal(0.0, 0.01, POINTS // 2).clip(-0.04, 0.04)
    walls = points[POINTS // 2 :]
    walls[:, 0] = np.round(walls[:, 0] / 3.2) * 3.2 + rng.uniform(-0.05, 0.05, len(walls))
    np.clip(points[:, :2], 0.0, side_m - 1e-6, out=points[:, :2])
    return points[np.argsort(np.arctan2(points[:, 1] - side_m / 2, points[:, 0] - side_m / 2))]


def plain_way(points: Any) -> tuple[Any, Any]:
    """Grid and clearances as one would write them with numpy and scipy."""
    points = points[np.isfinite(points).all(axis=1)]
    points = points[(points[:, 2] >= 0.05) & (points[:, 2] <= 1.3)]
    column, row = np.floor(points[:, :2] / CELL_M).astype(int).T
    occupied = np.bincount(row * CELLS + column, minlength=CELLS * CELLS).reshape(CELLS, CELLS) > 0
    return occupied, plain_field(occupied)


def plain_field(occupied: Any) -> Any:
    """The same definition of clearance, by scipy: on a lattice of half cells."""
    free = np.ones((2 * len(occupied) + 1, 2 * occupied.shape[1] + 1), dtype=bool)
    row, column = np.nonzero(occupied)
    for row_shift in range(3):
        for column_shift in range(3):
            free[2 * row + row_shift, 2 * column + column_shift] = False
    return CELL_M * np.where(occupied, -0.5, distance_transform_edt(free)[1::2, 1::2] / 2)


def median_s(*functions: Callable[[], Any]) -> list[float]:
    """Time functions in turns."""
    times_s = np.empty((REPEATS, len(functions)))
    for repeat in range(REPEATS):
        for index, function in enumerate(functions):
            started_s = time.perf_counter()
            function()
            times_s[repeat, index] = time.perf_counter() - started_s
    return [float(taken_s) for taken_s in np.median(times_s, axis=0)]


def rooms(cells: int) -> GridMap:
    """Rooms of 5 m x 5 m."""
    occupied = np.zeros((cells, cells), dtype=bool)
    occupied[::100], occupied[:, ::100], occupied[-1], occupied[:, -1] = True, True, True, True
    return GridMap(occupied)


def scan_s() -> float:
    """A robot drives in a room in which two people walk."""
    live, taken_s = LiveMap(rooms(300)), []
    angles = np.arange(360) * math.tau / 360 - math.pi
    for step in range(SCANS):
        time_s, pose = 0.1 * step, Pose2(6.0 + 0.01 * step, 7.0, 0.02 * step)
        ranges = np.full(360, math.inf)
        for person in (0.0, 2.0):
            x, y = (
                7.5 + 1.5 * math.cos(person + 0.3 * time_s) - pose.x,
                7.5 + 1.5 * math.sin(person + time_s) - pose.y,
            )
            apart = (angles + pose.yaw - math.atan2(y, x) + math.pi) % math.tau - math.pi
            away_m = math.hypot(x, y)
            ranges[np.abs(apart) < math.atan2(0.2, away_m)] = max(away_m - 0.2, 0.1)
        scan = Scan(ranges, -math.pi, math.tau / 360, 0.02, 10.0)
        started_s = time.perf_counter()
        live.mark_scan(scan, pose, time_s)
        live.field(time_s)
        taken_s.append(time.perf_counter() - started_s)
    return float(np.median(taken_s[1:]))


def ticking_s(cloud: Any) -> float:
    """How long after it was due a tick ends that reads the newest field, with clouds in work beside it."""
    taken_s = []
    with LiveMap(rooms(CELLS)) as live:
        live.mark_points(cloud[:10], 0.0)
        begin_s = time.perf_counter()
        for tick in range(TICKS):
            due_s = begin_s + tick * TICK_S
            time.sleep(max(due_s - time.perf_counter(), 0.0))
            if tick % CLOUD_TICKS == 0:
                live.mark_points_async(cloud, tick * TICK_S)
            live.field(tick * TICK_S)
            taken_s.append(time.perf_counter() - due_s)
    return float(np.percentile(taken_s, 99))


if __name__ == "__main__":
    for row in bench():
        print(f"{row.name}  {row.ours:.6f} s  {row.theirs:.6f} s  {row.ours / row.theirs:.3f}")
