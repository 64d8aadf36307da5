"""One tick of trajectory tracking, both drives: against its budget, and against do-mpc.

A tick is a whole `control_loop`: pose, reference, linearisation, clearance rows, solve, command. The drive is
repeated, and of each tick the fastest time counts: it is the same computation each time, bit for bit, and
what else the machine does is not measured. do-mpc is measured the same way, without obstacles.

Run it with `python -m benchmarks.bench_mpc`.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.base import LIMITS, Base
from benchmarks.mpc_peer import STAGES, Peer
from benchmarks.rows import Row
from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.tracking import STAGE_S, targets_of
from proctor.navigation.path import Trajectory
from proctor.navigation.tracking.mpc import PERIOD_S, MpcController

RADIUS_M = 0.17
BUDGET_S = 0.5e-3
REPEATS = 7
PEER_REPEATS = 3
PEER_TICKS = range(300, 340)
LAG_S = 0.05


def figure_eight() -> Trajectory:
    """Return a lying eight of 4 m, near the limits in its bends, from rest to rest."""
    times_s = np.linspace(0.0, 23.0, 23 * 30 + 1)
    rate = np.clip(np.minimum(times_s, 23.0 - times_s) / 2.0, 0.0, 1.0)
    phase = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    phase *= 2 * np.pi / phase[-1]
    points = 2.0 * np.column_stack([np.sin(phase), np.sin(phase) * np.cos(phase)])
    slopes = np.column_stack([np.cos(phase), np.cos(2 * phase)])
    yaw = np.unwrap(np.arctan2(slopes[:, 1], slopes[:, 0]))
    poses = np.column_stack([points, yaw])
    velocities = np.gradient(poses, times_s, axis=0)
    velocities[[0, -1]] = 0.0
    return Trajectory(times_s, poses, velocities)


def narrow_way(reference: Trajectory) -> ClearanceField:
    """Return walls along the reference, a little off its middle: there is a clearance row in every stage."""
    resolution_m, cells = 0.05, 120
    middle = (np.arange(cells) + 0.5) * resolution_m - cells * resolution_m / 2
    centres = np.stack(np.meshgrid(middle, middle), axis=-1).reshape(-1, 2)
    off, _ = cKDTree(reference.poses[:, :2] + [0.03, 0.03]).query(centres)
    corner = float(middle[0] - resolution_m / 2)
    return ClearanceField(0.28 - off.reshape(cells, cells), resolution_m, corner, corner)


def drive(kind: str, reference: Trajectory) -> tuple[Array, Array, Array]:
    """Drive once; return each tick's time, pose and the velocity it went on from."""
    base, field = Base(kind, reference.poses[0], lag_s=LAG_S), narrow_way(reference)
    controller = MpcController(base, now_s=lambda: base.time_s, field=lambda: field, radius_m=RADIUS_M)
    controller.set_reference_trajectory(reference)
    times_s, poses, velocities = [], [], []
    while base.time_s < reference.duration_s:
        poses.append(base.at.copy())
        velocities.append(base.commanded)
        started_s = time.perf_counter()
        controller.control_loop()
        times_s.append(time.perf_counter() - started_s)
        if controller.last is None or controller.last.fallback:
            raise AssertionError(f"the optimiser failed at {base.time_s} s")
        base.move()
    return np.array(times_s), np.array(poses), np.array(velocities)


def bench_peer(kind: str, reference: Trajectory, poses: Array, velocities: Array) -> float:
    """Return do-mpc's median time, at states that our drive went through."""
    runs = []
    for _ in range(PEER_REPEATS):
        peer, times_s = Peer(kind, LIMITS), []
        for tick in PEER_TICKS:
            rows = reference.sampled(tick * PERIOD_S + STAGE_S * np.arange(STAGES + 1))
            targets = targets_of(rows) if kind == "differential" else rows
            peer.look(targets, np.diff(targets[:, 3:], axis=0, append=targets[-1:, 3:]) / STAGE_S)
            velocity = velocities[tick][[0, 2]] if kind == "differential" else velocities[tick]
            started_s = time.perf_counter()
            peer.solve(np.concatenate([poses[tick], velocity]))
            times_s.append(time.perf_counter() - started_s)
        runs.append(times_s)
    return float(np.median(np.min(runs, axis=0)))


def bench() -> list[Row]:
    """Time both drives along a lying eight between walls."""
    reference, rows = figure_eight(), []
    for kind in ("differential", "holonomic"):
        runs = [drive(kind, reference) for _ in range(REPEATS)]
        times_s = np.min([run[0] for run in runs], axis=0)
        theirs_s = bench_peer(kind, reference, *runs[0][1:])
        rows.append(
            Row(f"MPC tick, {kind}, p99 (vs budget)", float(np.percentile(times_s, 99)), BUDGET_S, 1.0)
        )
        rows.append(Row(f"MPC tick, {kind}, median (vs do-mpc)", float(np.median(times_s)), theirs_s, 0.1))
    return rows


if __name__ == "__main__":
    for row in bench():
        print(f"{row.name}  {1e3 * row.ours:.3f} ms  {1e3 * row.theirs:.3f} ms  {row.ours / row.theirs:.3f}")
