"""What binds the robot while its hand is led somewhere: limits, furniture, and joints that move as one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mink
import mujoco
import numpy as np

from proctor.core.types import Array
from proctor.robots.stretch import CONTROLS
from proctor.worlds.mujoco.tabletop.stretch_model import (
    ARM_JOINTS,
    BASE_JOINTS,
    BODY_LINKS,
    HAND_LINKS,
    SIDES,
)

HAND_CLEARANCE_M, BODY_CLEARANCE_M = 0.002, 0.01
"""From furniture. The pads must come low, to grasp what is flat; for the rest there is room."""
TOUCH_M = 1e-9
SIGHT_M = 0.2
"""Furniture further away than this does not matter in any step."""
STEPS = {
    **dict(zip(BASE_JOINTS, (0.12, 0.12, 0.12), strict=True)),
    "joint_lift": 0.12,
    **dict.fromkeys(ARM_JOINTS, 0.03),
    "joint_wrist_yaw": 0.5,
}
"""The furthest that joints go in one step, so that nothing is stepped over."""


class Ranges(mink.Limit):
    """Limits of the joints, one degree of freedom each, and of how far the base may go in one command."""

    def __init__(self, model: Any) -> None:
        self._low, self._high = np.full(model.nv, -10.0), np.full(model.nv, 10.0)
        self._steps = np.full(model.nv, 1.0)
        for name, step in STEPS.items():
            self._steps[model.joint(name).dofadr[0]] = step
        lift, arm, wrist = CONTROLS[3:6]
        ranges = {"joint_lift": (lift.low, lift.high), "joint_wrist_yaw": (wrist.low, wrist.high)}
        ranges |= dict.fromkeys(ARM_JOINTS, (arm.low / 4, arm.high / 4))
        for name, (low, high) in ranges.items():
            at = model.joint(name).dofadr[0]
            self._low[at], self._high[at] = low, high
        self._axes = np.eye(model.nv)

    def set_base(self, low: Array, high: Array, turned: float) -> None:
        """Say how far the base may go: x and y in axes against which its own are turned, and its turn."""
        self._low[:3], self._high[:3] = low, high
        cos, sin = math.cos(turned), math.sin(turned)
        self._axes[:2, :2] = [[cos, -sin], [sin, cos]]

    def clipped(self, q: Array) -> Array:
        """Return the nearest joint positions within the limits."""
        return np.asarray(self._axes.T @ np.clip(self._axes @ q, self._low, self._high))

    def compute_qp_inequalities(self, configuration: Any, dt: float) -> mink.Constraint:
        """Return how far the joints may go from where they are."""
        del dt
        q = self._axes @ configuration.data.qpos
        up, down = np.minimum(self._high - q, self._steps), np.minimum(q - self._low, self._steps)
        room = np.maximum(np.concatenate([up, down]), 0.0)  # rounding must not make standing still impossible
        return mink.Constraint(G=np.concatenate([self._axes, -self._axes]), h=room)


class Avoidance(mink.Limit):
    """Keeps the robot out of the furniture (names of bodies), and its hand out of its own body.

    It replaces mink's own limit of this kind, which leaves out a base whose parent is the world.
    """

    def __init__(self, model: Any, furniture: Sequence[str]) -> None:
        self._model = model
        self.sight_m = SIGHT_M
        """What is further away does not matter in the next step."""
        self.pushes = True
        """Whether what is too near must come away from it, rather than merely not nearer."""
        named = {str(model.geom(index).name): index for index in range(model.ngeom)}
        robot = [index for name, index in named.items() if name.startswith("#") and name != "#floor"]
        solid = [index for name, index in named.items() if name.rpartition("#")[0] in furniture]
        hand = [named[f"#{name}"] for name in HAND_LINKS]
        hand += [named[f"#{part}_{side}"] for part in ("finger", "pad") for side in SIDES]
        body = [named[f"#{name}"] for name in BODY_LINKS]
        self._clearances_m = np.full(model.ngeom, BODY_CLEARANCE_M)
        self._clearances_m[hand] = HAND_CLEARANCE_M
        self._pairs = np.array([*itertools.product(robot, solid), *itertools.product(hand, body)])
        self._fromto, self._jacobians = np.empty(6), np.empty((2, 3, model.nv))

    def compute_qp_inequalities(self, configuration: Any, dt: float) -> mink.Constraint:
        """Return how much nearer what is near may come."""
        del dt
        rows, room, data = [], [], configuration.data
        for pair in self._in_sight(data, self.sight_m):
            distance_m = mujoco.mj_geomDistance(self._model, data, *pair, self.sight_m, self._fromto)
            between = self._fromto[3:] - self._fromto[:3]
            length_m = math.sqrt(between @ between)
            if distance_m >= self.sight_m or length_m < TOUCH_M:
                continue
            for jacobian, point, geom in zip(self._jacobians, self._fromto.reshape(2, 3), pair, strict=True):
                mujoco.mj_jac(self._model, data, jacobian, None, point, self._model.geom_bodyid[geom])
            apart = math.copysign(1 / length_m, distance_m) * between
            rows.append(apart @ (self._jacobians[0] - self._jacobians[1]))
            # The part of what is left above the clearance that one step may take.
            most_m = 0.85 * (distance_m - self._clearances_m[pair[0]])
            room.append(max(most_m, -0.01 if self.pushes else 0.0))
        return mink.Constraint(G=np.reshape(rows, (-1, self._model.nv)), h=np.array(room))

    def is_kept(self, configuration: Any) -> bool:
        """Return whether everything is as far from everything as it should be."""
        data = configuration.data
        return all(
            mujoco.mj_geomDistance(self._model, data, *pair, BODY_CLEARANCE_M, self._fromto)
            >= self._clearances_m[pair[0]]
            for pair in self._in_sight(data, BODY_CLEARANCE_M)
        )

    def least_m(self, configuration: Any, sight_m: float) -> float:
        """Return the least distance of two that should not meet, below 0 inside each other, at most this."""
        data = configuration.data
        distances = (
            mujoco.mj_geomDistance(self._model, data, *pair, sight_m, self._fromto)
            for pair in self._in_sight(data, sight_m)
        )
        return min(distances, default=sight_m)

    def _in_sight(self, data: Any, sight_m: float) -> list[list[int]]:
        """Return the pairs of geoms whose bounding boxes are not further apart than this."""
        turned, box = data.geom_xmat.reshape(-1, 3, 3), self._model.geom_aabb
        middle = data.geom_xpos + np.einsum("nij,nj->ni", turned, box[:, :3])
        half = np.einsum("nij,nj->ni", np.abs(turned), box[:, 3:])
        first, second = self._pairs.T
        gap = np.maximum(np.abs(middle[first] - middle[second]) - half[first] - half[second], 0.0)
        pairs: list[list[int]] = self._pairs[(gap * gap).sum(axis=1) < sight_m**2].tolist()
        return pairs


class Tied(mink.Task):
    """A constraint: joints `alike` move as one, joints `frozen` do not. Each has one degree of freedom."""

    def __init__(self, model: Any, alike: Sequence[str], frozen: Sequence[str]) -> None:
        rows = []
        for first, second in [*itertools.pairwise(alike), *((name, None) for name in frozen)]:
            row = np.zeros(model.nv)
            row[model.joint(first).dofadr[0]] = 1.0
            if second is not None:
                row[model.joint(second).dofadr[0]] = -1.0
            rows.append(row)
        self._rows, self._still = np.array(rows), np.zeros(len(rows))
        super().__init__(cost=np.ones(len(rows)))

    def compute_error(self, configuration: Any) -> Array:
        """Return nothing to correct: they are alike from the start."""
        del configuration
        return self._still

    def compute_jacobian(self, configuration: Any) -> Array:
        """Return one row for each tie."""
        del configuration
        return self._rows
