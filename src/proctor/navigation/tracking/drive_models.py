"""The quadratic programs of the predictive controller: horizon, weights, solver, and a model for each drive.

A drive is predicted over equal stages, with constant accelerations in each. There is always a present plan;
the unknowns are how its accelerations are to change, in blocks of stages that grow longer into the future.
Speeds, and positions along an axis that nothing turns, depend on them through constant matrices. The position
of a differential drive is linearised around the plan of the tick before. A holonomic drive is linear in the
world frame, and turning is a separate problem.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import daqp
import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField
from proctor.kernels.tracking import (
    CLEARANCE_EVERY,
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
from proctor.robots.dynamics import Drive, Dynamics

BLOCKS: Final = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5)  # how many stages each block of unknowns lasts

POSITION: Final = 60.0
HEADING: Final = 60.0
SPEED: Final = 1.0
TURN_RATE: Final = 10.0
ACCELERATION: Final = 0.1
TURN_ACCELERATION: Final = 0.05
LAST_STAGE: Final = 50.0  # the weights of the last stage's state, times this

CLEARANCE_WEIGHT: Final = 1000.0


class Horizon(NamedTuple):
    """The stages ahead, N of them, and the B blocks of unknowns."""

    stages: int
    ends: NDArray[np.int64]  # (B,), the last stage of each block
    spread: Array  # (N, B): 1 where a stage belongs to a block
    speeds: Array  # (N, B): how a speed at the end of each stage changes with an acceleration in each block
    positions: Array  # (N, B): how a position changes with it
    weights: Array  # (N,): how much each stage's errors count
    clearance_rows: int

    @classmethod
    def of(cls, stages: int) -> Horizon:
        """Make one; its blocks are cut, or the last one repeated, to fit."""
        lengths = [*BLOCKS, *[BLOCKS[-1]] * (stages // BLOCKS[-1])]
        ends = np.minimum(np.cumsum(lengths), stages) - 1
        ends = ends[: int(np.argmax(ends)) + 1].astype(np.int64)
        spread = np.zeros((stages, len(ends)))
        spread[np.arange(stages), np.searchsorted(ends, np.arange(stages))] = 1.0
        since = np.subtract.outer(np.arange(stages), np.arange(stages))
        speeds = np.tril(np.full((stages, stages), STAGE_S)) @ spread
        positions = np.tril(STAGE_S * STAGE_S * (since + 0.5)) @ spread
        weights = np.ones(stages)
        weights[-1] = LAST_STAGE
        return cls(stages, ends, spread, speeds, positions, weights, stages // CLEARANCE_EVERY)


class Axis(NamedTuple):
    """Position, speed and acceleration along an axis that nothing turns, and what their errors cost."""

    position_pull: Array  # (B, N): the slope of the cost of each block per error of position at each stage
    speed_pull: Array
    acceleration_pull: Array
    cost: Array  # (B, B)

    @classmethod
    def of(cls, horizon: Horizon, position: float, speed: float, acceleration: float) -> Axis:
        """Make one with these weights."""
        position_pull = position * horizon.positions.T * horizon.weights
        speed_pull = speed * horizon.speeds.T * horizon.weights
        acceleration_pull = acceleration * horizon.spread.T
        cost = position_pull @ horizon.positions + speed_pull @ horizon.speeds
        return cls(position_pull, speed_pull, acceleration_pull, cost + acceleration_pull @ horizon.spread)

    def slope(self, positions: Array, speeds: Array, accelerations: Array) -> Array:
        """Return the slope of the cost, (B,) or (B, K) of errors (N,) or (N, K)."""
        return np.asarray(
            self.position_pull @ positions + self.speed_pull @ speeds + self.acceleration_pull @ accelerations
        )


class Solver:
    """Solves quadratic programs of one shape, each from the active rows of the one before.

    All unknowns have bounds, and these come before the bounds of the rows. `cost` (unknowns, unknowns)
    and `rows` (rows, unknowns) are defaults; the last `soft_rows` of the rows may be broken at a price.
    """

    def __init__(self, cost: Array, rows: Array, soft_rows: int) -> None:
        self._cost, self._rows = cost, rows
        bounds = len(cost) + len(rows)
        self._senses: NDArray[np.intc] = np.zeros(bounds, dtype=np.intc)
        self._senses[bounds - soft_rows :] = 8  # the solver's mark of a row that may be broken at a price
        self._softness = np.full(bounds, 1 / CLEARANCE_WEIGHT)
        self._model: Any = None

    def solve(
        self,
        slope: Array,
        lower: Array,
        upper: Array,
        *,
        cost: Array | None = None,
        rows: Array | None = None,
    ) -> Array | None:
        """Minimise x @ cost @ x / 2 + slope @ x within the bounds; a matrix not given is the one before."""
        if self._model is None:
            model = daqp.Model()
            cost, rows = self._cost if cost is None else cost, self._rows if rows is None else rows
            flag = model.setup(cost, slope, rows, upper, lower, self._senses)[0]
            model.soft_weights(rho_l=self._softness, rho_u=self._softness)
            self._model = model
        else:
            flag = self._model.update(H=cost, f=slope, A=rows, bupper=upper, blower=lower)
        if flag >= 0:
            found, _, flag, _ = self._model.solve()
            if flag > 0 and np.isfinite(found).all():
                return np.array(found)
        self.forget()
        return None

    def forget(self) -> None:
        """Start the next problem from nothing."""
        self._model = None


REVERSE = 0.2  # share of the speed that may be used backwards if the reference goes forwards
AXES = np.eye(2)
ASLANT = math.sqrt(0.5)
OCTAGON = np.array([[1.0, 0.0], [0.0, 1.0], [ASLANT, ASLANT], [ASLANT, -ASLANT]])
"""An octagon around the circle that speeds and accelerations keep to."""
TURNING = np.ones((1, 1))


class TrackingState(NamedTuple):
    """What a model plans from."""

    pose: Array  # [x, y, yaw], the yaw within half a turn of the reference's
    velocity: Array  # [vx, vy, omega]: of a differential drive in the robot's frame, else in the world's
    reference: Array  # (N + 1, 6) poses and velocities in the world frame from now on
    dynamics: Dynamics
    passed_s: float  # since the plan before
    field: ClearanceField | None  # None to ignore obstacles
    radius_m: float


class DriveModel(ABC):
    """Plans the accelerations of a drive along a reference, each time from the plan before."""

    def __init__(self, horizon: Horizon, rows: Array, *solvers: Solver) -> None:
        self._horizon, self._rows, self._solvers = horizon, rows, solvers
        bounds = len(rows) + rows.shape[1]
        self._lower, self._upper = np.full(bounds, -FREE), np.full(bounds, FREE)
        self._plan: Array | None = None

    @abstractmethod
    def plan(self, now: TrackingState) -> Array | None:
        """Return the accelerations [x, y, turning] to have now, in the frame of the velocity, or None."""

    def forget(self) -> None:
        """Plan the next time from nothing."""
        self._plan = None
        for solver in self._solvers:
            solver.forget()

    def _continued(self, wanted: Array, passed_s: float) -> Array:
        """Return the rest of the plan before; at its end, and if there is none, what the reference wants."""
        return wanted.copy() if self._plan is None else shifted(self._plan, passed_s / STAGE_S, wanted)

    def _rows_near_obstacles(self, now: TrackingState, states: Array, moves: Array) -> Array | None:
        """Fill in the bounds that keep the robot off obstacles; None if the rows need not change."""
        soft, lower = (
            self._rows[-self._horizon.clearance_rows :],
            self._lower[-self._horizon.clearance_rows :],
        )
        lower[:] = -FREE
        if now.field is None:
            return None
        near = fill_clearance(now.field, now.radius_m, states, now.reference[1:], moves, soft, lower)
        return self._rows if near else None


class Unicycle(DriveModel):
    """Plans accelerations (ahead, turning) of a differential drive."""

    def __init__(self, horizon: Horizon) -> None:
        blocks = len(horizon.ends)
        self._unknowns = 2 * blocks
        self._block_of = np.argmax(horizon.spread, axis=1)
        self._position_weights = POSITION * horizon.weights
        self._ahead = Axis.of(horizon, 0.0, SPEED, ACCELERATION)
        self._turn = Axis.of(horizon, HEADING, TURN_RATE, TURN_ACCELERATION)
        self._own_cost = np.zeros((self._unknowns, self._unknowns))  # does not depend on the pose
        self._own_cost[:blocks, :blocks], self._own_cost[blocks:, blocks:] = self._ahead.cost, self._turn.cost
        no_obstacle = np.eye(1, self._unknowns).repeat(horizon.clearance_rows, axis=0)
        rows = np.vstack([np.kron(AXES, horizon.speeds[horizon.ends]), no_obstacle])
        self._solver = Solver(self._own_cost, rows, horizon.clearance_rows)
        super().__init__(horizon, rows, self._solver)

    def plan(self, now: TrackingState) -> Array | None:
        """Plan along the heading; there is no acceleration to the side."""
        pose, velocity, dynamics = now.pose, now.velocity, now.dynamics
        targets = targets_of(now.reference)
        wanted = np.diff(targets[:, 3:], axis=0) / STAGE_S
        backwards = 1.0 if targets[:, 3].min() < -0.01 else REVERSE
        limits = np.array(
            [
                [-backwards * dynamics.v_max, dynamics.v_max, dynamics.a_max],
                [-dynamics.omega_max, dynamics.omega_max, dynamics.alpha_max],
            ]
        )
        plan = self._continued(wanted, now.passed_s)
        start = np.array([pose[0], pose[1], pose[2], velocity[0], velocity[2]])
        keep_possible(plan, start[3:], limits)
        states, moves = predict_unicycle(start, plan, self._block_of, self._unknowns, STAGE_S)
        errors, extra = states[1:] - targets[1:], plan - wanted
        cost, slope = condense(errors, self._position_weights, moves, self._own_cost)
        slope[: self._unknowns // 2] += self._ahead.slope(errors[:, 0], errors[:, 3], extra[:, 0])
        slope[self._unknowns // 2 :] += self._turn.slope(errors[:, 2], errors[:, 4], extra[:, 1])
        fill_bounds(AXES, plan, start[3:], limits, self._horizon.ends, self._lower, self._upper)
        rows = self._rows_near_obstacles(now, states[1:], moves)
        change = self._solver.solve(slope, self._lower, self._upper, cost=cost, rows=rows)
        if change is None:
            self.forget()
            return None
        self._plan = plan + self._horizon.spread @ change.reshape(2, -1).T
        return np.array([self._plan[0, 0], 0.0, self._plan[0, 1]])


class Holonomic(DriveModel):
    """Plans accelerations of a drive that moves and turns independently."""

    def __init__(self, horizon: Horizon) -> None:
        blocks = len(horizon.ends)
        self._move = Axis.of(horizon, POSITION, SPEED, ACCELERATION)
        self._turn = Axis.of(horizon, HEADING, TURN_RATE, TURN_ACCELERATION)
        self._moves = np.zeros((2, horizon.stages, 2 * blocks))  # how x and y change with the unknowns
        self._moves[0, :, :blocks] = self._moves[1, :, blocks:] = horizon.positions
        no_obstacle = np.eye(1, 2 * blocks).repeat(horizon.clearance_rows, axis=0)
        speeds = horizon.speeds[horizon.ends]
        rows = np.vstack([np.kron(OCTAGON[2:], np.eye(blocks)), np.kron(OCTAGON, speeds), no_obstacle])
        cost = np.kron(np.eye(2), self._move.cost).astype(np.float64)
        self._move_solver = Solver(cost, rows, horizon.clearance_rows)
        self._turn_solver = Solver(self._turn.cost, speeds, 0)
        super().__init__(horizon, rows, self._move_solver, self._turn_solver)

    def plan(self, now: TrackingState) -> Array | None:
        """Plan in the world frame."""
        velocity, dynamics = now.velocity, now.dynamics
        wanted = np.diff(now.reference[:, 3:], axis=0) / STAGE_S
        plan = self._continued(wanted, now.passed_s)
        keep_possible_in_plane(plan, velocity, dynamics.v_max, dynamics.a_max, STAGE_S)
        turn_limits = np.array([[-dynamics.omega_max, dynamics.omega_max, dynamics.alpha_max]])
        move, turn = np.ascontiguousarray(plan[:, :2]), np.ascontiguousarray(plan[:, 2:])
        keep_possible(turn, velocity[2:], turn_limits)
        plan[:, 2:] = turn
        states = predict_holonomic(now.pose, velocity, plan, STAGE_S)
        errors, extra = states - now.reference[1:], plan - wanted
        rows = self._rows_near_obstacles(now, states, self._moves)
        move_limits = np.array([[-dynamics.v_max, dynamics.v_max, dynamics.a_max]]).repeat(
            len(OCTAGON), axis=0
        )
        ends, lower, upper = self._horizon.ends, self._lower, self._upper
        fill_bounds(OCTAGON, move, velocity[:2], move_limits, ends, lower, upper)
        slope = self._move.slope(errors[:, :2], errors[:, 3:5], extra[:, :2]).T.ravel()
        moved = self._move_solver.solve(slope, lower, upper, rows=rows)
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


MODELS: Mapping[Drive, Callable[[Horizon], DriveModel]] = {"differential": Unicycle, "holonomic": Holonomic}
