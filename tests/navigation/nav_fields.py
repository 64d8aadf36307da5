"""Small maps to plan on."""

import time

import numpy as np

from proctor.kernels.clearance import ClearanceField
from proctor.maps.free_space import CellQuery
from proctor.maps.grid_map import GridMap


def field_of(occupied, resolution_m=0.05) -> ClearanceField:
    return GridMap(occupied, resolution_m=resolution_m).field


def walled(rows=120, columns=160):
    occupied = np.zeros((rows, columns), dtype=bool)
    occupied[[0, -1]] = occupied[:, [0, -1]] = True
    return occupied


def rooms() -> ClearanceField:
    """8 m x 6 m: three rooms side by side, doors of 0.8 m at opposite ends, walls of one cell."""
    occupied = walled()
    occupied[20:, 53] = True
    occupied[:100, 106] = True
    return field_of(occupied)


def comb(teeth=12) -> ClearanceField:
    """A long way around teeth, on which a tree that grows at random needs long."""
    occupied = walled(240, 20 * teeth)
    for tooth in range(1, teeth):
        rows = slice(0, -14) if tooth % 2 else slice(14, None)
        occupied[rows, 20 * tooth] = True
    return field_of(occupied)


def cell_query(free, start, goal, *, timeout_s=60.0, cancelled=None) -> CellQuery:
    ends = np.array(start, float), np.array(goal, float)
    return CellQuery(free, *ends, time.monotonic() + timeout_s, 0, cancelled)
