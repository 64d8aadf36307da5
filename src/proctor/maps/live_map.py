"""A map that is kept up to date while the robot drives: what sensors saw on top of what was known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proctor.core.errors import UserError
from proctor.core.types import Array, Pose2, Scan
from proctor.kernels.clearance import EMPTY_M, ClearanceField, Mask, Window, clearances, clearances_inside
from proctor.kernels.sensing import (
    NEVER_S,
    Beams,
    Indices,
    ends_of,
    forget_looked_through,
    seen_cells,
    settle,
    stamp,
)
from proctor.maps.grid_map import GridMap
from proctor.maps.point_cloud import (
    CloudThread,
    Unknown,
    checked_points,
    compiled_points,
    counts_as_occupied,
    slice_above,
)

NOWHERE: Window = (0, 0, 0, 0)


class LiveMap:
    """A map and what sensors saw on top of it. Obstacles of the map itself never disappear.

    What a scan shows disappears when beams look through it, or `decay_s` after it was last seen (never if
    None). What points show disappears only with time, because beams may pass below or above it. Time is a
    parameter, so that the same input gives the same map. All methods are for one thread.

    `unknown` is what cells of the map that nobody has seen yet count as. Only points in `height_band_m`
    above the floor are obstacles, and `min_points` of a cloud make a cell occupied.
    """

    def __init__(
        self,
        grid: GridMap,
        *,
        decay_s: float | None = 3.0,
        unknown: Unknown = "free",
        height_band_m: tuple[float, float] | None = None,
        floor_z: float = 0.0,
        min_points: int = 1,
    ) -> None:
        self._grid = grid
        self._decay_s = math.inf if decay_s is None else float(decay_s)
        if not self._decay_s > 0 or min_points < 1:
            raise UserError(f"expected a decay and points above 0, found {decay_s} s and {min_points}")
        self._unknown_is_occupied = counts_as_occupied(unknown)
        self._heights, self._min_points = slice_above(floor_z, height_band_m), int(min_points)
        self._static = _known_field(grid)
        widest_m = float(self._static.cells.max())
        self._reach = math.ceil(min(widest_m, EMPTY_M) / grid.resolution_m) + 1
        self._unseen: Mask = np.array(grid.unknown, dtype=bool)
        self._has_unseen = bool(self._unseen.any())
        shape = self._shape = self._unseen.shape
        self._scanned_s, self._pointed_s = np.full(shape, NEVER_S), np.full(shape, NEVER_S)
        self._added: Mask = np.zeros(shape, dtype=bool)  # occupied cells beyond those of the map
        self._active = NOWHERE  # where something was seen
        self._stale = NOWHERE  # where cells changed since the field was made
        self._now_s = NEVER_S
        self._field, self._version = self._static, 0
        self._clouds = CloudThread(self._cells_of)
        self._settle(NEVER_S, (0, shape[0], 0, shape[1]))

    @property
    def version(self) -> int:
        """Grows whenever a cell becomes occupied or free."""
        return self._version

    @property
    def has_seen(self) -> bool:
        """Whether anything is in the way that is not on the map."""
        return not _empty(self._active)

    @property
    def seen(self) -> Mask:
        """The cells that are occupied beyond those of the map, as they are now."""
        return self._added

    def field(self, time_s: float) -> ClearanceField:
        """Return the clearances at a time, in the same array if nothing changed. Time must not go back."""
        if not self._now_s <= time_s < math.inf:
            raise ValueError(
                f"expected a time not before {self._now_s} s, found {time_s}; clear() begins anew"
            )
        self._take(self._clouds.poll())
        self._settle(time_s, NOWHERE)
        if _empty(self._stale):
            return self._field
        if _empty(self._active) and not self._added.any():
            self._field = self._static
        else:
            self._field = self._static._replace(cells=self._fresh_cells())
        self._stale = NOWHERE
        return self._field

    def mark_scan(self, scan: Scan, pose: Pose2, time_s: float) -> None:
        """Mark what beams hit, forget what they look through; `pose` is the scanner's in the world.

        A beam of inf, or beyond `range_max`, saw nothing until there; NaN or below `range_min` says nothing.
        """
        beams = Beams.of(scan, pose)
        time_s = _finite(time_s)
        window = self._around(beams.x, beams.y, float(beams.ranges.max(initial=0.0)))
        if not self._has_unseen:
            window = _common(window, self._active)
        forget_looked_through(beams, self._static, self._scanned_s, self._unseen, window)
        hit = stamp(ends_of(beams, self._static), self._static, self._scanned_s, self._unseen, time_s)
        self._settle(time_s, _union(window, hit))

    def mark_points(self, points_world: ArrayLike, time_s: float) -> None:
        """Mark (N, 3) points, as of a depth image or a cloud. Points that are not finite are left out."""
        self._take((self._cells_of(checked_points(points_world)), _finite(time_s)))

    def mark_points_async(self, points_world: ArrayLike, time_s: float) -> None:
        """Mark a large cloud in another thread: a later `field` shows it, and raises if that failed.

        A cloud that waits for its turn is dropped for a newer one. Do not write to the array after this.
        """
        self._clouds.submit(checked_points(points_world), _finite(time_s))

    def finish_clouds(self) -> None:
        """Wait for the clouds that were handed over: for worlds that stand still meanwhile."""
        while (done := self._clouds.wait()) is not None:
            self._take(done)

    def clear(self, pose: Pose2 | None = None, radius_m: float | None = None) -> None:
        """Forget what sensors saw, all of it or around a pose. Without a pose, time may begin anew."""
        if (pose is None) != (radius_m is None):
            raise ValueError("expected both a pose and a radius, or neither")
        if pose is None or radius_m is None:
            self._clouds.discard()
            self._now_s = NEVER_S
            self._forget(self._active)
        else:
            around = self._around(_finite(pose.x), _finite(pose.y), _finite(radius_m))
            self._forget(_common(self._active, around), pose, radius_m)
        self._settle(self._now_s, NOWHERE)

    def snapshot(self) -> GridMap:
        """Return a map of its own with all that is known now."""
        grid = self._grid
        return GridMap(
            (grid.occupied & ~grid.unknown) | self._added,
            resolution_m=grid.resolution_m,
            origin_world=grid.origin_world,
            ends=grid.ends,
            outside=grid.outside,
            unknown=self._unseen.copy(),
        )

    def close(self) -> None:
        """End the thread that works on clouds. May be called twice."""
        self._clouds.close()

    def __enter__(self) -> LiveMap:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cells_of(self, points: NDArray[Any]) -> tuple[Indices, Indices]:
        field = self._static
        frame = (field.resolution_m, field.origin_x, field.origin_y)
        return seen_cells(compiled_points(points), self._heights, frame, self._shape, self._min_points)

    def _take(self, seen: tuple[tuple[Indices, Indices], float] | None) -> None:
        if seen is None:
            return
        (obstacles, floor), time_s = seen
        hit = stamp(obstacles, self._static, self._pointed_s, self._unseen, time_s)
        if self._has_unseen and len(floor):
            self._unseen.ravel()[floor] = False
            hit = (0, self._shape[0], 0, self._shape[1])
        self._settle(time_s, hit)

    def _settle(self, time_s: float, touched: Window) -> None:
        """Let time pass, and find out where cells became occupied or free."""
        self._now_s = max(self._now_s, time_s)
        changed, self._active = settle(
            self._added,
            (self._scanned_s, self._pointed_s),
            self._unseen,
            (self._now_s - self._decay_s, self._unknown_is_occupied),
            _union(self._active, touched),
        )
        if not _empty(changed):
            self._version += 1
            self._stale = _union(self._stale, changed)

    def _fresh_cells(self) -> Array:
        """Compute the clearances again where they may have changed.

        The clearance of two sets of obstacles is the lesser of both. No change, and nothing seen in
        its surroundings, reaches further than the widest clearance of the map.
        """
        inner = _grown(self._stale, self._reach, self._shape)
        outer = _grown(inner, self._reach, self._shape)
        part = clearances_inside(self._added, self._static.resolution_m, outer)
        here = np.s_[inner[0] : inner[1], inner[2] : inner[3]]
        there = np.s_[inner[0] - outer[0] : inner[1] - outer[0], inner[2] - outer[2] : inner[3] - outer[2]]
        cells = self._field.cells.copy()
        np.minimum(self._static.cells[here], part[there], out=cells[here])
        return cells

    def _forget(self, window: Window, pose: Pose2 | None = None, radius_m: float = 0.0) -> None:
        """Forget what was seen in a window, or in the part of it that is around a pose."""
        here = np.s_[window[0] : window[1], window[2] : window[3]]
        rows, columns = np.ogrid[here]
        inside = np.ones_like(self._added[here])
        if pose is not None:
            x = self._static.origin_x + (columns + 0.5) * self._static.resolution_m - pose.x
            y = self._static.origin_y + (rows + 0.5) * self._static.resolution_m - pose.y
            inside = x * x + y * y <= radius_m * radius_m
        for seen_s in (self._scanned_s, self._pointed_s):
            seen_s[here][inside] = NEVER_S

    def _around(self, x: float, y: float, radius_m: float) -> Window:
        """Return the cells of the map that a square around a place reaches."""
        centre = np.array([y - self._static.origin_y, x - self._static.origin_x])
        first = np.clip((centre - radius_m) / self._static.resolution_m, 0, self._shape).astype(int)
        end = np.clip((centre + radius_m) / self._static.resolution_m + 1, 0, self._shape).astype(int)
        return int(first[0]), int(end[0]), int(first[1]), int(end[1])


def _known_field(grid: GridMap) -> ClearanceField:
    """Return the clearances of what a map knows to be occupied."""
    if not (grid.occupied & grid.unknown).any():
        return grid.field
    return grid.field._replace(cells=clearances(grid.occupied & ~grid.unknown, grid.resolution_m))


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, found {number}")
    return float(number)


def _empty(window: Window) -> bool:
    return window[0] >= window[1] or window[2] >= window[3]


def _union(a: Window, b: Window) -> Window:
    """Return the least window around two."""
    if _empty(a) or _empty(b):
        return a if _empty(b) else b
    return min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3])


def _common(a: Window, b: Window) -> Window:
    """Return what lies in both windows."""
    both = max(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), min(a[3], b[3])
    return NOWHERE if _empty(both) else both


def _grown(window: Window, by: int, shape: tuple[int, ...]) -> Window:
    return (
        max(window[0] - by, 0),
        min(window[1] + by, shape[0]),
        max(window[2] - by, 0),
        min(window[3] + by, shape[1]),
    )
