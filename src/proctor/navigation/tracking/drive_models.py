"""The models that predict a drive: one for differential drives, one for holonomic ones.

The position of a differential drive is linearised around the plan of the tick before. A holonomic drive is
linear in the world frame, and turning is a separate problem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.tracking import (
    FREE,
    STAGE_S,
    condense,
    fill_bounds,
    fill_clearance,
    keep_possible,
    keep_possible_in_plane,
    predict_holonomic,
    predict_unicycle,
    shifted,
    targets_of,
)
from proctor.navigation.tracking import mpc_problem as mpc
from proctor.navigation.tracking.mpc_problem import Axis, Horizon, Solver
from proctor.robots.dynamics import Drive, Dynamics

REVERSE = 0.2  # share of the speed that may be used backwards if the reference goes forwards
AXES = np.eye(2)
ASLANT = math.sqrt(0.5)
OCTAGON = np.array([[1.0, 0.0], [0.0, 1.0], [ASLANT, ASLANT], [ASLANT, -ASLANT]])
"""An octagon around the circle that speeds and accelerations keep to."""
TURNING = np.ones((1, 1))


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
        self._rows = np.vstack([np.kron(AXES, horizon.speeds[horizon.ends]), no_obstacle])
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
            plan = shifted(self._plan, passed_s / STAGE_S, wanted)
        start = np.array([pose[0], pose[1], pose[2], velocity[0], velocity[2]])
        keep_possible(plan, start[3:], limits)
        states, moves = predict_unicycle(start, plan, self._block_of, self._unknowns, STAGE_S)
        errors, extra = states[1:] - targets[1:], plan - wanted
        cost, slope = condense(errors, self._position_weights, moves, self._own_cost)
        slope[: self._unknowns // 2] += self._ahead.slope(errors[:, 0], errors[:, 3], extra[:, 0])
        slope[self._unknowns // 2 :] += self._turn.slope(errors[:, 2], errors[:, 4], extra[:, 1])
        fill_bounds(AXES, plan, start[3:], limits, self._horizon.ends, self._lower, self._upper)
        soft, soft_lower = self._rows[-self._soft :], self._lower[-self._soft :]
        soft_lower[:] = -FREE
        near = field is not None and fill_clearance(
            field, radius_m, states[1:], reference[1:], moves, soft, soft_lower
        )
        rows = self._rows if near else None
        change = self._solver.solve(slope, self._lower, self._upper, cost=cost, rows=rows)
        if change is None:
            self.forget()
            return None
        self._plan = plan + self._horizon.spread @ change.reshape(2, -1).T
        return np.array([self._plan[0, 0], 0.0, self._plan[0, 1]])


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
        self._rows = np.vstack([np.kron(OCTAGON[2:], np.eye(blocks)), np.kron(OCTAGON, speeds), no_obstacle])
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
            plan = shifted(self._plan, passed_s / STAGE_S, wanted)
        keep_possible_in_plane(plan, velocity, dynamics.v_max, dynamics.a_max, STAGE_S)
        turn_limits = np.array([[-dynamics.omega_max, dynamics.omega_max, dynamics.alpha_max]])
        move, turn = np.ascontiguousarray(plan[:, :2]), np.ascontiguousarray(plan[:, 2:])
        keep_possible(turn, velocity[2:], turn_limits)
        plan[:, 2:] = turn
        states = predict_holonomic(pose, velocity, plan, STAGE_S)
        errors, extra = states - reference[1:], plan - wanted
        soft, soft_lower = self._rows[-self._soft :], self._lower[-self._soft :]
        soft_lower[:] = -FREE
        near = field is not None and fill_clearance(
            field, radius_m, states, reference[1:], self._moves, soft, soft_lower
        )
        move_limits = np.array([[-dynamics.v_max, dynamics.v_max, dynamics.a_max]]).repeat(
            len(OCTAGON), axis=0
        )
        ends, lower, upper = self._horizon.ends, self._lower, self._upper
        fill_bounds(OCTAGON, move, velocity[:2], move_limits, ends, lower, upper)
        slope = self._move.slope(errors[:, :2], errors[:, 3:5], extra[:, :2]).T.ravel()
        moved = self._move_solver.solve(slope, lower, upper, rows=self._rows if near else None)
        lower, upper = np.empty(2 * len(ends)), np.empty(2 * len(ends))
        fill_bounds(TURNING, turn, velocity[2:], turn_limits, ends, lower, upper)
        slope = self._turn.slope(errors[:, 2], errors[:, 5], extra[:, 2])
        turned = self._turn_solver.solve(slope, lower, upper)
        if moved is None or turned is None:
            self.forget()
            return None
        plan += self._horizon.spread @ np.vstack([moved.reshape(2, -1), turned]).T
        self._plan = plan
        return np.array(plan[0])


MODELS: Mapping[Drive, type[Unicycle | Holonomic]] = {"differential": Unicycle, "holonomic": Holonomic}
