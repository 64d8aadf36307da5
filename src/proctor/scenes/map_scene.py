"""A map as a scene: walls where its cells are occupied, so that a robot can be driven on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, label

from proctor.core.errors import UserError
from proctor.core.types import Vector3
from proctor.maps.grid_map import GridMap, Point
from proctor.scenes.scene_config import Part, SceneConfig, SceneObject

WALL_HEIGHT_M = 2.0
MAX_BOXES = 20_000  # a mapped 30 m x 50 m warehouse has 2,700; the world is then built in two seconds


def scene_of_map(grid: GridMap, name: str, start: Point) -> SceneConfig:
    """Return a scene with boxes in place of the occupied cells around the floor that a start lies on.

    Cells that no robot at the start could ever touch or see are left out. Raises UserError if the map is
    so noisy that the scene would be too large.
    """
    boxes = _boxes(grid.occupied, _around_floor(grid, start))
    if len(boxes) > MAX_BOXES:
        raise UserError(
            f"{name}: too noisy to drive on: {len(boxes)} boxes of walls, expected at most {MAX_BOXES}"
        )
    cell_m = grid.resolution_m
    parts = [
        Part(
            shape="box",
            size=Vector3((right - left) * cell_m, (top - bottom) * cell_m, WALL_HEIGHT_M),
            translate=Vector3((left + right) / 2 * cell_m, (bottom + top) / 2 * cell_m, WALL_HEIGHT_M / 2),
        )
        for left, bottom, right, top in boxes.tolist()
    ]
    if not parts:
        return SceneConfig(scene_name=name, objects=[])
    x, y = grid.origin_world
    walls = SceneObject(name="the map's walls", translate=Vector3(x, y, 0.0), parts=parts)
    return SceneConfig(scene_name=name, objects=[walls])


def _around_floor(grid: GridMap, start: Point) -> NDArray[np.bool_]:
    """Return the occupied cells beside the floor that a place lies on, or beside any if it lies on none."""
    parts, _ = label(~grid.occupied, structure=np.ones((3, 3)))
    column, row = ((np.array(start) - grid.origin_world) // grid.resolution_m).astype(int)
    inside = 0 <= row < parts.shape[0] and 0 <= column < parts.shape[1]
    part = parts[row, column] if inside else 0
    floor = parts == part if part else ~grid.occupied
    return np.asarray(grid.occupied & binary_dilation(floor, np.ones((3, 3))))


def _boxes(occupied: NDArray[np.bool_], needed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Cover the needed ones of the occupied cells by boxes: (N, 4) left, bottom, right and top, in cells.

    Runs of occupied cells in successive rows that are equally long and in the same columns make one box.
    """
    edges = np.diff(np.pad(occupied, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, lefts = np.nonzero(edges > 0)
    rights = np.nonzero(edges < 0)[1]
    counts = np.pad(np.cumsum(needed, axis=1), ((0, 0), (1, 0)))
    is_needed = counts[rows, rights] > counts[rows, lefts]
    rows, lefts, rights = rows[is_needed], lefts[is_needed], rights[is_needed]
    order = np.lexsort((rows, rights, lefts))
    rows, lefts, rights = rows[order], lefts[order], rights[order]
    goes_on = (np.diff(rows) == 1) & (np.diff(lefts) == 0) & (np.diff(rights) == 0)
    firsts = np.flatnonzero(np.concatenate([[True], ~goes_on])) if len(rows) else np.empty(0, np.int64)
    lasts = np.append(firsts[1:], len(rows)) - 1 if len(rows) else firsts
    return np.stack([lefts[firsts], rows[firsts], rights[firsts], rows[lasts] + 1], axis=1)
