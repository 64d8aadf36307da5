import math
import threading

import exact_paths
import numpy as np
import pytest
from scipy.ndimage import label

from proctor.core.errors import UnknownName
from proctor.core.registry import names
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.navigation import planner as planner_module
from proctor.navigation.planner import find_path, planner_name

RADIUS_M = 0.17


def room(*boxes, width_m=6.0, height_m=5.0, origin=(-1.0, 2.0), resolution_m=0.05):
    """A room with a wall of one cell around it and boxes (x0, y0, x1, y1), from its lower left corner."""
    occupied = np.ones((round(height_m / resolution_m), round(width_m / resolution_m)), dtype=bool)
    occupied[1:-1, 1:-1] = False
    for box in boxes:
        x0, y0, x1, y1 = (round(side / resolution_m) for side in box)
        occupied[y0:y1, x0:x1] = True
    return GridMap(occupied, resolution_m=resolution_m, origin_world=origin)


def in_cells(grid, points):
    return (points - np.array(grid.origin_world)) / grid.resolution_m


def with_door(width_m):
    """Two rooms side by side and a door between them, 1 m above the middle of the wall."""
    return room((3.0, 0.0, 3.1, 3.5), (3.0, 3.5 + width_m, 3.1, 5.0))


LEFT, RIGHT = (0.5, 4.0), (3.5, 4.0)


def test_a_path_starts_and_ends_exactly_and_keeps_the_margin():
    grid = room((2.0, 0.0, 3.0, 4.0))
    path = find_path(grid.field, (0.123456, 3.1), (3.3, 3.654321), radius_m=RADIUS_M)
    assert path.points[0].tolist() == [0.123456, 3.1]
    assert path.points[-1].tolist() == [3.3, 3.654321]
    assert (path.planner, path.margin_m, path.optimum_gap) == ("grid", 0.05, 0.0)
    assert path.length_m == pytest.approx(exact_paths.length(path.points))
    boxes = exact_paths.forbidden_boxes(grid.clearance_m > RADIUS_M + 0.05)
    assert exact_paths.path_is_free(boxes, in_cells(grid, path.points))


@pytest.mark.parametrize(
    ("door_m", "radius_m", "margin_m"), [(0.6, 0.17, 0.05), (0.4, 0.14, 0.025), (0.4, 0.17, 0.0)]
)
def test_the_margin_shrinks_before_planning_fails(door_m, radius_m, margin_m):
    grid = with_door(door_m)
    path = find_path(grid.field, LEFT, RIGHT, radius_m=radius_m)
    assert path.margin_m == margin_m
    boxes = exact_paths.forbidden_boxes(grid.clearance_m > radius_m + margin_m)
    assert exact_paths.path_is_free(boxes, in_cells(grid, path.points))


def test_where_the_bare_robot_does_not_fit_there_is_no_path():
    with pytest.raises(NavigationFailure, match=r"from \(0.50, 4.00\) to \(3.50, 4.00\).*0.17 m") as failure:
        find_path(with_door(0.3).field, LEFT, RIGHT, radius_m=RADIUS_M)
    assert failure.value.reason is Reason.NO_PATH


def test_a_goal_beside_a_wall_is_reached_without_giving_up_the_margin_elsewhere():
    grid = room((2.0, 0.0, 3.0, 4.0))
    goal = (4.95 - RADIUS_M - 0.03, 3.0)  # the wall is at x = 4.95
    path = find_path(grid.field, (0.0, 3.0), goal, radius_m=RADIUS_M)
    assert path.margin_m == 0.05
    near = np.linalg.norm(path.points - goal, axis=1) <= 0.5
    clearances_m = grid.clearances(path.points[1:-1])
    assert (clearances_m[~near[1:-1]] > RADIUS_M + 0.05 - 0.036).all()


def test_every_query_that_is_solvable_at_the_bare_radius_is_solved_and_no_other():
    rng = np.random.default_rng(5)
    answers = []
    for _ in range(12):
        boxes = [(x, y, x + 0.1, y + 0.1) for x, y in rng.random((15, 2)) * (2.5, 2.0)]
        grid = room(*boxes, width_m=2.5, height_m=2.0)
        free = grid.clearance_m > RADIUS_M
        parts, _ = label(free)
        forbidden = exact_paths.forbidden_boxes(free)
        cells = np.argwhere(free)[:, ::-1]
        for first, second in cells[rng.integers(len(cells), size=(8, 2))]:
            ends = (np.stack([first, second]) + rng.random((2, 2))) * 0.05 + grid.origin_world
            if parts[tuple(first[::-1])] == parts[tuple(second[::-1])]:
                path = find_path(grid.field, *ends, radius_m=RADIUS_M)
                assert exact_paths.path_is_free(forbidden, in_cells(grid, path.points))
                answers.append(path.margin_m)
            else:
                with pytest.raises(NavigationFailure) as failure:
                    find_path(grid.field, *ends, radius_m=RADIUS_M)
                answers.append(failure.value.reason)
    assert set(answers) == {0.05, 0.025, 0.0, Reason.NO_PATH}


def test_the_order_of_queries_does_not_matter():
    rng = np.random.default_rng(6)
    boxes = [(x, y, x + 0.6, y + 0.6) for x, y in rng.random((12, 2)) * (5, 4)]
    grid = room(*boxes)
    cells = np.argwhere(grid.clearance_m > RADIUS_M)[:, ::-1]
    queries = (cells[rng.integers(len(cells), size=(30, 2))] + 0.5) * 0.05 + grid.origin_world
    queries = [ends for ends in queries if grid._finder(RADIUS_M).connects(*ends)]
    there = [find_path(grid.field, *ends, radius_m=RADIUS_M) for ends in queries]
    fresh = room(*boxes)
    back = [find_path(fresh.field, *ends, radius_m=RADIUS_M) for ends in reversed(queries)][::-1]
    assert len(queries) > 10
    assert [path.points.tolist() for path in there] == [path.points.tolist() for path in back]


def test_what_is_prepared_is_kept_for_the_same_map_only(monkeypatch):
    made = []
    original = planner_module.FreeSpace
    monkeypatch.setattr(planner_module, "FreeSpace", lambda *args: made.append(args) or original(*args))
    open_room, walled = room(), room((3.0, 0.0, 3.1, 5.0))
    assert find_path(open_room.field, LEFT, RIGHT, radius_m=RADIUS_M).length_m == 3.0
    assert find_path(open_room.field, LEFT, (3.0, 4.0), radius_m=RADIUS_M).length_m == 2.5
    assert len(made) == 1
    with pytest.raises(NavigationFailure):
        find_path(walled.field, LEFT, RIGHT, radius_m=RADIUS_M)
    assert len(made) == 4  # a map, three margins
    find_path(open_room.field, LEFT, RIGHT, radius_m=0.3)
    assert len(made) == 5
    for _ in range(3):
        find_path(room().field, LEFT, RIGHT, radius_m=RADIUS_M)
    assert len(planner_module._kept) == planner_module.KEPT_SPACES


@pytest.mark.parametrize(
    ("start", "goal", "reason"),
    [
        ((-1.2, 4.0), RIGHT, Reason.START_OUTSIDE_MAP),
        ((math.nan, 4.0), RIGHT, Reason.START_OUTSIDE_MAP),
        (LEFT, (3.0, 7.1), Reason.GOAL_OUTSIDE_MAP),
        (LEFT, (math.inf, 4.0), Reason.GOAL_OUTSIDE_MAP),
        ((2.5, 3.0), RIGHT, Reason.START_OCCUPIED),
        (LEFT, (2.5, 3.0), Reason.GOAL_OCCUPIED),
        (LEFT, (1.9, 3.0), Reason.GOAL_OCCUPIED),  # free, but not for the robot
    ],
)
def test_each_bad_end_has_its_own_reason(start, goal, reason):
    grid = room((3.0, 0.0, 4.0, 2.0), (3.0, 2.8, 4.0, 5.0))
    with pytest.raises(NavigationFailure) as failure:
        find_path(grid.field, start, goal, radius_m=RADIUS_M)
    assert failure.value.reason is reason


def test_a_map_without_room_says_so():
    with pytest.raises(NavigationFailure) as failure:
        find_path(room(width_m=0.4).field, (-0.8, 4.0), (-0.8, 5.0), radius_m=RADIUS_M)
    assert failure.value.reason is Reason.NO_FREE_SPACE


def test_no_time_or_a_cancelled_search_ends_planning(monkeypatch):
    monkeypatch.setattr("proctor.maps.any_angle.SLICE", 10)
    grid = with_door(0.8)
    for options, reason in (
        ({"timeout_s": 0.0}, Reason.PLANNING_TIMEOUT),
        ({"cancelled": lambda: True}, Reason.CANCELLED),
    ):
        with pytest.raises(NavigationFailure) as failure:
            find_path(grid.field, (0.5, 2.5), (3.5, 2.5), radius_m=RADIUS_M, **options)
        assert failure.value.reason is reason


def test_from_a_place_to_itself_is_no_way():
    path = find_path(room().field, LEFT, LEFT, radius_m=RADIUS_M)
    assert path.points.tolist() == [list(LEFT), list(LEFT)]
    assert path.length_m == 0


def test_an_end_on_the_border_of_a_cell_that_is_not_free_belongs_to_the_free_one():
    grid = room(origin=(0.0, 0.0))
    first_free = np.flatnonzero(grid.clearance_m[50] > RADIUS_M)[[0, -1]] + (0, 1)
    for column in first_free:
        end = (column * 0.05, 2.5)
        assert find_path(grid.field, end, (3.0, 2.5), radius_m=RADIUS_M).points[0].tolist() == list(end)


def test_threads_plan_on_one_map_at_once():
    grid = room((1.0, 0.0, 2.0, 4.0), (3.0, 1.0, 4.0, 5.0))
    queries = [((-0.5, 2.5 + 0.1 * index), (4.5, 2.6 + 0.1 * index)) for index in range(8)]
    alone = [find_path(grid.field, *ends, radius_m=RADIUS_M).points.tolist() for ends in queries]
    together = [None] * len(queries)

    def work(index):
        together[index] = find_path(grid.field, *queries[index], radius_m=RADIUS_M).points.tolist()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(queries))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_planners_have_names_and_those_of_ompl_a_second():
    known = names("planner")
    assert set(known) >= {"grid", "prm", "rrt", "rrt_connect", "rrt_star"}
    assert [planner_name(name) for name in known] == list(known)
    assert planner_name("ompl:RRTstar") == "rrt_star"
    assert planner_name("ompl:RRT*") == "rrt_star"
    assert planner_name("ompl:RRTConnect") == "rrt_connect"
    assert planner_name("ompl:PRM") == "prm"
    for wrong in ("rrtstar", "ompl:grid", "ompl:", "", "RRT"):
        with pytest.raises(UnknownName, match="rrt_star"):
            planner_name(wrong)
    with pytest.raises(UnknownName, match="did you mean 'prm'"):
        find_path(room().field, LEFT, RIGHT, planner="prn", radius_m=RADIUS_M)
