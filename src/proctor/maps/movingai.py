"""Maps and scenarios of the MovingAI benchmarks: `.map` files of type octile, `.scen` files of version 1.

Their cells have no size, and y counts down from the upper left corner; a map here is in metres with y up, and
closed all around.
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import numpy as np

from proctor.core.documents import read_bytes
from proctor.core.errors import InvalidFile, UserError
from proctor.maps.grid_map import LARGEST_CELLS, GridMap, Point
from proctor.maps.point_cloud import MOST_CELLS

CELL_M = 0.5
"""A corridor of one cell is then wide enough for the robot."""
FINEST_M = 0.1
"""Cells are divided down to this, so that what a scanner sees of a wall does not fill the cell before it."""
CELL_RANGE_M = (0.05, 10.0)
PASSABLE = b".GS"  # terrain, and swamp, which is passable from terrain
BLOCKED = b"@OTW"  # out of bounds, trees, and water, which is not passable from terrain
SCENARIO_FIELDS = 9


class Scenario(NamedTuple):
    """A problem of a `.scen` file, in cells of its map."""

    file: Path
    line: int
    map_name: str
    width: int
    height: int
    start: tuple[int, int]
    goal: tuple[int, int]
    optimal_length: float

    def places(self, grid: GridMap, map_path: Path, cell_m: float) -> tuple[Point, Point]:
        """Return start and goal in metres; InvalidFile if they do not belong to this map."""
        if self.map_name != map_path.name:
            raise self._error(f"it is a scenario of the map '{self.map_name}', not of '{map_path.name}'")
        rows, columns = np.array(grid.occupied.shape) * grid.resolution_m / cell_m - 2  # without the border
        if (round(columns), round(rows)) != (self.width, self.height):
            size = f"{round(columns)} x {round(rows)}"
            raise self._error(
                f"it is of a map of {self.width} x {self.height} cells, {map_path.name} has {size}"
            )
        return self._place("start", self.start, grid, cell_m), self._place("goal", self.goal, grid, cell_m)

    def _place(self, what: str, cell: tuple[int, int], grid: GridMap, cell_m: float) -> Point:
        x, y = (cell[0] + 0.5) * cell_m, (self.height - cell[1] - 0.5) * cell_m
        is_inside = 0 <= cell[0] < self.width and 0 <= cell[1] < self.height
        if not is_inside or grid.clearance_at(x, y) <= 0:
            problem = (
                "an obstacle" if is_inside else f"outside of the map, {self.width} x {self.height} cells"
            )
            raise self._error(f"its {what} ({cell[0]}, {cell[1]}) is {problem}")
        return x, y

    def _error(self, problem: str) -> InvalidFile:
        return InvalidFile(self.file, problem, place=f"line {self.line}")


def load_movingai_map(path: Path, cell_m: float = CELL_M) -> GridMap:
    """Read a `.map` file of type octile, with cells of this side; InvalidFile if it is not one."""
    if not CELL_RANGE_M[0] <= cell_m <= CELL_RANGE_M[1]:
        low, high = CELL_RANGE_M
        raise UserError(f"--cell: expected {low} to {high} metres, found {cell_m}")
    lines = read_bytes(path).splitlines()
    if _field(lines, 1, "type", path) != "octile":
        raise InvalidFile(path, f"expected 'type octile', found {_shown(lines, 1)}", place="line 1")
    height, width = (_count(lines, number, key, path) for number, key in ((2, "height"), (3, "width")))
    if min(width, height) < 2 or width * height > MOST_CELLS:
        raise InvalidFile(path, f"expected 2 x 2 to {MOST_CELLS} cells, found {width} x {height}")
    if lines[3:4] != [b"map"]:
        raise InvalidFile(path, f"expected 'map', found {_shown(lines, 4)}", place="line 4")
    rows = lines[4 : 4 + height]
    for number, row in enumerate(rows, 5):
        if len(row) != width:
            raise InvalidFile(path, f"expected {width} characters, found {len(row)}", place=f"line {number}")
        strange = row.translate(None, PASSABLE + BLOCKED)
        if strange:
            problem = f"expected characters of '{(PASSABLE + BLOCKED).decode()}', found {strange[:1]!r}"
            raise InvalidFile(path, problem, place=f"line {number}, column {row.index(strange[:1]) + 1}")
    more = [number for number, line in enumerate(lines[4 + height :], height + 1) if line.strip()]
    if len(rows) < height or more:
        found = more[-1] if more else len(rows)
        raise InvalidFile(path, f"expected {height} rows, found {found}", place=f"line {4 + found}")
    cells = np.frombuffer(b"".join(rows), np.uint8).reshape(height, width)
    occupied = np.pad(np.isin(cells, list(BLOCKED))[::-1], 1, constant_values=True)
    finer = min(math.ceil(cell_m / FINEST_M), max(1, math.isqrt(LARGEST_CELLS // occupied.size)))
    fine = occupied.repeat(finer, axis=0).repeat(finer, axis=1)
    return GridMap(fine, resolution_m=cell_m / finer, origin_world=(-cell_m, -cell_m), ends=True)


def load_scenario(text: str) -> Scenario:
    """Read one problem of `FILE.scen` or `FILE.scen:N`, where N counts from 1."""
    name, colon, number = text.rpartition(":")
    path, wanted = (Path(name), int(number)) if colon and number.isdecimal() else (Path(text), 1)
    lines = read_bytes(path).splitlines()
    if _field(lines, 1, "version", path) not in ("1", "1.0"):
        raise InvalidFile(path, f"expected 'version 1', found {_shown(lines, 1)}", place="line 1")
    numbers = [index for index, line in enumerate(lines[1:], 2) if line.strip()]
    if not 1 <= wanted <= len(numbers):
        raise UserError(f"--scenario: {path} has the scenarios 1 to {len(numbers)}, found {wanted}")
    line = numbers[wanted - 1]
    fields = lines[line - 1].decode("utf-8", "replace").split("\t")
    if len(fields) != SCENARIO_FIELDS:
        fields = lines[line - 1].decode("utf-8", "replace").split()
    try:
        width, height, *places = map(int, fields[2:8])
        optimal = float(fields[8])
        if len(fields) != SCENARIO_FIELDS or not 0 <= optimal < math.inf:
            raise ValueError
    except (ValueError, IndexError):
        expected = "bucket, map, width, height, start x and y, goal x and y, optimal length"
        raise InvalidFile(
            path, f"expected {expected}, found {_shown(lines, line)}", place=f"line {line}"
        ) from None
    map_name = PurePosixPath(PureWindowsPath(fields[1]).as_posix()).name
    start_x, start_y, goal_x, goal_y = places
    return Scenario(path, line, map_name, width, height, (start_x, start_y), (goal_x, goal_y), optimal)


def _shown(lines: list[bytes], number: int) -> str:
    line = lines[number - 1] if number <= len(lines) else b""
    return f"'{line[:60].decode('utf-8', 'replace')}'"


def _field(lines: list[bytes], number: int, key: str, path: Path) -> str:
    words = lines[number - 1].decode("utf-8", "replace").split() if number <= len(lines) else []
    if len(words) != 2 or words[0] != key:
        raise InvalidFile(
            path, f"expected '{key} ...', found {_shown(lines, number)}", place=f"line {number}"
        )
    return words[1]


def _count(lines: list[bytes], number: int, key: str, path: Path) -> int:
    text = _field(lines, number, key, path)
    if not text.isdecimal() or len(text) > 9:
        raise InvalidFile(path, f"expected a number of cells, found '{text[:20]}'", place=f"line {number}")
    return int(text)
