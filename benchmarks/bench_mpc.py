"""One tick of trajectory tracking, both drives: against its budget, and against do-mpc.

A tick is a whole `control_loop`: pose, reference, linearisation, clearance rows, solve, command. The drive is
repeated, and of each tick the fastest time counts: it is the same computation each time, bit for bit, and what
else the machine does is not measured. do-mpc solves the same horizon, weights and bounds, without obstacles.

Run it with `python -m benchmarks.bench_mpc`.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from benchmarks.rows import Row
from proctor.core.types import Array
from proctor.navigation import mpc_problem as weights
from proctor.navigation.clearance import ClearanceField
from proctor.navigation.mpc import PERIOD_S, MpcController
from proctor.navigation.trajectory import Trajectory

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # About parts of do-mpc that are not used.
    import casadi
    import do_mpc

RADIUS_M = 0.17
BUDGET_S = 0.5e-3
REPEATS = 7
PEER_TICKS = range(120, 240, 2)
LIMITS = {"v_max": 1.0, "omega_max": 1.0, "a_max": 0.5, "alpha_max": 0.5}
STAGES = 30


class Base:
    """Moves exactly as it was told 50 ms ago, or nearly."""

    def __init__(self, drive: str, pose: Array) -> None:
        self.pose, self.velocity, self.time_s = pose.copy(), np.zeros(3), 0.0
        self.target_linear_velocity, self.target_angular_velocity = np.zeros(3), np.zeros(3)
        self._limits = {**LIMITS, "drive": drive}

    def get_world_pose(self) -> tuple[Array, Array]:
        x, y, yaw = self.pose
        return np.array([x, y, 0.0]), np.array([0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)])

    def get_velocity(self) -> Array:
        return self.velocity

    def get_dynamics_constraints(self) -> Mapping[str, Any]:
        return self._limits

    def is_collision_detected(self) -> bool:
        return False

    def move(self) -> None:
        told = np.array([*self.target_linear_velocity[:2], self.target_angular_velocity[2]])
        self.velocity = self.velocity + (1 - math.exp(-PERIOD_S / 0.05)) * (told - self.velocity)
        vx, vy, omega = self.velocity
        yaw = self.pose[2] + 0.5 * PERIOD_S * omega
        cos, sin = math.cos(yaw), math.sin(yaw)
        self.pose += PERIOD_S * np.array([cos * vx - sin * vy, sin * vx + cos * vy, omega])
        self.time_s += PERIOD_S


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
    base, field = Base(kind, reference.poses[0]), narrow_way(reference)
    controller = MpcController(base, now_s=lambda: base.time_s, field=lambda: field, radius_m=RADIUS_M)
    controller.set_reference_trajectory(reference)
    times_s, poses, velocities = [], [], []
    while base.time_s < reference.duration_s:
        poses.append(base.pose.copy())
        velocities.append([*base.target_linear_velocity[:2], base.target_angular_velocity[2]])
        started_s = time.perf_counter()
        controller.control_loop()
        times_s.append(time.perf_counter() - started_s)
        if controller.last is None or controller.last.fallback:
            raise AssertionError(f"the optimiser failed at {base.time_s} s")
        base.move()
    return np.array(times_s), np.array(poses), np.array(velocities)


def peer(kind: str) -> tuple[Any, list[Array]]:
    """Return do-mpc's controller for the same problem, and where it looks for its reference (31, 9)."""
    model = do_mpc.model.Model("discrete")
    pose = [model.set_variable("_x", name) for name in ("x", "y", "yaw")]
    target, wanted = model.set_variable("_tvp", "target", (6, 1)), model.set_variable("_tvp", "wanted", (3, 1))
    axes = ("ahead", "turn") if kind == "differential" else ("vx", "vy", "turn")
    speeds = [model.set_variable("_x", name) for name in axes]
    inputs = [model.set_variable("_u", f"to_{name}") for name in axes]
    h = weights.STAGE_S
    if kind == "differential":
        step, heading = h * (speeds[0] + h / 2 * inputs[0]), pose[2] + h / 2 * (speeds[1] + h / 4 * inputs[1])
        moves = [step * casadi.cos(heading), step * casadi.sin(heading), h * (speeds[1] + h / 2 * inputs[1])]
        forward = target[3] * casadi.cos(target[2]) + target[4] * casadi.sin(target[2])
        speed_targets, input_targets = [forward, target[5]], [wanted[0], wanted[2]]
        speed_weights, input_weights = [weights.SPEED, weights.TURN_RATE], [weights.ACCELERATION]
    else:
        moves = [h * (speed + h / 2 * change) for speed, change in zip(speeds, inputs, strict=True)]
        speed_targets, input_targets = [target[3], target[4], target[5]], [wanted[i] for i in range(3)]
        speed_weights, input_weights = [weights.SPEED] * 2 + [weights.TURN_RATE], [weights.ACCELERATION] * 2
    input_weights.append(weights.TURN_ACCELERATION)
    for name, here, move in zip(("x", "y", "yaw"), pose, moves, strict=True):
        model.set_rhs(name, here + move)
    for name, speed, change in zip(axes, speeds, inputs, strict=True):
        model.set_rhs(name, speed + h * change)
    cost = sum(
        weight * (found - aim) ** 2
        for weight, found, aim in zip(
            [weights.POSITION, weights.POSITION, weights.HEADING, *speed_weights],
            [*pose, *speeds],
            [target[0], target[1], target[2], *speed_targets],
            strict=True,
        )
    )
    effort = sum(w * (u - aim) ** 2 for w, u, aim in zip(input_weights, inputs, input_targets, strict=True))
    for name, expression in (("cost", cost), ("effort", effort)):
        model.set_expression(name, expression)
    if kind == "holonomic":
        model.set_expression("speed", speeds[0] ** 2 + speeds[1] ** 2)
        model.set_expression("push", inputs[0] ** 2 + inputs[1] ** 2)
    model.setup()
    cost, effort = model.aux["cost"], model.aux["effort"]
    controller = do_mpc.controller.MPC(model)
    controller.settings.n_horizon, controller.settings.t_step = STAGES, h
    controller.settings.store_full_solution = False
    controller.settings.supress_ipopt_output()
    controller.set_objective(mterm=weights.LAST_STAGE * cost, lterm=cost + effort)
    for name in axes:
        turns = name == "turn"
        controller.bounds["upper", "_x", name] = LIMITS["omega_max" if turns else "v_max"]
        controller.bounds["lower", "_x", name] = -0.2 if name == "ahead" else -1.0
        controller.bounds["upper", "_u", f"to_{name}"] = LIMITS["alpha_max" if turns else "a_max"]
        controller.bounds["lower", "_u", f"to_{name}"] = -LIMITS["alpha_max" if turns else "a_max"]
    if kind == "holonomic":
        controller.set_nl_cons("speed", model.aux["speed"], LIMITS["v_max"] ** 2)
        controller.set_nl_cons("push", model.aux["push"], LIMITS["a_max"] ** 2)
    ahead: list[Array] = [np.zeros((STAGES + 1, 9))]
    template = controller.get_tvp_template()

    def look_ahead(_: float) -> Any:
        for stage in range(STAGES + 1):
            template["_tvp", stage, "target"], template["_tvp", stage, "wanted"] = (
                ahead[0][stage, :6],
                ahead[0][stage, 6:],
            )
        return template

    controller.set_tvp_fun(look_ahead)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The cost of the inputs is part of the objective here.
        controller.setup()
    return controller, ahead


def bench_peer(kind: str, reference: Trajectory, poses: Array, velocities: Array) -> float:
    """Return do-mpc's median time, at states that our drive went through."""
    controller, ahead = peer(kind)
    times_s = []
    for tick in PEER_TICKS:
        stages_s = tick * PERIOD_S + weights.STAGE_S * np.arange(STAGES + 1)
        rows = reference.sampled(stages_s)
        wanted = np.diff(rows[:, 3:], axis=0, append=rows[-1:, 3:]) / weights.STAGE_S
        speed = np.diff(np.hypot(rows[:, 3], rows[:, 4]), append=0.0) / weights.STAGE_S
        if kind == "differential":
            wanted[:, 0] = speed
        ahead[0] = np.hstack([rows, wanted])
        velocity = velocities[tick][[0, 2]] if kind == "differential" else velocities[tick]
        state = np.concatenate([poses[tick], velocity])
        if tick == PEER_TICKS[0]:
            controller.x0 = state
            controller.set_initial_guess()
        started_s = time.perf_counter()
        controller.make_step(state)
        times_s.append(time.perf_counter() - started_s)
    return float(np.median(times_s))


def bench() -> list[Row]:
    """Time both drives along a lying eight between walls."""
    reference, rows = figure_eight(), []
    for kind in ("differential", "holonomic"):
        runs = [drive(kind, reference) for _ in range(REPEATS)]
        times_s = np.min([run[0] for run in runs], axis=0)
        theirs_s = bench_peer(kind, reference, *runs[0][1:])
        rows.append(Row(f"MPC tick, {kind}, p99 (vs budget)", float(np.percentile(times_s, 99)), BUDGET_S, 1.0))
        rows.append(Row(f"MPC tick, {kind}, median (vs do-mpc)", float(np.median(times_s)), theirs_s, 0.1))
    return rows


if __name__ == "__main__":
    for row in bench():
        print(f"{row.name}  {1e3 * row.ours:.3f} ms  {1e3 * row.theirs:.3f} ms  {row.ours / row.theirs:.3f}")
