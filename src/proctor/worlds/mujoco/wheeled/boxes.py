"""Blocked cells of a floor as few boxes, since MuJoCo collides meshes only as their convex hulls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from proctor.scenes.surface_grid import CELL_M, FloorGrid, Mask


class Box(NamedTuple):
    """A rectangle on the floor."""

    low_world: tuple[float, float]
    high_world: tuple[float, float]
    is_void: bool
    """It stands where there is no floor, and not for a thing."""
    owner: int = 0
    """The mesh that it stands for, of several."""


def boxes_of_floor(grid: FloorGrid | None, owners: NDArray[np.int32] | None = None) -> list[Box]:
    """Return boxes that cover the blocked cells of a floor as far as a robot can come near them.

    They overlap, and reach into other blocked cells where that makes them larger, but never into free ones,
    nor into those of another mesh, if `owners` says to which mesh each obstacle cell belongs.
    """
    if grid is None:
        return []
    blocked = grid.blocked
    # Cells further than this from where a robot can be need no box.
    near_free = ndimage.binary_dilation(~blocked, np.ones((3, 3)), iterations=2)
    origin_x, origin_y = grid.origin_world
    boxes = []
    for is_void, owner, cells in _kinds_of_cells(grid, owners):
        wanted = cells & near_free
        reach = blocked
        if owners is not None and not is_void:
            reach = blocked & (~grid.obstacle | (owners == owner))
        for row, column in np.argwhere(wanted).tolist():
            if wanted[row, column]:
                wide, high = _grow(reach, row, column), _grow(reach.T, column, row)
                bottom, top, left, right = max(wide, (*high[2:], *high[:2]), key=_size)
                wanted[bottom:top, left:right] = False
                low_world = (origin_x + left * CELL_M, origin_y + bottom * CELL_M)
                high_world = (origin_x + right * CELL_M, origin_y + top * CELL_M)
                boxes.append(Box(low_world, high_world, is_void, owner))
    return boxes


def _kinds_of_cells(grid: FloorGrid, owners: NDArray[np.int32] | None) -> Iterator[tuple[bool, int, Mask]]:
    """Yield the cells that boxes are made of: whether there is no floor, of which mesh, and where."""
    if owners is None:
        yield False, 0, grid.obstacle
    else:
        for owner in np.unique(owners[grid.obstacle]).tolist():
            yield False, owner, grid.obstacle & (owners == owner)
    yield True, 0, grid.void & ~grid.obstacle


def _size(rectangle: tuple[int, int, int, int]) -> int:
    bottom, top, left, right = rectangle
    return (top - bottom) * (right - left)


def _grow(blocked: Mask, row: int, column: int) -> tuple[int, int, int, int]:
    """Return the blocked rectangle around a cell that is first as wide, then as high as possible."""
    left, right = _run(blocked[row, :], column)
    bottom, top = _run(np.asarray(blocked[:, left:right].all(axis=1)), row)
    return bottom, top, left, right


def _run(line: Mask, at: int) -> tuple[int, int]:
    """Return the range of set cells around one of them."""
    free = np.flatnonzero(~line)
    after = int(np.searchsorted(free, at))
    first = int(free[after - 1]) + 1 if after else 0
    return first, int(free[after]) if after < len(free) else len(line)
