"""What the predictive controllers of all drives share: the horizon, weights, bounds, and the solver.

A drive is predicted over equal stages, with constant accelerations in each. There is always a present plan;
the unknowns are how its accelerations are to change, in blocks of stages that grow longer into the future.
Speeds, and positions along an axis that nothing turns, depend on them through constant matrices.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import daqp
import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.maps.clearance import clearance_at
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled

STAGE_S: Final = 0.05
BLOCKS: Final = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5)  # how many stages each block of unknowns lasts

POSITION: Final = 60.0
HEADING: Final = 60.0
SPEED: Final = 1.0
TURN_RATE: Final = 10.0
ACCELERATION: Final = 0.1
TURN_ACCELERATION: Final = 0.05
LAST_STAGE: Final = 50.0  # the weights of the last stage's state, times this

CLEARANCE_EVERY: Final = 2  # one clearance row per so many stages: at 1 m/s they are two cells apart
NEAR_M: Final = 0.15  # beyond the robot's radius: what is farther away does not matter yet
MARGIN_M: Final = 0.05  # how much more than its radius the robot likes to keep, unless its reference does not
BESIDE_M: Final = 0.1  # so near to the reference, a slope of the field tells the room there
CLEARANCE_WEIGHT: Final = 1000.0
FREE: Final = 1e30  # stands for "unbounded" in the quadratic program


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


@compiled
def shifted(plan: Array, stages_passed: float, otherwise: Array) -> Array:
    """Return the rest of a plan (N, axes) after a part of it has passed; at its end goes another one."""
    count = plan.shape[0]
    rest = otherwise.copy()
    for stage in range(count):
        at = stage + stages_passed
        first = int(at)
        if first + 1 < count:
            part = at - first
            for axis in range(plan.shape[1]):
                rest[stage, axis] = plan[first, axis] * (1.0 - part) + plan[first + 1, axis] * part
    return rest


@compiled
def keep_possible(plan: Array, start: Array, limits: Array) -> None:
    """Change a plan (N, axes) where it breaks limits: least and greatest speed, and acceleration."""
    for axis in range(plan.shape[1]):
        low, high, acceleration = limits[axis, 0], limits[axis, 1], limits[axis, 2]
        speed = start[axis]
        for stage in range(plan.shape[0]):
            change = min(max(plan[stage, axis], (low - speed) / STAGE_S), (high - speed) / STAGE_S)
            plan[stage, axis] = min(max(change, -acceleration), acceleration)
            speed += STAGE_S * plan[stage, axis]


@compiled
def fill_bounds(
    faces: Array,
    plan: Array,
    start: Array,
    limits: Array,
    ends: NDArray[np.int64],
    lower: Array,
    upper: Array,
) -> None:
    """Fill the bounds of changes of a plan: first of the accelerations of each face, then of the speeds.

    A speed that starts outside its bounds comes back as fast as it can, so that there is a solution. `faces`
    (F, axes) are the directions in which there are limits, `plan` (N, axes) the present accelerations,
    `start` (axes,) the speeds to start from, `limits` (F, 3) the least and the greatest speed and the
    acceleration, `ends` (B,) the last stage of each block. `lower` and `upper` are (2 F B,) or more.
    """
    blocks = ends.shape[0]
    speed_rows = faces.shape[0] * blocks
    for face in range(faces.shape[0]):
        low, high, acceleration = limits[face, 0], limits[face, 1], limits[face, 2]
        first_speed = 0.0
        for axis in range(faces.shape[1]):
            first_speed += faces[face, axis] * start[axis]
        speed, stage = first_speed, 0
        for block in range(blocks):
            least, most = math.inf, -math.inf
            while stage <= ends[block]:
                planned = 0.0
                for axis in range(faces.shape[1]):
                    planned += faces[face, axis] * plan[stage, axis]
                least, most = min(least, planned), max(most, planned)
                speed += STAGE_S * planned
                stage += 1
            row = face * blocks + block
            lower[row] = min(-acceleration - least, 0.0)
            upper[row] = max(acceleration - most, 0.0)
            change = acceleration * STAGE_S * stage
            lower[speed_rows + row] = min(min(low, first_speed + change) - speed, 0.0)
            upper[speed_rows + row] = max(max(high, first_speed - change) - speed, 0.0)


@compiled
def fill_clearance(
    field: ClearanceField,
    radius_m: float,
    points: Array,
    reference: Array,
    moves: Array,
    rows: Array,
    lower: Array,
) -> bool:
    """Fill the half-planes that keep the robot off obstacles, and tell whether there is any.

    The room that a valid reference has is always enough: a robot is not pushed off it in a narrow door.
    `points` (N, 2 or more) are where the robot is predicted to be at the ends of the stages, `reference`
    where it should be, `moves` (2, N, unknowns) how x and y change. Filled: `rows` (R, unknowns), `lower`
    (R,).
    """
    just_fits, any_near = radius_m - 0.75 * field.resolution_m, False
    for row in range(lower.shape[0]):
        lower[row] = -FREE
        stage = (row + 1) * CLEARANCE_EVERY - 1
        x, y = points[stage, 0], points[stage, 1]
        room, slope_x, slope_y = clearance_at(field, x, y)
        # In the middle of a narrow place the field has a ridge: neither way is better.
        if room > radius_m + NEAR_M or math.hypot(slope_x, slope_y) < 0.3:
            continue
        wanted = radius_m + MARGIN_M
        to_x, to_y = reference[stage, 0] - x, reference[stage, 1] - y
        room_there = clearance_at(field, reference[stage, 0], reference[stage, 1])[0]
        if room_there >= just_fits:
            if math.hypot(to_x, to_y) < BESIDE_M:
                room_there = min(room_there, room + slope_x * to_x + slope_y * to_y)
            wanted = min(wanted, room_there)
        for unknown in range(rows.shape[1]):
            rows[row, unknown] = slope_x * moves[0, stage, unknown] + slope_y * moves[1, stage, unknown]
        lower[row], any_near = wanted - room, True
    return any_near


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
