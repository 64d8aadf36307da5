"""A storey of a house as cells: where its triangles block a robot, and where there is floor.

Triangles are cut to a range of heights and drawn exactly: a cell is marked if and only if what is left of a
triangle reaches into it. So the thinnest wall is closed, and a door keeps its exact width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from proctor.core.types import Array

Mask = NDArray[np.bool_]
CELL_M = 0.025
MAP_CELLS = 2
"""Cells of a map on a cell of a map's side: grids begin on whole map cells."""
MARGIN_M = 0.5
LARGEST_CELLS = 16_000_000
FLOOR_TOLERANCE_M = 0.1
"""Scanned floors are that uneven over a house. What is level and within this of a floor is floor."""
GAP_M = 0.15
"""Gaps of the floor up to twice this wide, such as under doors and in scans, are driven over."""
SMALLEST_AREA_M2 = 2.0
"""Free places that are cut off and smaller than this are the insides of furniture."""
NUDGE_M = 1e-4
TOUCH = 1e-3  # of a cell: less overlap than this is a shared border
BATCH = 2_000_000


class FloorGrid(NamedTuple):
    """Which cells are in the way, rows along y, columns along x."""

    obstacle: Mask
    void: Mask
    """There is no floor."""
    origin_world: tuple[float, float]
    """The lower left corner of cell [0, 0]."""

    @property
    def blocked(self) -> Mask:
        """Cells where a robot cannot be."""
        return self.obstacle | self.void

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and the column of a point, None if it is beyond the grid."""
        column = int((x - self.origin_world[0]) // CELL_M)
        row = int((y - self.origin_world[1]) // CELL_M)
        rows, columns = self.void.shape
        return (row, column) if 0 <= row < rows and 0 <= column < columns else None


def draw_floor(triangles: Array, floor_z: float, height_band_m: tuple[float, float]) -> FloorGrid | None:
    """Draw the storey at this height from triangles (N, 3, 3) in the world; None if it has no floor.

    What reaches into the height band above the floor is an obstacle. Raises a ValueError if the floor is
    larger than a map may be.
    """
    near, normals, level = _near_floor(triangles, floor_z, height_band_m)
    floor = cut(near[level], 2, floor_z - FLOOR_TOLERANCE_M, floor_z + FLOOR_TOLERANCE_M)
    if not len(floor):
        return None
    corners = floor[..., :2].reshape(-1, 2)
    map_cell_m = CELL_M * MAP_CELLS
    first = np.floor((corners.min(axis=0) - MARGIN_M) / map_cell_m).astype(int) * MAP_CELLS
    last = np.ceil((corners.max(axis=0) + MARGIN_M) / map_cell_m).astype(int) * MAP_CELLS
    columns, rows = (int(cells) for cells in last - first)
    if columns * rows > LARGEST_CELLS:
        width_m, depth_m = np.ptp(corners, axis=0)
        raise ValueError(f"its floor reaches over {width_m:.0f} m x {depth_m:.0f} m, too much for a map")
    origin = first * CELL_M
    steep, flat = _in_the_way(near, normals, level, floor_z, height_band_m)
    drawn = [
        draw_triangles((part[..., :2] - origin) / CELL_M, rows, columns) for part in (floor, steep, flat)
    ]
    has_floor = _close(drawn[0])
    obstacle = drawn[1] | drawn[2]
    obstacle |= _cut_off(has_floor & ~obstacle)
    return FloorGrid(obstacle, ~has_floor, (float(origin[0]), float(origin[1])))


def draw_owners(
    meshes: Sequence[Array], grid: FloorGrid, floor_z: float, height_band_m: tuple[float, float]
) -> NDArray[np.int32]:
    """Return to which of several meshes (N, 3, 3) each obstacle cell of their common `draw_floor` belongs.

    What no mesh reaches into, such as the inside of a cupboard, belongs to the nearest one.
    """
    rows, columns = grid.obstacle.shape
    owners = np.full((rows, columns), -1, dtype=np.int32)
    for index, triangles in enumerate(meshes):
        near, normals, level = _near_floor(triangles, floor_z, height_band_m)
        for part in _in_the_way(near, normals, level, floor_z, height_band_m):
            cells = draw_triangles((part[..., :2] - grid.origin_world) / CELL_M, rows, columns)
            owners[cells & (owners < 0)] = index
    if (owners < 0).all():
        return np.zeros_like(owners)
    nearest = ndimage.distance_transform_edt(owners < 0, return_distances=False, return_indices=True)
    return np.asarray(owners[tuple(nearest)])


def _near_floor(
    triangles: Array, floor_z: float, height_band_m: tuple[float, float]
) -> tuple[Array, Array, Mask]:
    """Return the triangles that matter on a floor, their normals, and which of them are level."""
    heights = triangles[..., 2]
    bottom, top = heights.min(axis=1), heights.max(axis=1)
    near = triangles[(top > floor_z - FLOOR_TOLERANCE_M) & (bottom < floor_z + height_band_m[1])]
    across = np.cross(near[:, 1] - near[:, 0], near[:, 2] - near[:, 0])
    normals = across / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-30)
    # Steeper than this (the cosine of the slope) is not a floor.
    return near, normals, np.abs(normals[:, 2]) > 0.7


def _in_the_way(
    near: Array, normals: Array, level: Mask, floor_z: float, height_band_m: tuple[float, float]
) -> tuple[Array, Array]:
    """Return what is in a robot's way of the steep and of the level triangles near a floor."""
    low_m, high_m = floor_z + height_band_m[0], floor_z + height_band_m[1]
    # Behind their faces things are solid: a wall that ends on a cell's border must not fill the next cell.
    solid = near - NUDGE_M * normals[:, None]
    flat = cut(solid[level], 2, max(low_m, floor_z + FLOOR_TOLERANCE_M), high_m)
    return cut(solid[~level], 2, low_m, high_m), flat


def _close(floor: Mask) -> Mask:
    """Bridge narrow gaps."""
    reach = GAP_M / CELL_M
    grown = ndimage.distance_transform_edt(~floor) <= reach
    return np.asarray(ndimage.distance_transform_edt(grown) > reach) | floor


def _cut_off(free: Mask) -> Mask:
    """Return the free places that are too small to be a room."""
    parts, count = ndimage.label(free)
    small = np.bincount(parts.ravel(), minlength=count + 1) * CELL_M**2 < SMALLEST_AREA_M2
    small[0] = False
    return np.asarray(small[parts])


def cut(triangles: Array, axis: int, low: float, high: float) -> Array:
    """Return what of triangles (N, 3, 3) lies between two places on an axis, as triangles."""
    return _beyond(_beyond(triangles, axis, low, 1.0), axis, high, -1.0)


def _beyond(triangles: Array, axis: int, place: float, sign: float) -> Array:
    """Return what of the triangles lies beyond a place on an axis, or before it for the sign -1."""
    over = sign * (triangles[..., axis] - place)
    corners_in = (over > 0).sum(axis=1)
    parts = [triangles[corners_in == 3]]
    for count in (1, 2):
        some = corners_in == count
        alone = ((over[some] > 0) == (count == 1)).argmax(axis=1)  # the corner on a side of its own
        order = (alone[:, None] + np.arange(3)) % 3
        a, b, c = np.take_along_axis(triangles[some], order[..., None], axis=1).transpose(1, 0, 2)
        over_a, over_b, over_c = np.take_along_axis(over[some], order, axis=1).T
        ab = a + (b - a) * (over_a / (over_a - over_b))[:, None]
        ac = a + (c - a) * (over_a / (over_a - over_c))[:, None]
        pieces = [(a, ab, ac)] if count == 1 else [(ab, b, c), (ab, c, ac)]
        parts += [np.stack(piece, axis=1) for piece in pieces]
    return np.concatenate(parts)


def draw_triangles(triangles: Array, rows: int, columns: int) -> Mask:
    """Mark the cells that flat triangles (N, 3, 2), in units of cells, reach into.

    In each column of cells a triangle covers one run of rows. Runs are summed up by their begins and ends.
    """
    # A triangle that is drawn as a line on a border belongs to the cell after it.
    first = np.floor(triangles[..., 0].min(axis=1) + TOUCH).astype(int)
    last = np.maximum(np.ceil(triangles[..., 0].max(axis=1) - TOUCH).astype(int) - 1, first)
    inside = (last >= 0) & (first < columns)
    triangles, first, last = triangles[inside], first[inside].clip(0), last[inside].clip(max=columns - 1)
    ends = np.cumsum(last - first + 1)
    steps = np.zeros(columns * (rows + 1), dtype=np.int64)
    for begin in range(0, int(ends[-1]) if len(ends) else 0, BATCH):
        runs = np.arange(begin, min(begin + BATCH, int(ends[-1])))
        index = np.searchsorted(ends, runs, side="right")
        column = last[index] - (ends[index] - 1 - runs)
        low, high = _run(triangles[index], column)
        start = np.floor(low + TOUCH).astype(int)
        stop = np.maximum(np.ceil(high - TOUCH).astype(int), start + 1)
        at = column * (rows + 1)
        steps += np.bincount(at + start.clip(0, rows), minlength=len(steps))
        steps -= np.bincount(at + stop.clip(0, rows), minlength=len(steps))
    covered = steps.reshape(columns, rows + 1).cumsum(axis=1)[:, :rows] > 0
    return np.ascontiguousarray(covered.T)


def _run(triangles: Array, column: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return from which y to which y each triangle reaches in a column of cells."""
    low, high = np.full(len(column), np.inf), np.full(len(column), -np.inf)
    left, right = column - TOUCH, column + 1 + TOUCH
    for corner in range(3):
        (x0, y0), (x1, y1) = triangles[:, corner].T, triangles[:, corner - 2].T
        along = x0 == x1
        ends = np.stack([left - x0, right - x0]) / np.where(along, 1.0, x1 - x0)
        enter, leave = ends.min(axis=0), ends.max(axis=0)
        touches = np.where(along, (x0 >= left) & (x0 <= right), (enter <= 1) & (leave >= 0))
        for share in (np.where(along, 0.0, enter.clip(0, 1)), np.where(along, 1.0, leave.clip(0, 1))):
            y = y0 + share * (y1 - y0)
            low = np.where(touches, np.minimum(low, y), low)
            high = np.where(touches, np.maximum(high, y), high)
    return low, high


def touching_border(cells: Mask) -> Mask:
    """Return those cells that are connected to the map's border."""
    parts, _ = ndimage.label(cells)
    border = np.concatenate([parts[0], parts[-1], parts[:, 0], parts[:, -1]])
    return np.isin(parts, border[border > 0])
