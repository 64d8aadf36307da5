import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.exact_planner import UNITS, ExactPlanner
from proctor.core.registry import suite_path
from proctor.exams.datasets import load_dataset
from proctor.maps.grid_map import PLANNING_RADIUS_M, GridMap
from proctor.scenes.scene import Scene

RADIUS_M = 0.25


def grid_of(width_m, height_m, *boxes, resolution_m=0.05):
    """A room with a wall of one cell around it and boxes (x0, y0, x1, y1) on the cells' borders."""
    occupied = np.ones((round(height_m / resolution_m), round(width_m / resolution_m)), dtype=bool)
    occupied[1:-1, 1:-1] = False
    for box in boxes:
        x0, y0, x1, y1 = (round(side / resolution_m) for side in box)
        occupied[y0:y1, x0:x1] = True
    return GridMap(occupied, resolution_m=resolution_m)


def length_m(path):
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def to_disc(point, centre):
    """Length of the tangent from a point to the disc around a corner, and the angle it takes off."""
    distance_m = math.dist(point, centre)
    return math.sqrt(distance_m**2 - RADIUS_M**2), math.acos(RADIUS_M / distance_m)


def angle_between(a, corner, b):
    u, v = np.subtract(a, corner), np.subtract(b, corner)
    return math.acos(u @ v / np.linalg.norm(u) / np.linalg.norm(v))


def around_corner_m(start, corner, goal, *, outside):
    """Length of a string from start to goal around a corner, past a point outside of it."""
    (first_m, first), (second_m, second) = to_disc(start, corner), to_disc(goal, corner)
    swept = angle_between(start, corner, outside) + angle_between(outside, corner, goal)
    return first_m + RADIUS_M * (swept - first - second) + second_m


def test_where_nothing_is_in_the_way_the_path_is_the_straight_line():
    path = grid_of(6, 6).shortest_path((1.01, 1.02), (4.5, 5.1), radius_m=RADIUS_M)
    assert path.tolist() == [[1.01, 1.02], [4.5, 5.1]]


@pytest.mark.parametrize(
    ("start", "goal"),
    [((1.0, 3.2), (3.1, 5.0)), ((1.7, 2.2), (3.8, 4.3)), ((1.5, 1.2), (2.9, 4.6))],
)
def test_around_one_box_the_length_is_that_of_two_tangents_and_an_arc(start, goal):
    grid = grid_of(8, 8, (2, 0, 4, 4))
    expected_m = around_corner_m(start, (2, 4), goal, outside=(1, 5))
    assert grid.distance_m(start, goal, radius_m=RADIUS_M) == pytest.approx(expected_m, rel=0.003)


def test_through_a_door_the_path_bends_around_both_sides_of_the_wall():
    grid = grid_of(8, 8, (4, 0, 4.1, 3), (4, 3.9, 4.1, 8))
    start, goal = (2.05, 1.0), (6.05, 1.0)
    tangent_m, taken_off = to_disc(start, (4, 3))
    # Over the top of the wall the string is level.
    arc = angle_between(start, (4, 3), (4, 4)) - taken_off
    expected_m = 2 * (tangent_m + RADIUS_M * arc) + 0.1
    assert grid.distance_m(start, goal, radius_m=RADIUS_M) == pytest.approx(expected_m, rel=0.003)


def test_in_a_bent_corridor_the_path_touches_the_inner_corner():
    grid = grid_of(6, 6, (0, 0, 4.9, 4.9))  # what is left is an L, 1.05 m wide
    start, goal = (0.6, 5.5), (5.5, 0.6)
    expected_m = around_corner_m(start, (4.9, 4.9), goal, outside=(6, 6))
    assert grid.distance_m(start, goal, radius_m=RADIUS_M) == pytest.approx(expected_m, rel=0.003)


def test_every_stretch_of_a_path_keeps_the_radius():
    rng = np.random.default_rng(5)
    low = rng.uniform(0.5, 9, (25, 2))
    grid = grid_of(12, 10, *np.column_stack([low, low + rng.uniform(0.1, 1.0, (25, 2))]))
    found = 0
    for start, goal in rng.uniform(0.5, 9.5, (40, 2, 2)):
        path = grid.shortest_path(start, goal, radius_m=RADIUS_M)
        if path is None or not all(grid.clearance_at(*end) > RADIUS_M for end in (start, goal)):
            continue
        found += 1
        assert path[0].tolist() == start.tolist()
        assert path[-1].tolist() == goal.tolist()
        for a, b in itertools.pairwise(path):
            assert grid.line_is_free(a, b, RADIUS_M - 0.01)
        back_m = grid.distance_m(goal, start, radius_m=RADIUS_M)
        assert length_m(path) == pytest.approx(back_m, rel=0.005)
        rough_m = grid.rough_distances_m(start, goal, radius_m=RADIUS_M)
        assert rough_m == pytest.approx(length_m(path), rel=0.03, abs=0.1)
    assert found > 15


@pytest.mark.parametrize("number", [6, 150, 299])
def test_no_path_of_an_episode_is_shorter_than_what_it_is_scored_by(number):
    episode = load_dataset(suite_path("houses-v1")).episodes[number]
    grid, parts = Scene.load(Path(episode.scene_config_path)).map(), 5
    square_m = grid.resolution_m / parts
    rows, columns = np.indices(np.array(grid.occupied.shape) * parts)
    centres = (np.stack([columns, rows], axis=-1) + 0.5) * square_m + grid.origin_world
    exact = ExactPlanner(grid.clearances(centres) > PLANNING_RADIUS_M)
    goal = (episode.goal.x, episode.goal.y)
    for place in episode.reference_path[::8]:
        path = grid.shortest_path((place.x, place.y), goal, radius_m=PLANNING_RADIUS_M)
        points = np.round((path - grid.origin_world) / square_m * UNITS) / UNITS
        assert exact.is_free(points)
        length = length_m(points)
        assert exact.shortest_length(points[0], points[-1], at_most=length) == pytest.approx(length, abs=1e-3)


def test_a_disc_that_is_too_wide_for_the_door_finds_no_way():
    grid = grid_of(8, 8, (4, 0, 4.1, 3), (4, 3.9, 4.1, 8))
    assert grid.shortest_path((2, 2), (6, 2), radius_m=0.5) is None
    assert grid.distance_m((2, 2), (6, 2), radius_m=0.5) == math.inf
    assert grid.shortest_path((2, 2), (6, 2), radius_m=20.0) is None


def test_even_a_thin_wall_stops_a_point():
    grid = grid_of(4, 4, (2, 0, 2.05, 4))
    assert grid.shortest_path((1, 2), (3, 2), radius_m=0.01) is None


def test_an_end_too_close_to_an_obstacle_is_joined_by_a_straight_line():
    grid = grid_of(8, 8, (2, 0, 4, 4))
    at_the_wall, goal = (1.95, 2.0), (3.0, 5.0)
    path = grid.shortest_path(at_the_wall, goal, radius_m=RADIUS_M)
    assert path[0] == pytest.approx(at_the_wall)
    beside_m = grid.distance_m((1.725, 2.025), goal, radius_m=RADIUS_M)
    assert length_m(path) == pytest.approx(beside_m + 0.225, abs=0.1)
    in_the_box = grid.shortest_path(goal, (3.0, 3.5), radius_m=RADIUS_M)
    assert in_the_box[-1] == pytest.approx((3.0, 3.5))
    assert length_m(in_the_box) == pytest.approx(1.5, abs=0.05)


def test_a_start_in_a_pocket_is_led_out_of_it_but_never_through_a_wall():
    # A cupboard with room for the disc, but its only opening is 0.4 m wide.
    lips = [(2, 2.8, 2.25, 2.85), (2.65, 2.8, 2.9, 2.85)]
    grid = grid_of(8, 8, (2, 2, 2.9, 2.1), (2, 2, 2.1, 2.85), (2.8, 2, 2.9, 2.85), *lips)
    assert grid.clearance_at(2.45, 2.5) > RADIUS_M
    out = grid.shortest_path((2.45, 2.7), (2.45, 5.0), radius_m=RADIUS_M)
    assert length_m(out) == pytest.approx(2.3, abs=0.05)
    assert grid.shortest_path((2.45, 2.4), (2.45, 5.0), radius_m=RADIUS_M) is None
    closed = grid_of(8, 8, (3, 0, 3.05, 8))
    assert closed.shortest_path((2.9, 4), (5, 4), radius_m=RADIUS_M) is None


def test_what_was_asked_before_does_not_change_an_answer():
    boxes = [(2, 0, 4, 4), (5, 3, 5.5, 8), (1, 6, 3, 6.5)]
    start, goal = (1.0, 1.0), (7.0, 6.0)
    fresh = grid_of(8, 8, *boxes).shortest_path(start, goal, radius_m=RADIUS_M)
    used = grid_of(8, 8, *boxes)
    for x in np.linspace(0.5, 7.5, 20):
        used.shortest_path((x, 7.5), (1.0, 0.5 + x / 2), radius_m=RADIUS_M)
    assert used.shortest_path(start, goal, radius_m=RADIUS_M).tolist() == fresh.tolist()


def test_start_and_goal_may_be_the_same():
    grid = grid_of(8, 8, (2, 0, 4, 4))
    assert grid.distance_m((1, 1), (1, 1), radius_m=RADIUS_M) == 0.0
    assert grid.distance_m((3, 3.9), (3, 3.9), radius_m=RADIUS_M) < 1.0


@pytest.mark.parametrize("seed", range(6))
def test_what_is_connected_is_what_has_a_finite_distance(seed):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(0, 6, (30, 2, 2)), axis=1)
    corners[:, 1] = np.minimum(corners[:, 1], corners[:, 0] + rng.choice([(0.1, 2.5), (2.5, 0.1)], 30))
    grid = grid_of(6, 6, *corners.reshape(-1, 4))
    ends = rng.uniform(-0.5, 6.5, (60, 2, 2))
    verdicts = [grid.connects(*pair, radius_m=RADIUS_M) for pair in ends]
    assert verdicts == [math.isfinite(grid.distance_m(*pair, radius_m=RADIUS_M)) for pair in ends]
    assert 0 < sum(verdicts) < len(ends)


def test_nothing_is_connected_where_the_disc_fits_nowhere():
    grid = grid_of(1, 1)
    assert not grid.connects((0.3, 0.5), (0.7, 0.5), radius_m=0.6)
    assert grid.distance_m((0.3, 0.5), (0.7, 0.5), radius_m=0.6) == math.inf
