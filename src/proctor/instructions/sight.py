"""What the robot's camera sees, by casting a coarse grid of rays. No renderer, and so cheap.

The camera looks level. Then the horizontal part of a ray depends only on its column in the picture, and the
vertical part only on its row. Boxes and upright cylinders are crossed by a ray where both parts cross them,
so a picture of W columns and H rows costs W + H crossings per solid, not W · H.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.types import Array, Pose2
from proctor.instructions.surroundings import Surroundings, VisibleSolid
from proctor.robots.spec import Camera, standard_robot

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

PIXELS_PER_RAY = 10
"""In both directions: 64 x 48 rays for 640 x 480 pixels."""
SEEN_SHARE = 0.004
"""Of the picture: smaller things are not counted on."""
SEEN_FREE_SHARE = 0.35
"""Of a thing: if more of it is hidden or outside of the picture, it is not counted on."""
GLIMPSED_SHARE = 0.0008
"""Of the picture: what is larger may be taken for something else."""
RANGE_M = 12.0
"""Things further off are not looked at."""
NEAR_M = 0.05
DEPTH_STEP_M = 1e-3


class PictureContent(NamedTuple):
    """What is in one picture, by the index of the thing."""

    shares: dict[int, float]
    """Share of the picture that a thing fills."""
    free_shares: dict[int, float]
    """Share of a thing that is neither hidden by others nor outside of the picture."""

    def seen(self, margin: float = 1.0) -> set[int]:
        """Return the things that nobody would overlook, with this factor to spare."""
        return {
            thing
            for thing, share in self.shares.items()
            if share >= margin * SEEN_SHARE and self.free_shares[thing] >= margin * SEEN_FREE_SHARE
        }

    def glimpsed(self, margin: float = 1.0) -> set[int]:
        """Return the things that somebody might notice, or would if they were larger by this factor."""
        return {thing for thing, share in self.shares.items() if margin * share >= GLIMPSED_SHARE}


class CameraSight:
    """A camera in a scene; it must look level."""

    def __init__(self, surroundings: Surroundings, camera: Camera | None = None) -> None:
        camera = camera or standard_robot().camera
        columns, rows = camera.width // PIXELS_PER_RAY, camera.height // PIXELS_PER_RAY
        tan = math.tan(math.radians(camera.fov_deg) / 2)
        # Rays reach one and a half times as far to the sides as the picture, to know what it cuts off.
        wide = 3 * columns // 2 // 2 * 2
        self._margin = (wide - columns) // 2
        self._rows, self._columns = rows, columns
        self._up: Array = tan * (1 - (2 * np.arange(rows) + 1) / rows)
        self._left: Array = tan * (wide - 2 * np.arange(wide) - 1) / rows
        self._height_m = camera.height_m
        upright = [solid for solid in surroundings.solids if solid.shape != "sphere"]
        balls = [solid for solid in surroundings.solids if solid.shape == "sphere"]
        self._upright, self._balls = _Solids.of(upright), _Solids.of(balls)

    def look(self, pose: Pose2) -> PictureContent:
        """Return what is in the picture from a pose."""
        columns, entries, exits, things = self._hits(pose)
        in_front = (entries > NEAR_M) & (entries < exits)
        # One number per hit, smaller if nearer, that also tells whose it is.
        far = np.iinfo(np.int64).max
        steps = (entries * np.float32(1 / DEPTH_STEP_M)).astype(np.int64)
        keys = np.where(in_front, (steps << 20) + things[:, None], far)
        order = np.argsort(columns, kind="stable")
        present, starts = np.unique(columns[order], return_index=True)
        if not len(present):
            return PictureContent({}, {})
        nearest = np.minimum.reduceat(keys[order], starts, axis=0)  # (columns, rows)
        inside = (present >= self._margin) & (present < self._margin + self._columns)
        shown = nearest[inside]
        visible = shown[shown < far] & 0xFFFFF
        counts = dict(zip(*(part.tolist() for part in np.unique(visible, return_counts=True)), strict=True))
        whole = self._silhouettes(columns, things, in_front)
        picture = self._rows * self._columns
        return PictureContent(
            {thing: count / picture for thing, count in counts.items()},
            {thing: count / whole[thing] for thing, count in counts.items()},
        )

    def _hits(self, pose: Pose2) -> tuple[Ints, Floats, Floats, Ints]:
        """Return column (K,), depth of entry and exit (K, rows) and thing (K,) of rays that meet solids."""
        eye = np.array([pose.x, pose.y, self._height_m])
        cos, sin = math.cos(pose.yaw), math.sin(pose.yaw)
        rays = np.stack([cos - sin * self._left, sin + cos * self._left], axis=1)  # (wide, 2), depth 1
        near = self._upright.in_sector(eye, (cos, sin), self._left[0])
        solids, columns, entries, exits = near.crossed_by_columns(eye, rays)
        low, high = near.crossed_by_rows(eye, self._up)
        entries = np.maximum(entries[:, None], low[solids])
        exits = np.minimum(exits[:, None], high[solids])
        balls = self._balls.in_sector(eye, (cos, sin), self._left[0]).crossed_by_rays(eye, rays, self._up)
        return (
            np.concatenate([columns, balls[0]]),
            np.concatenate([entries, balls[1]]),
            np.concatenate([exits, balls[2]]),
            np.concatenate([near.things[solids], balls[3]]),
        )

    def _silhouettes(self, columns: Ints, things: Ints, in_front: NDArray[np.bool_]) -> dict[int, int]:
        """Return how many rays meet each thing, hidden or not."""
        keys = (things << 20) + columns
        order = np.argsort(keys, kind="stable")
        groups, starts = np.unique(keys[order], return_index=True)
        met = np.logical_or.reduceat(in_front[order], starts, axis=0).sum(axis=1)
        totals = np.bincount(groups >> 20, weights=met)
        return {int(thing): int(totals[thing]) for thing in np.flatnonzero(totals)}


class _Solids(NamedTuple):
    things: Ints
    centre: Array  # (N, 3)
    half: Array  # (N, 3)
    round: NDArray[np.bool_]
    cos: Array
    sin: Array

    @classmethod
    def of(cls, solids: list[VisibleSolid]) -> _Solids:
        """Put solids into arrays."""
        yaw = np.array([solid.yaw for solid in solids])
        return cls(
            np.array([solid.thing for solid in solids], dtype=np.int64),
            np.array([solid.centre for solid in solids]).reshape(-1, 3),
            np.array([solid.half for solid in solids]).reshape(-1, 3),
            np.array([solid.shape == "cylinder" for solid in solids], dtype=bool),
            np.cos(yaw),
            np.sin(yaw),
        )

    def in_sector(self, eye: Array, forward: tuple[float, float], tan: float) -> _Solids:
        """Return those that may be in range and between the outermost rays."""
        offset = self.centre[:, :2] - eye[:2]
        reach = np.hypot(self.half[:, 0], self.half[:, 1])
        ahead = offset @ np.array(forward)
        aside = np.abs(offset @ np.array([-forward[1], forward[0]]))
        kept = (ahead > -reach) & (ahead < RANGE_M + reach)
        kept &= aside - tan * ahead <= math.hypot(1.0, tan) * reach
        return _Solids(*(values[kept] for values in self))

    def crossed_by_columns(self, eye: Array, rays: Array) -> tuple[Ints, Ints, Floats, Floats]:
        """Return solid, column, entry and exit of every crossing, seen from above."""
        x, y = eye[:2, None] - self.centre[:, :2].T
        from_x, from_y = self.cos * x + self.sin * y, self.cos * y - self.sin * x
        along_x = np.outer(self.cos, rays[:, 0]) + np.outer(self.sin, rays[:, 1])  # (solids, columns)
        along_y = np.outer(self.cos, rays[:, 1]) - np.outer(self.sin, rays[:, 0])
        x_in, x_out = _slab(from_x[:, None], along_x, self.half[:, :1])
        y_in, y_out = _slab(from_y[:, None], along_y, self.half[:, 1:2])
        entry, exit_ = np.maximum(x_in, y_in), np.minimum(x_out, y_out)
        disc = np.flatnonzero(self.round)
        entry[disc], exit_[disc] = _circle(
            from_x[disc, None], from_y[disc, None], along_x[disc], along_y[disc], self.half[disc, :1]
        )
        solids, columns = np.nonzero((entry < exit_) & (exit_ > NEAR_M) & (entry < RANGE_M))
        entry, exit_ = entry[solids, columns], exit_[solids, columns]
        return solids, columns, entry.astype(np.float32), exit_.astype(np.float32)

    def crossed_by_rows(self, eye: Array, up: Array) -> tuple[Floats, Floats]:
        """Return entry and exit (solids, rows), seen from the side."""
        low, high = _slab((eye[2] - self.centre[:, 2])[:, None], up[None], self.half[:, 2:])
        return low.astype(np.float32), high.astype(np.float32)

    def crossed_by_rays(self, eye: Array, rays: Array, up: Array) -> tuple[Ints, Floats, Floats, Ints]:
        """Return column, entry and exit (K, rows) and thing for balls."""
        offset = eye - self.centre  # (balls, 3)
        c = (offset**2).sum(axis=1) - self.half[:, 0] ** 2
        flat_a, flat_b = (rays**2).sum(axis=1), offset[:, :2] @ rays.T  # (balls, columns)
        above = (offset[:, :2] ** 2).sum(axis=1) - self.half[:, 0] ** 2
        balls, columns = np.nonzero((flat_b**2 > flat_a * above[:, None]) & (flat_b < 0))
        a = flat_a[columns, None] + up**2
        b = flat_b[balls, columns][:, None] + offset[balls, 2:] * up
        root = np.sqrt(np.maximum(b**2 - a * c[balls, None], 0.0))
        entries, exits = (-b - root) / a, (-b + root) / a
        return columns, entries.astype(np.float32), exits.astype(np.float32), self.things[balls]


def _slab(start: Array, along: Array, half: Array) -> tuple[Array, Array]:
    """Return where lines enter and leave the space between two planes."""
    safe = np.where(np.abs(along) < 1e-9, 1e-9, along)
    first, second = (-half - start) / safe, (half - start) / safe
    return np.minimum(first, second), np.maximum(first, second)


def _circle(x: Array, y: Array, along_x: Array, along_y: Array, radius: Array) -> tuple[Array, Array]:
    """Return where lines enter and leave a circle; the entry is no less than the exit if they miss it."""
    a, b = along_x**2 + along_y**2, along_x * x + along_y * y
    root = np.sqrt(np.maximum(b**2 - a * (x**2 + y**2 - radius**2), 0.0))
    return (-b - root) / a, (-b + root) / a
