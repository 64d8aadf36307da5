"""Tests for the parts of the predictive controllers: prediction, bounds, clearance, solver."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rolling_base import Drive, RollingBase, drive_along, made_of

from proctor.core.types import Array
from proctor.kernels.clearance import ClearanceField, clearance_at, least_clearance
from proctor.kernels.tracking import (
    MARGIN_M,
    STAGE_S,
    keep_possible,
    keep_possible_in_plane,
    predict_unicycle,
)
from proctor.maps.grid_map import GridMap
from proctor.navigation.tracking import drive_models
from proctor.navigation.tracking.drive_models import Axis, Horizon, Solver
from proctor.robots.robot import Twist

STRAIGHT = [(0.45, 0.0, 1.5), (0.0, 0.0, 2.0), (-0.45, 0.0, 1.5)]
RADIUS_M = 0.17


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("stages", [4, 20, 30, 47])
def test_a_horizon_has_each_stage_in_one_block(stages: int) -> None:
    horizon = Horizon.of(stages)
    assert horizon.spread.shape == (stages, len(horizon.ends))
    assert np.array_equal(horizon.spread.sum(axis=1), np.ones(stages))
    assert horizon.ends[-1] == stages - 1
    one = horizon.spread @ np.ones(len(horizon.ends))
    assert horizon.speeds @ np.ones(len(horizon.ends)) == pytest.approx(STAGE_S * np.cumsum(one))
    times_s = STAGE_S * np.arange(1, stages + 1)
    assert horizon.positions @ np.ones(len(horizon.ends)) == pytest.approx(times_s**2 / 2)


def test_the_moves_of_a_differential_drive_are_what_its_prediction_does(rng: np.random.Generator) -> None:
    horizon = Horizon.of(30)
    blocks, block_of = len(horizon.ends), np.argmax(horizon.spread, axis=1)
    start, plan = np.array([1.0, 2.0, 0.7, 0.5, -0.3]), rng.uniform(-0.5, 0.5, size=(30, 2))
    _, moves = predict_unicycle(start, plan, block_of, 2 * blocks, STAGE_S)
    for unknown in range(2 * blocks):
        change = np.zeros((2, blocks))
        change.flat[unknown] = 1e-5
        moved = [
            predict_unicycle(start, plan + sign * horizon.spread @ change.T, block_of, 2 * blocks, STAGE_S)[0]
            for sign in (1, -1)
        ]
        slope = (moved[0] - moved[1])[1:, :2] / 2e-5
        assert pytest.approx(slope, abs=1e-7) == moves[:, :, unknown].T


def test_the_slope_of_an_axis_is_that_of_its_cost(rng: np.random.Generator) -> None:
    horizon = Horizon.of(30)
    axis = Axis.of(horizon, 3.0, 2.0, 0.5)
    position, speed, acceleration = rng.normal(size=(3, 30))

    def cost(change: Array) -> float:
        errors = position + horizon.positions @ change, speed + horizon.speeds @ change
        states = 3.0 * horizon.weights @ errors[0] ** 2 + 2.0 * horizon.weights @ errors[1] ** 2
        return float(states + 0.5 * ((acceleration + horizon.spread @ change) ** 2).sum()) / 2

    change = rng.normal(size=len(horizon.ends))
    quadratic = cost(np.zeros_like(change)) + axis.slope(position, speed, acceleration) @ change
    assert cost(change) == pytest.approx(quadratic + change @ axis.cost @ change / 2)


def test_a_plan_that_breaks_the_limits_is_made_possible(rng: np.random.Generator) -> None:
    wild = rng.normal(size=(30, 3))
    plan, limits = wild.copy(), np.array([[-0.2, 1.0, 0.5], [-1.0, 1.0, 0.5], [-1.0, 1.0, 0.5]])
    keep_possible(plan, np.array([0.95, 0.0, -0.9]), limits)
    speeds = np.array([0.95, 0.0, -0.9]) + STAGE_S * np.cumsum(plan, axis=0)
    assert (np.abs(plan) <= 0.5 + 1e-12).all()
    assert (speeds <= 1.0 + 1e-12).all()
    assert (speeds >= np.array([-0.2, -1.0, -1.0]) - 1e-12).all()
    plan = wild.copy()
    keep_possible_in_plane(plan, np.array([0.6, 0.7, 0.0]), 1.0, 0.5, STAGE_S)
    speeds = np.array([0.6, 0.7]) + STAGE_S * np.cumsum(plan[:, :2], axis=0)
    assert np.hypot(plan[:, 0], plan[:, 1]).max() <= 0.5 + 1e-12
    assert np.hypot(speeds[:, 0], speeds[:, 1]).max() <= 1.0 + 1e-12


def test_too_fast_a_start_comes_back_within_the_limits() -> None:
    base = RollingBase()
    base.moves[0] = 1.3
    base.command(Twist(vx=1.3))
    drive = drive_along(base, made_of([(0.4, 0.0, 2.0), (0.0, 0.0, 2.0), (-0.4, 0.0, 2.0)]))
    commands = np.array(drive.commands)
    assert drive.fallbacks == 0
    assert commands[0, 0] == pytest.approx(1.3 - 0.5 / 60)
    assert commands[40:, 0].max() <= 1.0 + 1e-9


def test_the_solver_keeps_hard_rows_and_weighs_soft_ones_by_metres() -> None:
    solver = Solver(np.eye(2), np.array([[1.0, 1.0], [0.0, 3.0]]), 1)
    free, low, high = 1e30, np.array([-1.0, -1.0, -1e30, 1.5]), np.array([1.0, 1.0, 1e30, 1e30])
    found = solver.solve(np.zeros(2), low, high)
    weight = 9 * drive_models.CLEARANCE_WEIGHT
    assert found is not None
    assert found == pytest.approx([0.0, 0.5 * weight / (1 + weight)], abs=1e-6)
    again = solver.solve(np.zeros(2), low, high, rows=np.array([[1.0, 1.0], [0.0, 0.1]]))
    assert again is not None
    assert again == pytest.approx([0.0, 1.0], abs=1e-6), "the bound is hard"
    softer = solver.solve(np.zeros(2), np.array([-1.0, -1.0, -free, 0.05]), high)
    assert softer is not None
    weight = 0.01 * drive_models.CLEARANCE_WEIGHT
    assert softer == pytest.approx([0.0, 0.5 * weight / (1 + weight)], abs=1e-6)
    assert solver.solve(np.zeros(2), np.array([2.0, -1.0, -1.0, -free]), high) is None
    assert solver.solve(np.zeros(2), low, high) is not None, "it starts anew"


def test_no_solution_is_no_numbers() -> None:
    solver = Solver(np.eye(2), np.ones((1, 2)), 0)
    assert solver.solve(np.array([np.nan, 0.0]), np.full(3, -1.0), np.full(3, 1.0)) is None


def walls(gap_m: float, off_m: float = 0.0) -> ClearanceField:
    """Return a wall across the way at x = 1.5 .. 1.7, with a door around y = off_m."""
    occupied = np.zeros((80, 120), dtype=bool)
    y = (np.arange(80) + 0.5) * 0.05 - 2.0
    occupied[np.abs(y - off_m) > gap_m / 2, 50:54] = True
    return GridMap(occupied, origin_world=(-1.0, -2.0)).field


def beside_a_wall(distance_m: float) -> ClearanceField:
    """Return a wall along the way, on its left."""
    occupied = np.zeros((80, 120), dtype=bool)
    occupied[round((2.0 + distance_m) / 0.05) :] = True
    return GridMap(occupied, origin_world=(-1.0, -2.0)).field


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
@pytest.mark.parametrize("off_m", [0.0, 0.05])
def test_a_narrow_door_does_not_push_the_robot_off_its_reference(kind: str, off_m: float) -> None:
    field, reference = walls(0.5, off_m), made_of(STRAIGHT)
    least_m = least_clearance(field, reference.poses[:, :2].copy())
    assert RADIUS_M < least_m < RADIUS_M + 0.1
    drive = drive_along(RollingBase(drive=kind), reference, field=lambda: field, radius_m=RADIUS_M)
    assert np.abs(drive.errors[:, 1]).max() < 0.002
    assert drive.rms_m < 0.005
    assert drive.fallbacks == 0


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_a_robot_too_close_to_a_wall_gets_away_sooner(kind: str) -> None:
    field, reference, intrusions_m = beside_a_wall(0.25), made_of(STRAIGHT), []
    for known in (None, field):
        base = RollingBase((0.0, 0.07, 0.0), drive=kind)
        drive = drive_along(base, reference, field=lambda known=known: known, radius_m=RADIUS_M)
        room = clearances(field, drive)
        intrusions_m.append(np.maximum(RADIUS_M + MARGIN_M - room, 0.0).mean())
        assert drive.fallbacks == 0
        assert math.hypot(*drive.errors[-1, :2]) < 0.01
    assert intrusions_m[1] < 0.98 * intrusions_m[0]


def clearances(field: ClearanceField, drive: Drive) -> Array:
    return np.array([clearance_at(field, pose[0], pose[1])[0] for pose in drive.poses])


@pytest.mark.parametrize("kind", ["differential", "holonomic"])
def test_a_reference_through_an_obstacle_is_not_followed_into_it(kind: str) -> None:
    field, reference, ends_m = beside_a_wall(0.0), made_of(STRAIGHT), []
    for known in (None, field):
        base = RollingBase((0.0, -0.3, 0.0), drive=kind)
        drive = drive_along(base, reference, field=lambda known=known: known, radius_m=RADIUS_M)
        ends_m.append(drive.poses[-1][1])
    assert ends_m[1] < ends_m[0] - 0.05
