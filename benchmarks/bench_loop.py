"""A 60 Hz control loop by the wall clock, beside a planner that never rests and clouds of a million points.

Each tick reads the newest map, tracks the trajectory with the MPC, and as soon as the planning process has
answered asks it for the next path or trajectory, with each planner in turn. Each second a cloud arrives, in
which something has moved, so that the map changes and travels to the planner anew. A frame is missed if its
tick ends after the next one should have begun. 10,000 ticks take 167 s.

On a machine that is shared, a loop that does nothing misses frames, too, for the processor is taken away from
it. So missed frames are compared with those of an idle loop at the same time; and no tick may compute for
longer than a frame.

Run it with `python -m benchmarks.bench_loop`, which also tells how late ticks began and how long they took.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections import Counter
from typing import NamedTuple

import numpy as np

from benchmarks.base import Base
from benchmarks.maps import CELL_M, rooms
from benchmarks.rows import Row
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.maps.grid_map import GridMap
from proctor.maps.live_map import LiveMap
from proctor.navigation.path import RobotMotion
from proctor.navigation.process.client import PlanningClient
from proctor.navigation.process.plan import PlanRequest
from proctor.navigation.tracking.mpc import PERIOD_S, MpcController

TICKS = 10_000
CLOUD_TICKS = 60
CLOUD_POINTS = 1_000_000
PLANNERS = ("grid", "grid", "grid", "rrt", "rrt_star", "prm", "rrt_connect")
WARM_UP_S = 600.0


class Ticks(NamedTuple):
    """What was measured of each tick."""

    late_s: Array
    """How long after its time it began."""
    took_s: Array
    computed_s: Array
    """Its processor time."""
    answers: Counter[str]
    """What the planner did meanwhile."""
    idle_missed: int
    """Frames that a loop which does nothing has missed meanwhile."""

    @property
    def missed(self) -> int:
        return int((self.late_s + self.took_s > PERIOD_S).sum())


IDLE_LOOP = """
import sys, time
period_s, ticks, missed = float(sys.argv[1]), int(sys.argv[2]), 0
began_s = time.perf_counter() + period_s
for tick in range(ticks):
    time.sleep(max(began_s + tick * period_s - time.perf_counter(), 0.0))
    missed += time.perf_counter() - began_s - tick * period_s > period_s
print(missed)
"""


class PlanningDemand:
    """Asks for paths between random places, and for their trajectories, one after the other."""

    def __init__(self, client: PlanningClient, field: ClearanceField, rng: np.random.Generator) -> None:
        self._client, self._rng = client, rng
        self._places = (np.argwhere(field.cells > 0.3)[:, ::-1] + 0.5) * CELL_M
        self._planners = itertools.cycle(PLANNERS)
        self.answers: Counter[str] = Counter()

    def tick(self, field: ClearanceField, version: int, controller: MpcController, robot: Base) -> None:
        answer = self._client.poll()
        if answer is None and self._client.busy:
            return
        if answer is not None and answer.path is not None:
            self.answers[answer.path.planner] += 1
        if answer is not None and answer.failure is not None:
            self.answers[answer.failure.reason] += 1
        elif answer is not None and answer.trajectory is not None:
            robot.at = answer.trajectory.poses[0].copy()
            controller.set_reference_trajectory(answer.trajectory)
        start, goal = self._places[self._rng.integers(len(self._places), size=2)]
        request = PlanRequest(
            start=RobotMotion(start[0], start[1], self._rng.uniform(-3, 3)),
            goal_xy=tuple(goal),
            planner=next(self._planners),
            timeout_s=2.0,
        )
        self._client.submit(request, field, version)


def clouds(grid: GridMap, rng: np.random.Generator, count: int = 4) -> list[Array]:
    """Return clouds of the floor and the walls, with a box that is elsewhere in each."""
    size_m = len(grid.occupied) * CELL_M
    walls = (np.argwhere(grid.occupied)[:, ::-1] + 0.5) * CELL_M
    points = []
    for _ in range(count):
        cloud = rng.uniform([0, 0, 0], [size_m, size_m, 0.02], (CLOUD_POINTS, 3))
        on_walls = CLOUD_POINTS // 2
        cloud[:on_walls, :2] = walls[rng.integers(len(walls), size=on_walls)]
        cloud[:on_walls, 2] = rng.uniform(0.0, 2.0, on_walls)
        box = rng.uniform(2.0, size_m - 2.0, 2)
        cloud[:5000] = np.array([*box, 0.3]) + rng.uniform(-0.3, 0.3, (5000, 3))
        points.append(cloud)
    return points


def run(ticks: int) -> Ticks:
    rng = np.random.default_rng(0)
    grid = GridMap(rooms(512, room_m=4.0, door_m=0.9, seed=0), resolution_m=CELL_M)
    seen = clouds(grid, rng)
    late_s, took_s, computed_s = np.zeros((3, ticks))
    with LiveMap(grid, decay_s=1.5) as live, PlanningClient() as client:
        live.mark_points_async(seen[0], 0.0)
        live.finish_clouds()
        newest = live.field(0.0)
        if not client.wait_until_ready(WARM_UP_S):
            raise RuntimeError("the planning process is not ready")
        robot, time_s = Base("differential", np.zeros(3)), 0.0
        controller = MpcController(robot, now_s=lambda: time_s, field=lambda: newest)
        demand = PlanningDemand(client, newest, rng)
        command = [sys.executable, "-c", IDLE_LOOP, str(PERIOD_S), str(ticks)]
        idle = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        began_s = time.perf_counter() + PERIOD_S
        for tick in range(ticks):
            due_s = began_s + tick * PERIOD_S
            time.sleep(max(due_s - time.perf_counter(), 0.0))
            now_s, computed_until_s = time.perf_counter(), time.thread_time()
            time_s = tick * PERIOD_S
            if tick % CLOUD_TICKS == 0:
                live.mark_points_async(seen[tick // CLOUD_TICKS % len(seen)], time_s)
            newest = live.field(time_s)
            controller.control_loop()
            robot.move()
            demand.tick(newest, live.version, controller, robot)
            late_s[tick], took_s[tick] = now_s - due_s, time.perf_counter() - now_s
            computed_s[tick] = time.thread_time() - computed_until_s
        idle_missed = int(idle.communicate(timeout=60)[0])
    return Ticks(late_s, took_s, computed_s, demand.answers, idle_missed)


def rows_of(measured: Ticks) -> list[Row]:
    ticks, plans = len(measured.took_s), measured.answers.total()
    too_long = int((measured.computed_s > PERIOD_S).sum())
    return [
        Row(
            f"60 Hz loop: frames missed, {plans} plans (vs an idle loop)",
            measured.missed,
            max(measured.idle_missed, 1),
            2.0,
            "frames",
        ),
        Row("60 Hz loop: ticks that compute for too long", too_long, ticks, 0.0, "frames"),
        Row("60 Hz loop: work of a tick, p99", float(np.percentile(measured.took_s, 99)), PERIOD_S, 1.0),
    ]


def bench() -> list[Row]:
    return rows_of(run(TICKS))


if __name__ == "__main__":
    measured = run(TICKS)
    for row in rows_of(measured):
        print(row)
    for what, values_s in (("begins late by", measured.late_s), ("takes", measured.took_s)):
        shown = ", ".join(f"{1e3 * np.percentile(values_s, share):.2f}" for share in (50, 99, 99.9, 100))
        print(f"a tick {what} (p50, p99, p99.9, max): {shown} ms")
    print(dict(measured.answers))
