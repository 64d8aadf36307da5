"""The parts that smooth paths are made of."""

import math

import numpy as np
import pytest
from scipy.interpolate import BSpline

from proctor.kernels.clearance import clearance_at
from proctor.kernels.elastic_band import (
    AT_KNOT,
    BEND_AT_KNOT,
    SLOPE_AT_KNOT,
    WIDTH,
    End,
    basis,
    relax,
    sample_curve,
    solve_banded,
)
from proctor.kernels.paths import pursue, traversal
from proctor.maps.grid_map import GridMap
from proctor.navigation.smooth_path import PathRequirements, _limits, controls_along, score_path, shortcut
from proctor.robots.dynamics import Dynamics


def room(*boxes):
    occupied = np.ones((80, 160), dtype=bool)
    occupied[1:-1, 1:-1] = False
    for x0, y0, x1, y1 in boxes:
        occupied[round(y0 / 0.05) : round(y1 / 0.05), round(x0 / 0.05) : round(x1 / 0.05)] = True
    return GridMap(occupied).field


def test_samples_are_those_of_scipys_spline():
    controls = np.random.default_rng(0).normal(size=(12, 2)) + np.arange(12)[:, None]
    spline = BSpline(np.arange(-5.0, 13.0), controls, 5)
    rows = sample_curve(controls, basis(10))
    at = np.linspace(0.0, 7.0, 71)
    slope, bend = spline(at, 1), spline(at, 2)
    assert rows[:, :2] == pytest.approx(spline(at))
    assert rows[:, 2] == pytest.approx(np.unwrap(np.arctan2(slope[:, 1], slope[:, 0])))
    cross = slope[:, 0] * bend[:, 1] - slope[:, 1] * bend[:, 0]
    assert rows[:, 3] == pytest.approx(cross / np.linalg.norm(slope, axis=1) ** 3)
    for weights, order in ((AT_KNOT, 0), (SLOPE_AT_KNOT, 1), (BEND_AT_KNOT, 2)):
        assert weights @ controls[2:7] == pytest.approx(spline(2.0, order))


def test_control_points_along_a_path_make_a_curve_with_its_ends():
    path = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    rows = sample_curve(controls_along(path, 6), basis(4))
    assert rows[[0, -1], :2] == pytest.approx(path[[0, -1]])


def test_banded_systems_are_solved():
    rng = np.random.default_rng(1)
    count = 40
    rows = np.zeros((60, count))
    for row in rows:
        first = rng.integers(count - WIDTH)
        row[first : first + WIDTH + 1] = rng.normal(size=WIDTH + 1)
    full, right = rows.T @ rows + np.eye(count), rng.normal(size=count)
    banded, answer = np.zeros((count + WIDTH, WIDTH + 1)), np.zeros(count + WIDTH)
    for d in range(WIDTH + 1):
        banded[: count - d, d] = np.diagonal(full, d)
    answer[:count] = right
    solve_banded(banded, answer)
    assert answer[:count] == pytest.approx(np.linalg.solve(full, right))


def test_a_band_over_a_corner_gives_way_to_the_box_and_meets_its_ends():
    field = room((3.0, 0.0, 4.0, 2.0))
    guide = np.array([[1.0, 1.0], [3.5, 2.05], [6.0, 1.0]])
    controls = controls_along(guide, 30)
    wanted = np.full(61, 0.3)
    yaw, span_m = 0.3, 5.4 / 30
    wants = np.array([guide[0], span_m * np.array([math.cos(yaw), math.sin(yaw)]), [0.0, 0.0]])
    start = End.of(np.stack([AT_KNOT, SLOPE_AT_KNOT, BEND_AT_KNOT]), wants)
    for _ in range(10):
        relax(controls, 1e-3, np.ones(32), field, wanted, start, End.of(AT_KNOT[None], guide[-1:]))
    rows = sample_curve(controls, basis(8))
    clearances = [clearance_at(field, x, y)[0] for x, y in rows[:, :2]]
    assert rows[[0, -1], :2] == pytest.approx(guide[[0, -1]], abs=1e-12)
    assert (rows[0, 2], rows[0, 3]) == pytest.approx((yaw, 0.0), abs=1e-9)
    assert 0.28 < min(clearances) < 0.32


def test_a_shortcut_leaves_out_what_is_not_needed_and_no_more():
    field = room((3.0, 0.0, 4.0, 2.0))
    around = np.array([[1.0, 1.0], [1.0, 1.0], [1.5, 2.5], [2.8, 2.3], [3.2, 2.9], [4.2, 2.3], [6.0, 1.0]])
    assert shortcut(field, around, 0.22).tolist() == around[[0, 4, 6]].tolist()
    assert shortcut(field, around[[0, 1]], 0.22).tolist() == [[1.0, 1.0]]
    # A path that is itself too close to the box may stay as close, not closer.
    close = np.array([[1.0, 1.0], [2.9, 2.1], [3.5, 2.15], [4.1, 2.1], [6.0, 1.0]])
    assert shortcut(field, close, 0.22).tolist() == close.tolist()


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_robot_that_heads_back_gets_onto_its_path_on_the_side_asked_for(side):
    path = np.stack([np.linspace(0, -4, 81), np.zeros(81)], axis=1)
    way = pursue(path, 0.0, 0.5, 0.3, side)
    moves = np.diff(way, axis=0)
    turns = np.diff(np.unwrap(np.arctan2(moves[:, 1], moves[:, 0])))
    assert way[10] == pytest.approx([0.5, 0.0])
    assert np.sign(way[20, 1]) == side
    assert way[-1].tolist() == path[-1].tolist()
    assert np.abs(turns[:25]).max() < 0.05 / 0.3 + 1e-9
    assert np.abs(way[-40:, 1]).max() < 0.05


def test_the_time_along_a_straight_line_is_that_of_full_acceleration():
    rows = np.zeros((401, 4))
    rows[:, 0] = np.linspace(0, 4, 401)
    time_s, highest_mps = traversal(rows, _limits(Dynamics()), 0.0)
    assert time_s == pytest.approx(6.0, rel=1e-3)
    assert highest_mps == pytest.approx(1.0)
    rows[:, 3] = 2.0
    assert traversal(rows, _limits(Dynamics()), 0.0)[0] > 8.0
    assert traversal(rows, _limits(Dynamics()), 0.8)[1] == pytest.approx(0.5)
    assert traversal(rows, _limits(Dynamics(drive="holonomic")), 0.8)[1] == pytest.approx(0.5)


def test_of_two_paths_the_one_with_room_comes_first_then_the_short_then_the_quick():
    field = room((3.0, 0.0, 4.0, 2.0))

    def worth(height_m, longest_m=7.0):
        rows = np.zeros((201, 4))
        rows[:, 0], rows[:, 1] = np.linspace(1, 7, 201), 2.0 + height_m
        return score_path(field, rows, PathRequirements(0.17, 0.22, longest_m, Dynamics()))

    assert worth(0.16) is None
    assert worth(0.19).lacking_m == pytest.approx(0.03)
    assert worth(0.3).lacking_m == 0.0
    assert worth(0.3, longest_m=5.0).too_long
    assert worth(0.3) < worth(0.3, longest_m=5.0) < worth(0.19)
