import itertools

import exact_paths
import numpy as np
import pytest
from nav_fields import cell_query
from scipy.ndimage import label
from scipy.sparse.csgraph import dijkstra

from proctor.kernels.corner_tree import shorter_path
from proctor.kernels.grid_search import STEPS
from proctor.kernels.taut import tautened
from proctor.maps import any_angle
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.failure import NavigationFailure, Reason


def plan(planner, free, start, goal, **options):
    return planner.plan(cell_query(free, start, goal, **options))


def random_queries(seed, count, *, shape=(6, 8), density=None):
    """Masks with two points anywhere in free cells, many of them on borders and corners of cells."""
    rng = np.random.default_rng(seed)
    while count:
        free = rng.random(shape) >= (rng.uniform(0.1, 0.5) if density is None else density)
        free[0, 0] = True
        cells = np.argwhere(free)[:, ::-1]
        ends = cells[rng.integers(len(cells), size=2)] + rng.choice([0.0, 0.5, 0.3, 0.999], size=(2, 2))
        # Where two blocked cells meet diagonally a point is on both sides of them.
        if exact_paths.lines_are_free(exact_paths.forbidden_boxes(free), ends, ends).all():
            yield free, ends[0], ends[1]
            count -= 1


def test_paths_are_the_shortest_there_are_and_found_whenever_there_is_one():
    found = 0
    for free, start, goal in random_queries(1, 30):
        planner = AnyAnglePlanner(free, reach=0)
        path = plan(planner, free, start, goal)
        parts, _ = label(free)
        joined = parts[int(start[1]), int(start[0])] == parts[int(goal[1]), int(goal[0])]
        assert (path is not None) == joined
        if path is None:
            continue
        found += 1
        assert path[0].tolist() == start.tolist()
        assert path[-1].tolist() == goal.tolist()
        boxes = exact_paths.forbidden_boxes(free)
        assert exact_paths.path_is_free(boxes, path)
        assert planner.optimum_gap == 0
        optimum = exact_paths.shortest_length(boxes, start, goal)
        assert exact_paths.length(path) == pytest.approx(optimum, abs=1e-5)
        for limit in (1e3, optimum + 1e-3):
            shortest, certain = shorter_path(free, planner._corners, start, goal, limit, 10**9)
            assert certain
            assert exact_paths.length(shortest) == pytest.approx(optimum)
        shortest, certain = shorter_path(free, planner._corners, start, goal, optimum - 1e-3, 10**9)
        assert (len(shortest), certain) == (0, True)
    assert 15 < found < 45


def test_without_refinement_paths_are_taut_and_hardly_too_long(monkeypatch):
    monkeypatch.setattr(any_angle, "REFINING_WORK", -1)
    exact = 0
    for free, start, goal in random_queries(2, 40, density=0.25):
        planner = AnyAnglePlanner(free, reach=0)
        path = plan(planner, free, start, goal)
        if path is None or len(path) == 2:
            continue
        boxes = exact_paths.forbidden_boxes(free)
        assert exact_paths.path_is_free(boxes, path)
        optimum = exact_paths.shortest_length(boxes, start, goal)
        assert (
            optimum - 1e-6 <= exact_paths.length(path) <= 1.083 * optimum + 2
        )  # cells from both ends to the centres of theirs
        assert planner.optimum_gap is None
        assert tautened(planner._corners, path).tolist() == path.tolist()
        exact += exact_paths.length(path) < optimum + 1e-5
    assert exact > 10  # else it is not the string that is taut but luck


def test_a_way_over_cells_is_the_cheapest():
    for free, start, goal in random_queries(4, 20, shape=(15, 15), density=0.3):
        path = AnyAnglePlanner(free, reach=0).path_over_cells(cell_query(free, start, goal))
        graph = np.zeros((free.size, free.size))
        for (row, column), (down, right) in itertools.product(np.argwhere(free), STEPS):
            square = free[min(row, row + down) :, min(column, column + right) :]
            inside = 0 <= row + down < 15 and 0 <= column + right < 15
            if inside and square[: abs(down) + 1, : abs(right) + 1].all():
                after = (row + down) * 15 + column + right
                graph[row * 15 + column, after] = np.hypot(down, right)
        cells = [int(end[1]) * 15 + int(end[0]) for end in (start, goal)]
        cheapest = dijkstra(graph, indices=cells[0])[cells[1]]
        assert (path is not None) == np.isfinite(cheapest)
        if path is not None:
            assert exact_paths.length(path) == pytest.approx(cheapest, rel=1e-4)


def test_a_string_in_a_bent_corridor_lies_around_its_inner_corners():
    free = np.zeros((12, 12), dtype=bool)
    free[1:3, 1:11] = free[1:11, 9:11] = free[9:11, 1:11] = True
    path = plan(AnyAnglePlanner(free, reach=0), free, (1.5, 1.5), (1.5, 10.5))
    assert path.tolist() == [[1.5, 1.5], [9, 3], [9, 9], [1.5, 10.5]]


def test_a_search_in_slices_finds_the_same_path(monkeypatch):
    queries = list(random_queries(3, 20, shape=(40, 40), density=0.25))
    paths = [plan(AnyAnglePlanner(free, reach=0), free, *ends) for free, *ends in queries]
    monkeypatch.setattr(any_angle, "SLICE", 7)
    for (free, *ends), path in zip(queries, paths, strict=True):
        again = plan(AnyAnglePlanner(free, reach=0), free, *ends)
        assert (again is None) == (path is None)
        assert path is None or again.tolist() == path.tolist()


def walled(*, door):
    """A wall of one cell across a map, with or without a door far from the straight line."""
    free = np.ones((60, 60), dtype=bool)
    free[:, 30] = False
    free[58, 30] = door
    return free


def test_a_search_ends_when_it_is_cancelled_or_late(monkeypatch):
    monkeypatch.setattr(any_angle, "SLICE", 50)
    planner = AnyAnglePlanner(walled(door=True), reach=0)
    asked = []

    def cancelled():
        asked.append(True)
        return len(asked) == 3

    with pytest.raises(NavigationFailure) as failure:
        plan(planner, walled(door=True), (5, 5), (50, 5), cancelled=cancelled)
    assert failure.value.reason is Reason.CANCELLED
    assert len(asked) == 3
    with pytest.raises(NavigationFailure) as failure:
        plan(planner, walled(door=True), (5, 5), (50, 5), timeout_s=0.0)
    assert failure.value.reason is Reason.PLANNING_TIMEOUT
    assert plan(planner, walled(door=True), (5, 5), (50, 5)) is not None


def test_a_goal_in_a_closed_room_does_not_take_a_search_of_the_whole_map(monkeypatch):
    monkeypatch.setattr(any_angle, "SLICE", 50)
    planner = AnyAnglePlanner(walled(door=False), reach=0)
    assert plan(planner, walled(door=False), (5, 5), (50, 5), cancelled=lambda: True) is None


def test_what_is_free_for_one_query_is_not_for_the_next():
    shut, free = walled(door=False), walled(door=False)
    planner = AnyAnglePlanner(shut, reach=3)
    free[30, 30] = True
    assert plan(planner, free, (27.5, 30.5), (50, 5)) is not None
    free[30, 30] = False
    assert plan(planner, free, (5.5, 5.5), (50, 5)) is None
    free[40, 30] = True
    path = plan(planner, free, (5.5, 40.5), (32.5, 38.5))
    assert path.tolist() == [[5.5, 40.5], [31, 40], [32.5, 38.5]]
