"""Prediction for a differential drive: its position is linearised around the plan of the tick before."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled
from proctor.navigation.tracking import mpc_problem as mpc
from proctor.navigation.tracking.mpc_problem import FREE, STAGE_S, Axis, Horizon, Solver
from proctor.robots.dynamics import Dynamics

REVERSE = 0.2  # share of the speed that may be used backwards if the reference goes forwards
FACES = np.eye(2)


class Unicycle:
    """Plans accelerations (ahead, turning) of a differential drive along a reference."""

    def __init__(self, horizon: Horizon) -> None:
        self._horizon, self._soft, blocks = horizon, horizon.clearance_rows, len(horizon.ends)
        self._unknowns = 2 * blocks
        self._block_of = np.argmax(horizon.spread, axis=1)
        self._position_weights = mpc.POSITION * horizon.weights
        self._ahead = Axis.of(horizon, 0.0, mpc.SPEED, mpc.ACCELERATION)
        self._turn = Axis.of(horizon, mpc.HEADING, mpc.TURN_RATE, mpc.TURN_ACCELERATION)
        self._own_cost = np.zeros((self._unknowns, self._unknowns))  # does not depend on the pose
        self._own_cost[:blocks, :blocks], self._own_cost[blocks:, blocks:] = self._ahead.cost, self._turn.cost
        no_obstacle = np.eye(1, self._unknowns).repeat(horizon.clearance_rows, axis=0)
        self._rows = np.vstack([np.kron(FACES, horizon.speeds[horizon.ends]), no_obstacle])
        self._lower = np.full(2 * self._unknowns + horizon.clearance_rows, -FREE)
        self._upper = np.full(2 * self._unknowns + horizon.clearance_rows, FREE)
        self._solver = Solver(self._own_cost, self._rows, horizon.clearance_rows)
        self._plan: Array | None = None

    def forget(self) -> None:
        """Plan the next time from nothing."""
        self._plan = None
        self._solver.forget()

    def plan(
        self,
        pose: Array,
        velocity: Array,
        reference: Array,
        dynamics: Dynamics,
        passed_s: float,
        field: ClearanceField | None,
        radius_m: float,
    ) -> Array | None:
        """Return the accelerations [ahead, left, turning], as `Holonomic.plan`, all in the robot's frame."""
        targets = targets_of(reference)
        wanted = np.diff(targets[:, 3:], axis=0) / STAGE_S
        backwards = 1.0 if targets[:, 3].min() < -0.01 else REVERSE
        limits = np.array(
            [
                [-backwards * dynamics.v_max, dynamics.v_max, dynamics.a_max],
                [-dynamics.omega_max, dynamics.omega_max, dynamics.alpha_max],
            ]
        )
        plan = wanted.copy()
        if self._plan is not None:
            plan = mpc.shifted(self._plan, passed_s / STAGE_S, wanted)
        start = np.array([pose[0], pose[1], pose[2], velocity[0], velocity[2]])
        mpc.keep_possible(plan, start[3:], limits)
        states, moves = predict(start, plan, self._block_of, self._unknowns, STAGE_S)
        errors, extra = states[1:] - targets[1:], plan - wanted
        cost, slope = condense(errors, self._position_weights, moves, self._own_cost)
        slope[: self._unknowns // 2] += self._ahead.slope(errors[:, 0], errors[:, 3], extra[:, 0])
        slope[self._unknowns // 2 :] += self._turn.slope(errors[:, 2], errors[:, 4], extra[:, 1])
        mpc.fill_bounds(FACES, plan, start[3:], limits, self._horizon.ends, self._lower, self._upper)
        soft, soft_lower = self._rows[-self._soft :], self._lower[-self._soft :]
        soft_lower[:] = -FREE
        near = field is not None and mpc.fill_clearance(
            field, radius_m, states[1:], reference[1:], moves, soft, soft_lower
        )
        rows = self._rows if near else None
        change = self._solver.solve(slope, self._lower, self._upper, cost=cost, rows=rows)
        if change is None:
            self.forget()
            return None
        self._plan = plan + self._horizon.spread @ change.reshape(2, -1).T
        return np.array([self._plan[0, 0], 0.0, self._plan[0, 1]])


@compiled
def targets_of(reference: Array) -> Array:
    """Return (N, 5) x, y, yaw, speed along the yaw, which may be negative, and turn rate."""
    targets = np.empty((reference.shape[0], 5))
    for row in range(reference.shape[0]):
        cos, sin = math.cos(reference[row, 2]), math.sin(reference[row, 2])
        for axis in range(3):
            targets[row, axis] = reference[row, axis]
        targets[row, 3] = reference[row, 3] * cos + reference[row, 4] * sin
        targets[row, 4] = reference[row, 5]
    return targets


@compiled
def predict(
    start: Array, plan: Array, block_of: NDArray[np.int64], unknowns: int, stage_s: float
) -> tuple[Array, Array]:
    """Return the states (N + 1, 5) that a plan (N, 2) leads to, and how x and y change with the unknowns.

    A stage goes straight along the heading at its middle. The moves are (2, N, unknowns): those of the
    acceleration ahead come first, then those of turning.
    """
    count, blocks = plan.shape[0], unknowns // 2
    states, moves = np.empty((count + 1, 5)), np.zeros((2, count, unknowns))
    x, y, yaw, speed, rate = start[0], start[1], start[2], start[3], start[4]
    for stage in range(count + 1):
        states[stage, 0], states[stage, 1], states[stage, 2] = x, y, yaw
        states[stage, 3], states[stage, 4] = speed, rate
        if stage == count:
            break
        ahead, turning = plan[stage, 0], plan[stage, 1]
        step_m = stage_s * (speed + 0.5 * stage_s * ahead)
        heading = yaw + 0.5 * stage_s * (rate + 0.25 * stage_s * turning)
        cos, sin = math.cos(heading), math.sin(heading)
        x, y, yaw = x + step_m * cos, y + step_m * sin, yaw + stage_s * (rate + 0.5 * stage_s * turning)
        speed, rate = speed + stage_s * ahead, rate + stage_s * turning
        if stage > 0:
            for unknown in range(unknowns):
                moves[0, stage, unknown] = moves[0, stage - 1, unknown]
                moves[1, stage, unknown] = moves[1, stage - 1, unknown]
        for earlier in range(stage + 1):
            longer = stage_s * stage_s * (1.0 if earlier < stage else 0.5)
            turned = stage_s * stage_s * (float(stage - earlier) if earlier < stage else 0.125)
            block = block_of[earlier]
            moves[0, stage, block] += cos * longer
            moves[1, stage, block] += sin * longer
            moves[0, stage, blocks + block] -= step_m * sin * turned
            moves[1, stage, blocks + block] += step_m * cos * turned
    return states, moves


@compiled
def condense(errors: Array, weights: Array, moves: Array, own_cost: Array) -> tuple[Array, Array]:
    """Return cost and slope of a quadratic program: of errors of x and y, added to `own_cost`."""
    cost, slope = own_cost.copy(), np.zeros(own_cost.shape[0])
    for stage in range(errors.shape[0]):
        for axis in range(2):
            row = moves[axis, stage]
            for i in range(row.shape[0]):
                slope[i] += weights[stage] * errors[stage, axis] * row[i]
                pull = weights[stage] * row[i]
                for j in range(row.shape[0]):
                    cost[i, j] += pull * row[j]
    return cost, slope
