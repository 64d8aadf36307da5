"""Paths on large maps against the exact optimum: claims to be the shortest are true, others nearly are."""

import functools
import itertools

import exact_paths
import numpy as np
import pytest
from scipy.ndimage import label
from scipy.spatial import cKDTree

from benchmarks.exact_planner import UNITS, ExactPlanner
from benchmarks.maps import CELL_M, blocks, forest, maze, rooms
from proctor.maps.free_space import ENDS_REACH_M
from proctor.maps.grid_map import GridMap
from proctor.navigation.planner import find_path
from proctor.navigation.smooth_path import smooth_path

SAME = 1e-3  # cells: lengths that differ by less are equal
KINDS = {
    "rooms": (functools.partial(rooms, 512, room_m=4.0, door_m=0.9), 0.17),
    "maze": (functools.partial(maze, 512, corridor_m=1.2, wall=2), 0.17),
    "forest": (functools.partial(forest, 512, density=0.1), 0.17),
    "blocks": (functools.partial(blocks, 512, size=16, density=0.25), 0.0),
}


def queries(free, count, seed=7):
    """Ends in the largest part of the free cells, at whole units of the exact planner."""
    rng = np.random.default_rng(seed)
    parts, _ = label(free)
    cells = np.argwhere(parts == np.bincount(parts[parts > 0]).argmax())[:, ::-1]
    for _ in range(count):
        yield cells[rng.integers(len(cells), size=2)] + rng.integers(1, UNITS, (2, 2)) / UNITS


def trials(occupied, radius_m, count):
    """For each query: whether the path claims to be the shortest, and its length by that of the shortest."""
    grid = GridMap(occupied, resolution_m=CELL_M)
    free = grid.clearance_m > radius_m
    exact = ExactPlanner(free)
    for ends in queries(free, count):
        path = find_path(grid.field, *(ends * CELL_M), radius_m=radius_m, margin_m=0.0, timeout_s=60.0)
        corners = np.round(path.points / CELL_M * UNITS) / UNITS
        assert exact.is_free(corners)
        length = exact_paths.length(corners)
        optimum = exact.shortest_length(*ends, at_most=length)
        assert optimum <= length + SAME
        yield path.optimum_gap == 0, length / optimum, length - optimum


@pytest.mark.parametrize(("kind", "count"), [("rooms", 12), ("maze", 25), ("forest", 15), ("blocks", 60)])
def test_a_path_that_claims_to_be_the_shortest_is(kind, count):
    make, radius_m = KINDS[kind]
    claimed = []
    for claims, _, longer in trials(make(seed=0), radius_m, count):
        claimed.append(claims)
        assert not claims or longer < SAME
    assert sum(claimed) > count / 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_claims_are_true_and_lengths_close_to_the_optimum_on_many_maps(kind, seed):
    make, radius_m = KINDS[kind]
    found = list(trials(make(seed=seed), radius_m, 300))
    assert [longer for claims, _, longer in found if claims and longer >= SAME] == []
    assert np.percentile([ratio for _, ratio, _ in found], 95) <= 1.015


def test_the_exact_planner_agrees_with_one_that_tries_all_points_where_cells_meet():
    rng = np.random.default_rng(3)
    lengths = []
    for _ in range(40):
        free = rng.random((5, 6)) >= rng.uniform(0.1, 0.5)
        boxes = exact_paths.forbidden_boxes(free)
        cells = np.argwhere(free)[:, ::-1]
        ends = cells[rng.integers(len(cells), size=2)] + rng.choice([0.0, 0.5, 0.25, 0.875], size=(2, 2))
        if exact_paths.lines_are_free(boxes, ends, ends).all():
            lengths.append(ExactPlanner(free).shortest_length(*ends))
            assert lengths[-1] == pytest.approx(exact_paths.shortest_length(boxes, *ends))
    assert np.isfinite(lengths).sum() > 15
    assert np.isinf(lengths).sum() > 3


def clearance_of_lines(occupied, points):
    """Points along a path, in cells, and how far each is from the nearest occupied cell."""
    counts = [2 + int(10 * np.linalg.norm(b - a)) for a, b in itertools.pairwise(points)]
    dense = np.concatenate(
        [np.linspace(*ends, n) for ends, n in zip(itertools.pairwise(points), counts, strict=True)]
    )
    centres = np.argwhere(occupied)[:, ::-1] + 0.5
    near = centres[cKDTree(centres).query(dense, k=24)[1]]
    outside = np.maximum(np.abs(dense[:, None] - near) - 0.5, 0)
    return dense, np.hypot(outside[..., 0], outside[..., 1]).min(axis=1)


def test_a_path_keeps_the_radius_and_the_margin_but_for_half_the_diagonal_of_a_cell():
    radius_m, half_diagonal_m = 0.17, CELL_M * np.sqrt(0.5)
    grid = GridMap(rooms(200, room_m=3.3, door_m=0.8, seed=0), resolution_m=CELL_M)
    least_m, least_smooth_m = [], []
    for ends in queries(grid.clearance_m > radius_m, 30):
        path = find_path(grid.field, *(ends * CELL_M), radius_m=radius_m, timeout_s=60.0)
        places, clearances = clearance_of_lines(grid.occupied, path.points / CELL_M)
        clearances_m = clearances * CELL_M
        apart_m = np.linalg.norm(places[:, None] - ends, axis=-1).min(axis=1) * CELL_M
        far = apart_m > ENDS_REACH_M + CELL_M
        assert clearances_m.min() > radius_m - half_diagonal_m
        assert (clearances_m[far] > radius_m + path.margin_m - half_diagonal_m).all()
        least_m.append(clearances_m.min())
        if grid.clearances(ends * CELL_M).min() > radius_m:
            legs, _ = smooth_path(grid.field, path.points, radius_m=radius_m, margin_m=path.margin_m)
            points = np.concatenate([leg.points for leg in legs]) / CELL_M
            least_smooth_m.append(clearance_of_lines(grid.occupied, points)[1].min() * CELL_M)
    assert min(least_m) < radius_m  # which is why it is said
    assert len(least_smooth_m) > 20
    assert min(least_smooth_m) > radius_m - 0.003  # by which clearances between cells may be too large
