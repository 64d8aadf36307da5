"""The planners of OMPL: exact, repeatable, and kept from running on."""

import numpy as np
import pytest
from nav_fields import cell_query, comb, field_of, rooms, walled

from proctor.core.errors import UnknownName
from proctor.kernels.lines import path_is_free
from proctor.maps.any_angle import AnyAnglePlanner
from proctor.maps.failure import NavigationFailure, PluginFailure, Reason
from proctor.navigation.ompl_planner import PrmPlanner, RrtConnectPlanner, RrtPlanner, RrtStarPlanner
from proctor.navigation.planner import find_path

ALL = ["rrt", "rrt_star", "prm", "rrt_connect"]
START, GOAL = (0.6, 5.0), (7.4, 1.0)
RADIUS_M, MARGIN_M = 0.17, 0.05
FAR = (10.0, 20.0), (230.0, 20.0)  # both ends of the comb, in cells


@pytest.fixture(scope="module")
def field():
    return rooms()


def planned(field, planner, **options):
    options = {"radius_m": RADIUS_M, "margin_m": MARGIN_M, "seed": 1, "timeout_s": 30.0, **options}
    return find_path(field, START, GOAL, planner=planner, **options)


@pytest.mark.parametrize("planner", ALL)
def test_a_path_goes_from_the_start_to_the_goal_through_free_cells_only(field, planner):
    path = planned(field, planner)
    assert path.points[0].tolist() == list(START)
    assert path.points[-1].tolist() == list(GOAL)
    assert path_is_free(field.cells > RADIUS_M + MARGIN_M, path.points / field.resolution_m)
    assert path.length_m < 1.2 * planned(field, "grid").length_m
    assert (path.planner, path.margin_m) == (planner, MARGIN_M)


@pytest.mark.parametrize("planner", ALL)
def test_the_same_seed_gives_the_same_path(planner):
    first, again, other = (planned(rooms(), planner, seed=seed).points for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_rrt_star_is_near_the_shortest(field):
    lengths_m = [planned(field, "rrt_star", seed=seed).length_m for seed in range(3)]
    assert max(lengths_m) < 1.02 * planned(field, "grid").length_m


def test_ompls_own_names_are_understood(field):
    assert planned(field, "ompl:RRTConnect").planner == "rrt_connect"
    with pytest.raises(UnknownName, match="ompl:BFMT"):
        planned(field, "ompl:BFMT")


def test_the_roadmap_is_made_once_for_a_map(field):
    free = field.cells > RADIUS_M
    planner = PrmPlanner(free, reach=10)
    planner.plan(cell_query(free, (12.0, 100.0), (148.0, 20.0)))
    roadmap = planner._roadmap
    assert len(roadmap.places) >= 500
    path = planner.plan(cell_query(free, (80.0, 100.0), (20.0, 90.0)))
    assert path_is_free(free, path)
    assert planner._roadmap is roadmap
    assert free[tuple(roadmap.places.astype(int).T[::-1])].all()


def test_a_roadmap_goes_nowhere_that_was_free_for_one_query_only():
    free = np.zeros((60, 100), dtype=bool)
    free[5:15, 5:95] = True
    query = free.copy()
    query[15:25, 5:8] = query[22:25, 5:12] = True  # a nook with a bend
    planner = PrmPlanner(free, reach=20)
    path = planner.plan(cell_query(query, (11.5, 23.5), (90.0, 8.0)))
    assert path_is_free(query, path)
    rows, columns = planner._roadmap.places.astype(int).T[::-1]
    assert free[rows, columns].all()


@pytest.mark.parametrize("kind", [RrtPlanner, RrtConnectPlanner, RrtStarPlanner, PrmPlanner])
def test_whoever_is_cancelled_ends(kind):
    free = comb().cells > RADIUS_M
    with pytest.raises(NavigationFailure) as failure:
        kind(free, reach=10).plan(cell_query(free, *FAR, cancelled=lambda: True))
    assert failure.value.reason == Reason.CANCELLED


@pytest.mark.parametrize("kind", [RrtPlanner, RrtConnectPlanner, RrtStarPlanner, PrmPlanner])
def test_time_that_is_up_is_a_timeout(kind):
    free = comb().cells > RADIUS_M
    with pytest.raises(NavigationFailure, match="in the time") as failure:
        kind(free, reach=10).plan(cell_query(free, *FAR, timeout_s=1e-9))
    assert failure.value.reason == Reason.PLANNING_TIMEOUT


@pytest.mark.parametrize("planner", ALL)
def test_it_is_asked_without_a_search_over_the_cells_before(field, planner, monkeypatch):
    monkeypatch.setattr(AnyAnglePlanner, "plan", None)
    assert planned(field, planner).planner == planner
    with pytest.raises(PluginFailure, match="TypeError"):
        planned(field, "grid")


@pytest.mark.parametrize("planner", ALL)
def test_where_there_is_no_way_no_time_is_spent(planner):
    occupied = walled()
    occupied[:, 80] = True
    with pytest.raises(NavigationFailure) as failure:
        planned(field_of(occupied), planner, timeout_s=600.0)
    assert failure.value.reason == Reason.NO_PATH
