"""Predictions of drives, and the bounds of the quadratic programs that plan their accelerations.

A drive is predicted over equal stages, with constant accelerations in each.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at
from proctor.kernels.compiled import compiled

STAGE_S: Final = 0.05
CLEARANCE_EVERY: Final = 2  # one clearance row per so many stages: at 1 m/s they are two cells apart
NEAR_M: Final = 0.15  # beyond the robot's radius: what is farther away does not matter yet
MARGIN_M: Final = 0.05  # how much more than its radius the robot likes to keep, unless its reference does not
BESIDE_M: Final = 0.1  # so near to the reference, a slope of the field tells the room there
FREE: Final = 1e30  # stands for "unbounded" in the quadratic program


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
def predict_unicycle(
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


@compiled
def keep_possible_in_plane(plan: Array, start: Array, v_max: float, a_max: float, stage_s: float) -> None:
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
def predict_holonomic(pose: Array, velocity: Array, plan: Array, stage_s: float) -> Array:
    """Return (N, 6) poses and velocities at the ends of the stages of a plan (N, 3)."""
    states = np.empty((plan.shape[0], 6))
    for axis in range(3):
        position, speed = pose[axis], velocity[axis]
        for stage in range(plan.shape[0]):
            position += stage_s * (speed + 0.5 * stage_s * plan[stage, axis])
            speed += stage_s * plan[stage, axis]
            states[stage, axis], states[stage, 3 + axis] = position, speed
    return states
