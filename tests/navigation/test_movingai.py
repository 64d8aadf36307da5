"""Maps and scenarios of MovingAI: cells in metres, and one message with file and line for each mistake."""

from itertools import pairwise

import numpy as np
import pytest

from proctor.core.errors import InvalidFile, UserError
from proctor.maps.map_files import load_map
from proctor.maps.movingai import load_movingai_map, load_scenario

ROWS = ["..G.@", "SSO..", "W.T.."]
MAP = "type octile\nheight 3\nwidth 5\nmap\n" + "\n".join(ROWS) + "\n"
LINE = "0\tmaps/dao/small.map\t5\t3\t0\t0\t4\t2\t6.24264069"


@pytest.fixture
def map_path(tmp_path):
    (tmp_path / "small.map").write_text(MAP + " \n\n")
    return tmp_path / "small.map"


def scen(tmp_path, *lines):
    file = tmp_path / "small.map.scen"
    file.write_text("version 1.0\n" + "\n".join(lines) + "\n")
    return file


def test_characters_are_free_or_occupied_and_the_first_row_is_the_uppermost(map_path):
    grid = load_map(map_path)
    for row, characters in enumerate(ROWS):
        for column, character in enumerate(characters):
            clearance = grid.clearance_at((column + 0.5) * 0.5, (len(ROWS) - row - 0.5) * 0.5)
            assert (clearance > 0) == (character in ".GS"), (row, column)
    assert grid.clearance_at(-0.25, 0.75) <= 0  # the map is closed all around
    assert grid.resolution_m == pytest.approx(0.1)


def test_cells_have_the_side_that_is_asked_for(map_path):
    grid = load_movingai_map(map_path, 2.0)
    assert grid.occupied.shape[1] * grid.resolution_m == pytest.approx((5 + 2) * 2.0)
    assert grid.clearance_at(1.0, 5.0) > 0
    with pytest.raises(UserError, match=r"--cell: expected 0\.05 to 10\.0 metres, found nan"):
        load_movingai_map(map_path, float("nan"))


def test_a_corridor_of_one_cell_is_wide_enough_for_the_robot(tmp_path):
    (tmp_path / "lane.map").write_text("type octile\nheight 3\nwidth 4\nmap\n@@@@\n....\n@@@@\n")
    grid = load_map(tmp_path / "lane.map")
    path = grid.shortest_path((0.25, 0.75), (1.75, 0.75), radius_m=0.17)
    assert path is not None
    assert path[:, 1] == pytest.approx(0.75, abs=0.08)


def test_a_large_map_is_divided_no_finer_than_it_may_be(tmp_path):
    rows = "\n".join(["." * 1550] * 1550)
    (tmp_path / "large.map").write_text(f"type octile\nheight 1550\nwidth 1550\nmap\n{rows}\n")
    grid = load_map(tmp_path / "large.map")
    assert grid.occupied.shape == (1552, 1552)
    assert not grid.occupied[1:-1, 1:-1].any()


def test_a_scenario_gives_start_and_goal_in_metres(map_path, tmp_path):
    scenario = load_scenario(f"{scen(tmp_path, LINE, LINE.replace('6.24', '7.24'))}:2")
    assert (scenario.line, scenario.optimal_length) == (3, 7.24264069)
    start, goal = scenario.places(load_map(map_path), map_path, 0.5)
    assert (start, goal) == (pytest.approx((0.25, 1.25)), pytest.approx((2.25, 0.25)))
    assert load_scenario(str(tmp_path / "small.map.scen")).line == 2


def test_a_path_leads_through_the_gap_of_a_wall(tmp_path):
    rng = np.random.default_rng(0)
    cells = np.where(rng.random((20, 30)) < 0.1, "T", ".")
    cells[[10, 11]] = "T"
    cells[10:12, 25] = "."
    cells[2, 2] = cells[17, 3] = "."
    rows = "\n".join("".join(row) for row in cells)
    (tmp_path / "m.map").write_text(f"type octile\nheight 20\nwidth 30\nmap\n{rows}\n")
    grid = load_map(tmp_path / "m.map")
    path = grid.shortest_path((1.25, 8.75), (1.75, 1.25), radius_m=0.17)
    assert path is not None
    assert sum(np.hypot(*(b - a)) for a, b in pairwise(path)) > 22  # through the gap at the right


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("octile", "hex", "line 1: expected 'type octile', found 'type hex'"),
        ("type octile\n", "", "line 1: expected 'type ...', found 'height 3'"),
        ("height 3", "height three", "line 2: expected a number of cells, found 'three'"),
        ("height 3", "height -3", "line 2: expected a number of cells, found '-3'"),
        ("height 3", "height 999999999", "expected 2 x 2 to 16777216 cells, found 5 x 999999999"),
        ("height 3", "height 4", "line 7: expected 4 rows, found 3"),
        ("height 3", "height 2", "line 7: expected 2 rows, found 3"),
        ("width 5", "width 6", "line 5: expected 6 characters, found 5"),
        ("\nmap\n", "\nmaps\n", "line 4: expected 'map', found 'maps'"),
        ("SSO..", "SSO.x", "line 6, column 5: expected characters of '.GS@OTW', found b'x'"),
        (MAP, "", "line 1: expected 'type ...', found ''"),
    ],
)
def test_each_mistake_of_a_map_has_one_message(map_path, old, new, problem):
    map_path.write_text(MAP.replace(old, new))
    with pytest.raises(InvalidFile) as caught:
        load_map(map_path)
    assert str(caught.value).startswith(f"{map_path}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            LINE.replace("small", "other"),
            "line 2: it is a scenario of the map 'other.map', not of 'small.map'",
        ),
        (LINE.replace("\t5\t3\t", "\t5\t9\t"), "line 2: it is of a map of 5 x 9 cells, small.map has 5 x 3"),
        (LINE.replace("\t4\t2\t", "\t4\t0\t"), "line 2: its goal (4, 0) is an obstacle"),
        (
            LINE.replace("\t0\t0\t", "\t-1\t0\t"),
            "line 2: its start (-1, 0) is outside of the map, 5 x 3 cells",
        ),
        (LINE.replace("6.24264069", "nan"), "line 2: expected bucket, map, width"),
        ("0\tsmall.map\t5", "line 2: expected bucket, map, width"),
    ],
)
def test_each_mistake_of_a_scenario_has_one_message(map_path, tmp_path, line, problem):
    file = scen(tmp_path, line)
    with pytest.raises(InvalidFile) as caught:
        load_scenario(str(file)).places(load_map(map_path), map_path, 0.5)
    assert str(caught.value).startswith(f"{file}: {problem}")


def test_a_scenario_that_is_not_there_and_another_version_are_refused(tmp_path):
    file = scen(tmp_path, LINE)
    with pytest.raises(UserError, match="has the scenarios 1 to 1, found 2"):
        load_scenario(f"{file}:2")
    file.write_text("version 2\n")
    with pytest.raises(InvalidFile, match="line 1: expected 'version 1', found 'version 2'"):
        load_scenario(str(file))
