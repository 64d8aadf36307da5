"""What the predictive controllers of all drives share: the horizon, weights, bounds, and the solver.

A drive is predicted over equal stages, with constant accelerations in each. There is always a present plan;
the unknowns are how its accelerations are to change, in blocks of stages that grow longer into the future.
Speeds, and positions along an axis that nothing turns, depend on them through constant matrices.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import daqp
import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.tracking import CLEARANCE_EVERY, STAGE_S

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
