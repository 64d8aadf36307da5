"""Prediction for a holonomic drive: linear in the world frame, and turning is a separate problem."""

from __future__ import annotations

import math

import numpy as np

from proctor.core.types import Array
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled
from proctor.navigation.tracking import mpc_problem as mpc
from proctor.navigation.tracking.mpc_problem import FREE, STAGE_S, Axis, Horizon, Solver
from proctor.robots.dynamics import Dynamics

ASLANT = math.sqrt(0.5)
FACES = np.array([[1.0, 0.0], [0.0, 1.0], [ASLANT, ASLANT], [ASLANT, -ASLANT]])
"""An octagon around the circle that speeds and accelerations keep to."""
TURNING = np.ones((1, 1))


class Holonomic:
    """Plans accelerations of a drive that moves and turns independently."""

    def __init__(self, horizon: Horizon) -> None:
        self._horizon, self._soft, blocks = horizon, horizon.clearance_rows, len(horizon.ends)
        self._move = Axis.of(horizon, mpc.POSITION, mpc.SPEED, mpc.ACCELERATION)
        self._turn = Axis.of(horizon, mpc.HEADING, mpc.TURN_RATE, mpc.TURN_ACCELERATION)
        self._moves = np.zeros((2, horizon.stages, 2 * blocks))  # how x and y change with the unknowns
        self._moves[0, :, :blocks] = self._moves[1, :, blocks:] = horizon.positions
        no_obstacle = np.eye(1, 2 * blocks).repeat(horizon.clearance_rows, axis=0)
        speeds = horizon.speeds[horizon.ends]
        self._rows = np.vstack([np.kron(FACES[2:], np.eye(blocks)), np.kron(FACES, speeds), no_obstacle])
        self._lower = np.full(8 * blocks + horizon.clearance_rows, -FREE)
        self._upper = np.full(8 * blocks + horizon.clearance_rows, FREE)
        cost = np.kron(np.eye(2), self._move.cost).astype(np.float64)
        self._move_solver = Solver(cost, self._rows, horizon.clearance_rows)
        self._turn_solver = Solver(self._turn.cost, speeds, 0)
        self._plan: Array | None = None

    def forget(self) -> None:
        """Plan the next time from nothing."""
        self._plan = None
        self._move_solver.forget()
        self._turn_solver.forget()

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
        """Return the accelerations [x, y, turning] in the world frame to have from now on, or None.

        The yaw of `pose` is within half a turn of the reference's. `velocity` [vx, vy, omega] is in
        the world frame, `reference` (N + 1, 6) poses and velocities in the world frame from now on.
        Without `field` obstacles are ignored.
        """
        wanted = np.diff(reference[:, 3:], axis=0) / STAGE_S
        plan = wanted.copy()
        if self._plan is not None:
            plan = mpc.shifted(self._plan, passed_s / STAGE_S, wanted)
        keep_possible(plan, velocity, dynamics.v_max, dynamics.a_max, STAGE_S)
        turn_limits = np.array([[-dynamics.omega_max, dynamics.omega_max, dynamics.alpha_max]])
        move, turn = np.ascontiguousarray(plan[:, :2]), np.ascontiguousarray(plan[:, 2:])
        mpc.keep_possible(turn, velocity[2:], turn_limits)
        plan[:, 2:] = turn
        states = predict(pose, velocity, plan, STAGE_S)
        errors, extra = states - reference[1:], plan - wanted
        soft, soft_lower = self._rows[-self._soft :], self._lower[-self._soft :]
        soft_lower[:] = -FREE
        near = field is not None and mpc.fill_clearance(
            field, radius_m, states, reference[1:], self._moves, soft, soft_lower
        )
        move_limits = np.array([[-dynamics.v_max, dynamics.v_max, dynamics.a_max]]).repeat(len(FACES), axis=0)
        ends, lower, upper = self._horizon.ends, self._lower, self._upper
        mpc.fill_bounds(FACES, move, velocity[:2], move_limits, ends, lower, upper)
        slope = self._move.slope(errors[:, :2], errors[:, 3:5], extra[:, :2]).T.ravel()
        moved = self._move_solver.solve(slope, lower, upper, rows=self._rows if near else None)
        lower, upper = np.empty(2 * len(ends)), np.empty(2 * len(ends))
        mpc.fill_bounds(TURNING, turn, velocity[2:], turn_limits, ends, lower, upper)
        slope = self._turn.slope(errors[:, 2], errors[:, 5], extra[:, 2])
        turned = self._turn_solver.solve(slope, lower, upper)
        if moved is None or turned is None:
            self.forget()
            return None
        plan += self._horizon.spread @ np.vstack([moved.reshape(2, -1), turned]).T
        self._plan = plan
        return np.array(plan[0])


@compiled
def keep_possible(plan: Array, start: Array, v_max: float, a_max: float, stage_s: float) -> None:
    """Change a plan (N, 3) where its speed or acceleration, in any direction, breaks the limits."""
    vx, vy = start[0], start[1]
    for stage in range(plan.shape[0]):
        next_x, next_y = vx + stage_s * plan[stage, 0], vy + stage_s * plan[stage, 1]
        slower = min(1.0, v_max / max(math.hypot(next_x, next_y), 1e-9))
        ax, ay = (slower * next_x - vx) / stage_s, (slower * next_y - vy) / stage_s
        softer = min(1.0, a_max / max(math.hypot(ax, ay), 1e-9))
        plan[stage, 0], plan[stage, 1] = softer * ax, softer * ay
        vx, vy = vx + stage_s * plan[stage, 0], vy + stage_s * plan[stage, 1]


@compiled
def predict(pose: Array, velocity: Array, plan: Array, stage_s: float) -> Array:
    """Return (N, 6) poses and velocities at the ends of the stages of a plan (N, 3)."""
    states = np.empty((plan.shape[0], 6))
    for axis in range(3):
        position, speed = pose[axis], velocity[axis]
        for stage in range(plan.shape[0]):
            position += stage_s * (speed + 0.5 * stage_s * plan[stage, axis])
            speed += stage_s * plan[stage, axis]
            states[stage, axis], states[stage, 3 + axis] = position, speed
    return states
