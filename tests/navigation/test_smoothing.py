"""Properties of smooth paths, over houses of the suite and rooms with boxes thrown into them."""

import itertools
import math
from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from proctor.core.registry import suite_path
from proctor.kernels.clearance import ClearanceField, least_clearance
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.navigation.smooth_path import smooth_path
from proctor.navigation.timing.time_path import time_path
from proctor.robots.dynamics import Dynamics
from proctor.scenes.scene import Scene

RADIUS_M, MARGIN_M = 0.17, 0.05
HOUSES = sorted((suite_path("houses-v1") / "scenes").glob("*.json"))[::4]
AT_REST = SimpleNamespace(yaw=0.0, v=0.0, omega=0.0)


def grid_of(width_m, height_m, *boxes):
    occupied = np.ones((round(height_m / 0.05), round(width_m / 0.05)), dtype=bool)
    occupied[1:-1, 1:-1] = False
    for box in boxes:
        x0, y0, x1, y1 = (round(side / 0.05) for side in box)
        occupied[y0:y1, x0:x1] = True
    return GridMap(occupied)


def cluttered_room(rng):
    corners = rng.uniform(0.5, 7.0, size=(10, 2))
    return grid_of(8, 8, *np.hstack([corners, corners + rng.uniform(0.1, 0.9, size=(10, 2))]))


def paths_on(grid, count, rng, radius_m=RADIUS_M + MARGIN_M):
    free = np.argwhere(grid.clearance_m > radius_m + 0.03)
    paths = []
    while len(paths) < count:
        cells = free[rng.integers(len(free), size=2)][:, ::-1] + rng.uniform(0.1, 0.9, size=(2, 2))
        start, goal = cells * grid.resolution_m + grid.origin_world
        path = grid.shortest_path(start, goal, radius_m=radius_m)
        if path is not None and math.dist(start, goal) > 0.5:
            paths.append(path)
    return paths


@lru_cache
def cases(kind):
    """Maps with paths on them."""
    rng = np.random.default_rng(4)
    if kind == "houses":
        grids, count = [Scene.load(path).map() for path in HOUSES], 8
    else:
        grids, count = [cluttered_room(rng) for _ in range(12)], 4
    return [(grid, path) for grid in grids for path in paths_on(grid, count, rng)]


def length_m(points):
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def dense(points):
    parts = [
        np.linspace(a, b, max(2, math.ceil(math.dist(a, b) / 0.01))) for a, b in itertools.pairwise(points)
    ]
    return np.concatenate(parts)


def check_shape(leg):
    """Points, yaw and curvature must be those of one smooth curve."""
    moves = np.diff(leg.points, axis=0)
    steps_m = np.hypot(*moves.T)
    assert steps_m.max() <= 0.025 + 1e-9
    assert steps_m.min() > 1e-6
    turns = np.diff(leg.yaw)
    chords = np.arctan2(moves[:, 1], moves[:, 0])
    apart = (chords - (leg.yaw[1:] + leg.yaw[:-1]) / 2 + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(apart).max() < 0.01
    # If curvature jumped, its mean over a step would not be the turn of that step.
    mean = (leg.curvature[1:] + leg.curvature[:-1]) / 2
    assert np.abs(turns - mean * steps_m).max() < 0.005
    assert np.abs(np.diff(leg.curvature)).max() < 1.5


@pytest.mark.parametrize("kind", ["houses", "rooms"])
def test_a_smooth_path_keeps_its_ends_its_clearance_and_nearly_its_length(kind):
    for grid, path in cases(kind):
        legs, clearance_m = smooth_path(grid.field, path, radius_m=RADIUS_M, margin_m=MARGIN_M)
        assert len(legs) == 1, "a house needs no stop at corners"
        (leg,) = legs
        assert (leg.points[[0, -1]] == path[[0, -1]]).all()
        check_shape(leg)
        wanted_m = min(RADIUS_M + MARGIN_M, float(grid.clearances(dense(path)).min()))
        assert grid.clearances(dense(leg.points)).min() > wanted_m - 0.005
        assert clearance_m == pytest.approx(grid.clearances(leg.points).min(), abs=0.005)
        assert length_m(leg.points) < 1.045 * length_m(path)


def test_smooth_paths_are_quicker_than_stops_at_corners_and_close_to_the_straight_drive():
    ratios = []
    for grid, path in cases("houses"):
        legs, _ = smooth_path(grid.field, path, radius_m=RADIUS_M, margin_m=MARGIN_M)
        start = SimpleNamespace(yaw=legs[0].yaw[0], v=0.0, omega=0.0)
        duration_s = time_path(legs, Dynamics(), start=start).duration_s
        way_m = length_m(path)
        ratios.append(duration_s / (way_m + 2.0 if way_m > 2 else 2 * math.sqrt(2 * way_m)))
    assert np.median(ratios) < 1.06
    assert np.percentile(ratios, 90) < 1.35


@pytest.mark.parametrize("drive", ["differential", "holonomic"])
def test_a_robot_in_motion_goes_on_with_its_heading_and_curvature(drive):
    dynamics, rng, smooth = Dynamics(drive=drive), np.random.default_rng(1), 0
    driven = [case for case in cases("houses") if length_m(case[1]) > 3][:20]
    for grid, path in driven:
        yaw = math.atan2(*(path[1] - path[0])[::-1]) + rng.uniform(-0.4, 0.4) + 4 * math.pi
        start, speed_mps = (yaw, rng.uniform(-0.3, 0.3)), rng.uniform(0.1, 0.6)
        try:
            legs, clearance_m = smooth_path(
                grid.field,
                path,
                radius_m=RADIUS_M,
                margin_m=MARGIN_M,
                start=start,
                speed_mps=speed_mps,
                dynamics=dynamics,
            )
        except NavigationFailure:  # it heads for a wall, too close to turn away
            continue
        smooth += 1
        (leg,) = legs
        assert (leg.points[[0, -1]] == path[[0, -1]]).all()
        assert (leg.yaw[0], leg.curvature[0]) == pytest.approx(start, abs=1e-6)
        assert clearance_m > RADIUS_M
        check_shape(leg)
        motion = SimpleNamespace(yaw=yaw, v=speed_mps, omega=start[1] * speed_mps)
        assert time_path(legs, dynamics, start=motion).duration_s < 200
    assert smooth >= 0.9 * len(driven)


@pytest.mark.parametrize("aside", [2.0, -2.6, math.pi])
def test_a_slow_robot_that_heads_elsewhere_turns_around_in_an_open_room(aside):
    grid = grid_of(8, 6)
    legs, _ = smooth_path(
        grid.field,
        np.array([[4.0, 3.0], [1.0, 3.0]]),
        radius_m=RADIUS_M,
        margin_m=MARGIN_M,
        start=(math.pi + aside, 0.0),
        speed_mps=0.4,
    )
    check_shape(legs[0])
    assert legs[0].yaw[0] == pytest.approx(math.pi + aside)
    assert abs(math.remainder(legs[0].yaw[-1] - math.pi, math.tau)) < 1.0


def test_a_fast_robot_that_heads_for_a_wall_is_told_that_it_cannot():
    grid = grid_of(8, 2)
    with pytest.raises(NavigationFailure, match=r"begins with yaw 1\.57.* at 0\.90 m/s") as caught:
        smooth_path(
            grid.field,
            np.array([[4.0, 1.0], [1.0, 1.0]]),
            radius_m=RADIUS_M,
            margin_m=MARGIN_M,
            start=(math.pi / 2, 0.0),
            speed_mps=0.9,
        )
    assert caught.value.reason == Reason.INFEASIBLE_TRAJECTORY


def test_where_only_stops_at_corners_fit_the_legs_are_straight():
    # There is room for the robot only within a millimetre of the corners' own path.
    corners = np.array([[0.5, 0.5], [1.5, 0.5], [1.5, 1.5]])
    x, y = np.meshgrid(np.arange(200) * 0.01 + 0.005, np.arange(200) * 0.01 + 0.005)
    to_first = np.hypot(x - x.clip(0.5, 1.5), y - 0.5)
    to_second = np.hypot(x - 1.5, y - y.clip(0.5, 1.5))
    field = ClearanceField(RADIUS_M + 0.0065 - np.minimum(to_first, to_second), 0.01, 0.0, 0.0)
    legs, clearance_m = smooth_path(field, corners, radius_m=RADIUS_M, margin_m=0.0)
    assert [leg.points[[0, -1]].tolist() for leg in legs] == [corners[:2].tolist(), corners[1:].tolist()]
    assert [leg.yaw[0] for leg in legs] == pytest.approx([0.0, math.pi / 2])
    assert all(not leg.curvature.any() and len(leg.points) > 40 for leg in legs)
    assert clearance_m > RADIUS_M


def test_ends_close_to_walls_are_reached_and_the_way_between_keeps_away():
    grid = grid_of(6, 4, (2.5, 0, 3, 2.5))
    start, goal = (0.23, 0.7), (5.0, 0.22)
    path = np.array([start, (2.4, 2.8), (3.1, 2.8), goal])
    legs, clearance_m = smooth_path(grid.field, path, radius_m=RADIUS_M, margin_m=MARGIN_M)
    points = legs[0].points
    assert len(legs) == 1
    assert clearance_m == pytest.approx(grid.clearance_at(*goal), abs=1e-3)
    away = (np.linalg.norm(points - start, axis=1) > 0.3) & (np.linalg.norm(points - goal, axis=1) > 0.3)
    assert grid.clearances(points[away]).min() > RADIUS_M + MARGIN_M - 0.005


@pytest.mark.parametrize(
    "path",
    [
        [(1, 1), (1.003, 1)],
        [(1, 1), (1, 1), (1.03, 1), (1.03, 1)],
        [(1, 1), (1.02, 1), (1.02, 1.02)],
        [(1, 1), (2, 1), (2, 1), (1.5, 1.0), (3, 1)],
        [(1, 1), (2, 1), (1, 1), (2, 2)],
    ],
)
def test_short_and_odd_paths_become_legs_all_the_same(path):
    grid = grid_of(4, 4)
    points = np.array(path, dtype=float)
    legs, _ = smooth_path(grid.field, points, radius_m=RADIUS_M, margin_m=MARGIN_M)
    assert (legs[0].points[0] == points[0]).all()
    assert (legs[-1].points[-1] == points[-1]).all()
    assert all(len(leg.points) >= 2 for leg in legs)
    assert time_path(legs, Dynamics(), start=AT_REST).duration_s < 10


def test_a_path_without_length_or_of_a_wrong_shape_is_refused():
    field = grid_of(4, 4).field
    with pytest.raises(NavigationFailure, match=r"start and goal at one place, \(1\.000, 1\.000\)"):
        smooth_path(field, np.ones((3, 2)), radius_m=RADIUS_M, margin_m=MARGIN_M)
    for points in (np.ones((1, 2)), np.ones((3, 3)), np.array([[1.0, 1.0], [math.nan, 2.0]])):
        with pytest.raises(ValueError, match=r"expected \(N, 2\) finite points"):
            smooth_path(field, points, radius_m=RADIUS_M, margin_m=MARGIN_M)


def test_the_corners_of_a_jagged_path_are_left_out():
    rng = np.random.default_rng(0)
    for grid, path in cases("rooms")[:16]:
        points = [path[0]]
        for place in dense(path)[20:-20:25]:
            shaken = place + rng.normal(0, 0.1, 2)
            if least_clearance(grid.field, np.linspace(points[-1], shaken, 30)) > RADIUS_M + MARGIN_M:
                points.append(shaken)
        jagged = np.array([*points, path[-1]])
        if least_clearance(grid.field, dense(jagged)) < RADIUS_M + MARGIN_M:
            continue
        legs, clearance_m = smooth_path(grid.field, jagged, radius_m=RADIUS_M, margin_m=MARGIN_M)
        assert len(legs) == 1
        assert clearance_m > RADIUS_M + MARGIN_M - 0.003
        assert length_m(legs[0].points) < 1.06 * length_m(path)
