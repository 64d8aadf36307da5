"""What scans, point clouds and depth images say about the cells of a map."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array, Pose2, Scan
from proctor.kernels.clearance import ClearanceField, Mask, Window
from proctor.kernels.compiled import compiled

Indices: TypeAlias = NDArray[np.int64]
NEVER_S = -math.inf  # when a cell was seen that was not
THROUGH = 0.35  # cells; a beam further from a cell's centre may miss what is in the cell
NUDGE_M = 1e-3  # what a beam hits on the line between two cells is in the one behind
SAME_CELLS = 1.01  # what is seen within so many cells of an obstacle of the map is that obstacle


class Beams(NamedTuple):
    """A scan in the world. Compiled functions take it as it is."""

    ranges: Array  # how far each beam saw; 0 if it says nothing
    hits: Mask  # whether something was there
    x: float
    y: float
    first_yaw: float
    step: float  # angle from one beam to the next
    directions: Array  # (N, 2) unit vectors

    @classmethod
    def of(cls, scan: Scan, pose: Pose2) -> Beams:
        """Sort a scan into hits, free beams and invalid ones; ValueError if scan or pose is not valid."""
        ranges = np.array(scan.ranges, dtype=float)
        x, y, first_yaw, step = map(float, (pose.x, pose.y, pose.yaw + scan.angle_min, scan.angle_increment))
        if ranges.ndim != 1 or not math.isfinite(x + y + first_yaw + step) or abs(step) < 1e-6:
            raise ValueError(
                f"expected (N,) ranges and beams at finite angles from a finite pose, found {ranges.shape} "
                f"ranges from {pose}, first at {scan.angle_min}, then every {scan.angle_increment}"
            )
        if not 0 <= scan.range_min < scan.range_max:
            raise ValueError(f"expected 0 <= range_min < range_max, found {scan.range_min}, {scan.range_max}")
        hits = (ranges >= scan.range_min) & (ranges <= scan.range_max) & (ranges > 0) & (ranges < math.inf)
        nothing = ranges > scan.range_max if math.isfinite(scan.range_max) else np.zeros_like(hits)
        ranges[~hits] = 0.0
        ranges[nothing] = scan.range_max
        yaws = first_yaw + step * np.arange(len(ranges))
        directions = np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
        return cls(ranges, hits, x, y, first_yaw, step, directions)


@compiled
def forget_looked_through(
    beams: Beams, field: ClearanceField, seen_s: Array, unseen: Mask, window: Window
) -> None:
    """Clear the cells of a window that beams have passed, be they seen before or unknown.

    Each such cell asks the one beam that passes closest to its centre. Beams that hit something say
    nothing about the last cell before it, so that what is seen now here, now there does not flicker.
    """
    first_row, end_row, first_column, end_column = window
    count, cell_m = beams.ranges.shape[0], field.resolution_m
    if not count:
        return
    for row in range(first_row, end_row):
        for column in range(first_column, end_column):
            if seen_s[row, column] == NEVER_S and not unseen[row, column]:
                continue
            x = field.origin_x + (column + 0.5) * cell_m - beams.x
            y = field.origin_y + (row + 0.5) * cell_m - beams.y
            turn = (math.atan2(y, x) - beams.first_yaw) * math.copysign(1.0, beams.step)
            beam = round((turn % math.tau) / abs(beams.step))
            if beam >= count:
                beam = 0  # the next one in a full turn; else it points elsewhere
            ahead_x, ahead_y = beams.directions[beam, 0], beams.directions[beam, 1]
            along, aside = x * ahead_x + y * ahead_y, abs(y * ahead_x - x * ahead_y)
            seen_m = beams.ranges[beam] - (cell_m if beams.hits[beam] else 0.0)
            if 0.0 <= along <= seen_m and aside <= THROUGH * cell_m:
                seen_s[row, column] = NEVER_S
                unseen[row, column] = False


@compiled
def ends_of(beams: Beams, field: ClearanceField) -> NDArray[np.int64]:
    """Return the numbers, row by row, of the cells on the map in which a beam hit something."""
    rows, columns = field.cells.shape
    cells = np.empty(beams.ranges.shape[0], np.int64)
    count = 0
    for beam in range(beams.ranges.shape[0]):
        if not beams.hits[beam]:
            continue
        range_m = beams.ranges[beam] + NUDGE_M
        x, y = beams.x + range_m * beams.directions[beam, 0], beams.y + range_m * beams.directions[beam, 1]
        column = math.floor((x - field.origin_x) / field.resolution_m)
        row = math.floor((y - field.origin_y) / field.resolution_m)
        if 0 <= row < rows and 0 <= column < columns:
            cells[count] = row * columns + column
            count += 1
    return cells[:count]


@compiled
def stamp(cells: Indices, field: ClearanceField, seen_s: Array, unseen: Mask, time_s: float) -> Window:
    """Note that something was seen in some cells, unless it is on the map; return where."""
    rows, columns = field.cells.shape
    first_row, end_row, first_column, end_column = rows, 0, columns, 0
    for index in range(cells.shape[0]):
        row, column = cells[index] // columns, cells[index] % columns
        unseen[row, column] = False
        first_row, end_row = min(first_row, row), max(end_row, row + 1)
        first_column, end_column = min(first_column, column), max(end_column, column + 1)
        if field.cells[row, column] > SAME_CELLS * field.resolution_m:
            seen_s[row, column] = max(seen_s[row, column], time_s)
    return first_row, end_row, first_column, end_column


@compiled
def settle(
    added: Mask, seen_s: tuple[Array, Array], unseen: Mask, rule: tuple[float, bool], window: Window
) -> tuple[Window, Window]:
    """Update a window of the occupied cells (`added`) from what was seen.

    `seen_s` is when scans and when points showed something there; what is too old is forgotten. `rule` is
    the oldest time that counts, and whether unknown cells are occupied. Returns a window around the cells
    that changed, and one around those where something was seen.
    """
    scanned_s, pointed_s = seen_s
    oldest_s, unknown_is_occupied = rule
    rows, columns = added.shape
    change_low, change_high, change_left, change_right = rows, 0, columns, 0
    seen_low, seen_high, seen_left, seen_right = rows, 0, columns, 0
    for row in range(window[0], window[1]):
        for column in range(window[2], window[3]):
            if scanned_s[row, column] < oldest_s:
                scanned_s[row, column] = NEVER_S
            if pointed_s[row, column] < oldest_s:
                pointed_s[row, column] = NEVER_S
            seen = scanned_s[row, column] > NEVER_S or pointed_s[row, column] > NEVER_S
            if seen:
                seen_low, seen_high = min(seen_low, row), max(seen_high, row + 1)
                seen_left, seen_right = min(seen_left, column), max(seen_right, column + 1)
            there = seen or (unknown_is_occupied and unseen[row, column])
            if there != added[row, column]:
                added[row, column] = there
                change_low, change_high = min(change_low, row), max(change_high, row + 1)
                change_left, change_right = min(change_left, column), max(change_right, column + 1)
    changed = (change_low, change_high, change_left, change_right)
    return changed, (seen_low, seen_high, seen_left, seen_right)


class Slice(NamedTuple):
    """The heights in the world that matter."""

    floor_z: float  # from here on, points show floor
    low_z: float  # from here on, they are obstacles
    high_z: float  # up to here


@compiled
def extent_of(points: NDArray[Any], heights: Slice) -> tuple[int, int, float, float, float, float]:
    """Return how many points are finite, how many of these matter, and the box around the latter."""
    finite = counted = 0
    least_x = least_y = math.inf
    most_x = most_y = -math.inf
    for index in range(points.shape[0]):
        x, y, z = float(points[index, 0]), float(points[index, 1]), float(points[index, 2])
        if not math.isfinite(x + y + z):
            continue
        finite += 1
        if heights.floor_z <= z <= heights.high_z:
            counted += 1
            least_x, most_x = min(least_x, x), max(most_x, x)
            least_y, most_y = min(least_y, y), max(most_y, y)
    return finite, counted, least_x, least_y, most_x, most_y


@compiled
def count_points(
    points: NDArray[Any], heights: Slice, frame: tuple[float, float, float], shape: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Count for every cell the points that are obstacles and those that show floor; skip what is not finite.

    `frame` is the side of a cell and the lower left corner of cell [0, 0]; `shape` is rows and columns.
    """
    cell_m, origin_x, origin_y = frame
    rows, columns = shape
    obstacles, floor = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for index in range(points.shape[0]):
        z = points[index, 2]
        if not heights.floor_z <= z <= heights.high_z:
            continue
        column = (points[index, 0] - origin_x) / cell_m
        row = (points[index, 1] - origin_y) / cell_m
        if 0.0 <= column < columns and 0.0 <= row < rows:
            if z >= heights.low_z:
                obstacles[int(row), int(column)] += 1
            else:
                floor[int(row), int(column)] += 1
    return obstacles, floor


@compiled
def seen_cells(
    points: NDArray[Any],
    heights: Slice,
    frame: tuple[float, float, float],
    shape: tuple[int, int],
    min_points: int,
) -> tuple[Indices, Indices]:
    """Return the numbers, row by row, of the cells with an obstacle in them and of those with only floor."""
    obstacles, floor = count_points(points, heights, frame, shape)
    occupied, free = np.empty(obstacles.size, np.int64), np.empty(obstacles.size, np.int64)
    occupied_count = free_count = 0
    for row in range(shape[0]):
        for column in range(shape[1]):
            if obstacles[row, column] >= min_points:
                occupied[occupied_count] = row * shape[1] + column
                occupied_count += 1
            elif floor[row, column] > 0:
                free[free_count] = row * shape[1] + column
                free_count += 1
    return occupied[:occupied_count], free[:free_count]


@compiled
def back_projected(
    depth_mm: NDArray[np.uint16], lens: tuple[float, float, float, float], frame: Array, stride: int
) -> Array:
    """Return the (N, 3) points in the world that a depth image shows; `lens` is fx, fy, cx, cy."""
    rows, columns = depth_mm.shape
    fx, fy, cx, cy = lens
    points = np.empty((((rows - 1) // stride + 1) * ((columns - 1) // stride + 1), 3))
    count = 0
    for row in range(0, rows, stride):
        for column in range(0, columns, stride):
            ahead = 1e-3 * depth_mm[row, column]
            if ahead == 0.0:
                continue
            right, down = ahead * (column - cx) / fx, ahead * (row - cy) / fy
            for axis in range(3):
                turned = frame[axis, 0] * right + frame[axis, 1] * down + frame[axis, 2] * ahead
                points[count, axis] = turned + frame[axis, 3]
            count += 1
    return points[:count].copy()
