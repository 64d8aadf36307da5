"""The default planner on generated maps and in the houses of `houses-v1`: times, and lengths.

Beside it stand the distances by which episodes are scored, which come from the same search over corners.

The optimum is the length of the shortest path there is, at any angle, by `ExactPlanner`, which shares no code
with the planner. It is that in the same free space; and, to show what the margin costs, that for the bare
radius. Queries are drawn where the bare robot fits, from one part of the free space, far apart. Times are
those of the thread, which waits for nothing, so that others on the machine do not count.

Run it with `python -m benchmarks planning`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.ndimage import label

import proctor.suites
from benchmarks.exact_planner import UNITS, ExactPlanner
from benchmarks.maps import CELL_M, MAPS, PUBLIC_STYLE
from benchmarks.rows import Row
from proctor.core.geometry import path_length
from proctor.core.types import Array
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.failure import NavigationFailure
from proctor.maps.free_space import FreeSpace
from proctor.maps.grid_map import GridMap
from proctor.navigation.planner import RawPath, find_path
from proctor.scenes.scene import Scene

RADIUS_M, HOUSE_RADIUS_M = 0.25, 0.17
QUERIES = {512: 40, 2048: 10}
HOUSE_QUERIES = 5
PUBLIC_QUERIES = 3
PARTS = 5  # of the side of a cell: the squares that episodes are scored by
FAR = 0.35  # of the map's side, at least
REPEATS = 3
SAME = 1e-3  # cells: lengths that differ by less are equal


class Trial(NamedTuple):
    """A query on a prepared map. It took `time_s`; lengths are over the optimum."""

    large: bool
    solved: bool
    time_s: float = 0.0
    over_optimum: float = 1.0
    over_bare_optimum: float = 1.0
    claims: bool = False
    """Whether the path is said to be certainly the shortest,"""
    claims_wrongly: bool = False
    """and whether it is not."""


def bench() -> list[Row]:
    """Plan on all maps."""
    trials, prepare_s = [], {}
    for make in MAPS.values():
        grid = GridMap(make(), resolution_m=CELL_M)
        size = grid.occupied.shape[0]
        trials += tried(grid, RADIUS_M, QUERIES[size])
        prepare_s.setdefault(size, []).append(prepared_s(grid))
    geodesics = []
    for path in sorted(Path(proctor.suites.__file__).parent.glob("houses-v1/scenes/*.json")):
        trials += tried(Scene.load(path).map(), HOUSE_RADIUS_M, HOUSE_QUERIES)
        geodesics += scored(Scene.load(path).map())
    public = []
    for make in PUBLIC_STYLE.values():
        public += tried(GridMap(make(), resolution_m=CELL_M), 0.0, PUBLIC_QUERIES, margin_m=0.0)
    return [
        *time_rows(trials),
        *prepare_rows(prepare_s),
        *length_rows(trials),
        *public_rows(public),
        *score_rows(geodesics),
    ]


def time_rows(trials: list[Trial]) -> list[Row]:
    """Percentiles of the times, against what they may be at most."""
    rows = []
    for large, kind, budgets in (
        (False, "up to 512x512", (0.010, 0.040)),
        (True, "2048x2048", (0.060, 0.200)),
    ):
        times_s = [trial.time_s for trial in trials if trial.large == large and trial.solved]
        for percent, budget_s in zip((50, 95), budgets, strict=True):
            rows.append(
                Row(
                    f"plan p{percent}, {kind} (vs budget)", np.percentile(times_s, percent), budget_s, bar=1.0
                )
            )
    return rows


def prepare_rows(prepare_s: dict[int, list[float]]) -> list[Row]:
    """What the first query on a changed map costs more than others, against the budget of a plan's p95."""
    budgets = {512: 0.040, 2048: 0.200}
    return [
        Row(
            f"plan: prepare a changed {size}x{size} map (vs budget)",
            np.median(times_s),
            budgets[size],
            bar=1.0,
        )
        for size, times_s in prepare_s.items()
    ]


def length_rows(trials: list[Trial]) -> list[Row]:
    """Percentiles of the lengths over the optimum, all maps pooled; and whether all queries were solved."""
    solved = [trial for trial in trials if trial.solved]
    over, over_bare = ([getattr(trial, name) for trial in solved] for name in Trial._fields[3:5])
    claims, wrong = (sum(getattr(trial, name) for trial in solved) for name in Trial._fields[5:])
    return [
        Row("path length p50 (vs optimum)", np.percentile(over, 50), 1.0, bar=1.005, unit="x"),
        Row("path length p95 (vs optimum)", np.percentile(over, 95), 1.0, bar=1.015, unit="x"),
        Row(
            "path length p50 (vs optimum, bare radius)", np.percentile(over_bare, 50), 1.0, bar=1.02, unit="x"
        ),
        Row(
            "path length p95 (vs optimum, bare radius)", np.percentile(over_bare, 95), 1.0, bar=1.06, unit="x"
        ),
        Row("wrong claims to be the shortest (vs claims)", wrong, claims, bar=0.0, unit=""),
        Row("solvable queries (vs solved)", len(trials), len(solved), bar=1.0, unit=""),
    ]


def public_rows(trials: list[Trial]) -> list[Row]:
    """The same for a point on maps as public benchmarks have them."""
    solved = [trial for trial in trials if trial.solved]
    over = np.percentile([trial.over_optimum for trial in solved], 95)
    claims, wrong = (sum(getattr(trial, name) for trial in solved) for name in Trial._fields[5:])
    maps = f"{len(PUBLIC_STYLE)} public-style maps"
    return [
        Row(f"path length p95, {maps} (vs optimum)", over, 1.0, bar=1.015, unit="x"),
        Row(f"wrong claims, {maps} (vs claims)", wrong, claims, bar=0.0, unit=""),
        Row(f"solvable queries, {maps} (vs solved)", len(trials), len(solved), bar=1.0, unit=""),
    ]


def score_rows(over_optimum: list[float]) -> list[Row]:
    """What episodes are scored by: never shorter than the shortest path there is, and hardly longer."""
    below = sum(over < 1.0 - 1e-6 for over in over_optimum)
    return [
        Row("scored distance, longest (vs optimum)", max(over_optimum), 1.0, bar=1.003, unit="x"),
        Row("scored distances below the optimum (vs all)", below, len(over_optimum), bar=0.0, unit=""),
    ]


def scored(grid: GridMap) -> list[float]:
    """Distances in a house over the optimum through the squares that they are defined by."""
    square_m = grid.resolution_m / PARTS
    rows, columns = np.indices([PARTS * cells for cells in grid.occupied.shape])
    centres = (np.stack([columns, rows], axis=-1) + 0.5) * square_m + grid.origin_world
    exact = ExactPlanner(grid.clearances(centres) > RADIUS_M)
    ratios = []
    for start, goal in queries(grid, RADIUS_M, 2):
        path = grid.shortest_path(start, goal, radius_m=RADIUS_M)
        points = np.round((path - grid.origin_world) / square_m * UNITS) / UNITS
        length = path_length(points)
        # Ends that had to be joined to the free space are none of the search's business.
        if exact.is_free(points):
            ratios.append(length / exact.shortest_length(points[0], points[-1], at_most=length))
    return ratios


def tried(grid: GridMap, radius_m: float, count: int, **options: float) -> list[Trial]:
    """Plan between random places of a map."""
    large = max(grid.occupied.shape) > 512
    trials = []
    for start, goal in queries(grid, radius_m, count):
        try:
            path = planned(grid, start, goal, radius_m, **options)
        except NavigationFailure:
            trials.append(Trial(large, solved=False))
            continue
        time_s = least_s(grid, start, goal, radius_m, **options)
        optimum = optimum_m(grid, start, goal, radius_m, path.margin_m, path.length_m)
        bare_optimum = optimum_m(grid, start, goal, radius_m, 0.0, path.length_m)
        over, over_bare = path.length_m / optimum, path.length_m / bare_optimum
        claims = path.optimum_gap == 0
        wrong = claims and path.length_m - optimum > SAME * grid.resolution_m
        trials.append(
            Trial(
                large,
                solved=True,
                time_s=time_s,
                over_optimum=over,
                over_bare_optimum=over_bare,
                claims=claims,
                claims_wrongly=wrong,
            )
        )
    return trials


def planned(grid: GridMap, start: Array, goal: Array, radius_m: float, **options: float) -> RawPath:
    return find_path(grid.field, start, goal, radius_m=radius_m, timeout_s=60.0, **options)


def least_s(grid: GridMap, start: Array, goal: Array, radius_m: float, **options: float) -> float:
    """The least time of a few, of which others may have disturbed some."""
    times_s = []
    for _ in range(REPEATS):
        started_s = time.thread_time()
        planned(grid, start, goal, radius_m, **options)
        times_s.append(time.thread_time() - started_s)
    return min(times_s)


def prepared_s(grid: GridMap) -> float:
    """How long it takes to get ready for a map, its clearances given."""
    started_s = time.thread_time()
    FreeSpace(grid.field, RADIUS_M, 0.05).planner(AnyAnglePlanner)
    return time.thread_time() - started_s


def queries(grid: GridMap, radius_m: float, count: int) -> list[tuple[Array, Array]]:
    """Places in the largest part of the free space, anywhere in their cells."""
    rng = np.random.default_rng(7)
    parts, _ = label(grid.clearance_m > radius_m)
    cells = np.argwhere(parts == np.bincount(parts[parts > 0]).argmax())[:, ::-1]
    least_cells = FAR * min(np.ptp(cells, axis=0))
    found: list[tuple[Array, Array]] = []
    while len(found) < count:
        ends = cells[rng.integers(len(cells), size=2)] + rng.random((2, 2))
        if np.linalg.norm(ends[1] - ends[0]) >= least_cells:
            start, goal = ends * grid.resolution_m + grid.origin_world
            found.append((start, goal))
    return found


def optimum_m(
    grid: GridMap, start: Array, goal: Array, radius_m: float, margin_m: float, length_m: float
) -> float:
    """The length of the shortest path, which is at most that of one that was found."""
    ends = [(end - grid.origin_world) / grid.resolution_m for end in (start, goal)]
    with FreeSpace(grid.field, radius_m, margin_m).open_at(*ends) as free:
        optimum = ExactPlanner(free).shortest_length(*ends, at_most=length_m / grid.resolution_m)
    return min(optimum * grid.resolution_m, length_m)
