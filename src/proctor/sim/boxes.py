"""Blocked cells of a floor as few boxes: MuJoCo collides a mesh only as its convex hull, boxes as they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import ndimage

from proctor.scenes.surface_grid import CELL_M, FloorGrid, Mask

SKIN_CELLS = 2
"""Cells further than this from where a robot can be need no box."""


class Box(NamedTuple):
    """A rectangle on the floor."""

    low_world: tuple[float, float]
    high_world: tuple[float, float]


def boxes_around(grid: FloorGrid, cells: Mask) -> list[Box]:
    """Return boxes that cover these blocked cells of a grid as far as a robot can come near them.

    They overlap, and reach into other blocked cells where that makes them larger, but never into free ones.
    """
    blocked = grid.blocked
    near_free = ndimage.binary_dilation(~blocked, np.ones((3, 3)), iterations=SKIN_CELLS)
    wanted = cells & near_free
    boxes = []
    origin_x, origin_y = grid.origin_world
    rows, columns = np.nonzero(wanted)
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if wanted[row, column]:
            top, bottom, left, right = max(
                _grow(blocked, row, column), _grow(blocked.T, column, row, turned=True), key=_size
            )
            wanted[top:bottom, left:right] = False
            low = (origin_x + left * CELL_M, origin_y + top * CELL_M)
            high = (origin_x + right * CELL_M, origin_y + bottom * CELL_M)
            boxes.append(Box(low, high))
    return boxes


def _size(rectangle: tuple[int, int, int, int]) -> int:
    top, bottom, left, right = rectangle
    return (bottom - top) * (right - left)


def _grow(blocked: Mask, row: int, column: int, *, turned: bool = False) -> tuple[int, int, int, int]:
    """Return the blocked rectangle around a cell that is first as wide, then as high as possible."""
    left, right = _run(blocked[row], column)
    lines = blocked[:, left:right].all(axis=1)
    top, bottom = _run(lines, row)
    return (left, right, top, bottom) if turned else (top, bottom, left, right)


def _run(line: np.ndarray, at: int) -> tuple[int, int]:
    """Return the range of the set cells around one of them."""
    before, after = line[at::-1].argmin(), line[at:].argmin()
    first = at - int(before) + 1 if not line[at - int(before)] else 0
    last = at + int(after) if not line[at + int(after)] else len(line)
    return first, last
