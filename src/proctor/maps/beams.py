"""What the beams of a laser scanner say about the cells of a map: where they end, and what they pass."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array, Pose2, Scan
from proctor.maps.clearance import Window
from proctor.maps.clearance_field import ClearanceField
from proctor.maps.compiled import compiled

NEVER_S = -math.inf  # when a cell was seen that was not
THROUGH = 0.35  # cells; a beam further from a cell's centre may miss what is in the cell
NUDGE_M = 1e-3  # what a beam hits on the line between two cells is in the one behind


class Beams(NamedTuple):
    """A scan in the world. Compiled functions take it as it is."""

    ranges: Array  # how far each beam saw; 0 if it says nothing
    hits: NDArray[np.bool_]  # whether something was there
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
    beams: Beams, field: ClearanceField, seen_s: Array, unseen: NDArray[np.bool_], window: Window
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
