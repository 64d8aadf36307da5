"""Where to take hold of an object, and where it may be put down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from proctor.core.errors import UserError
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode
from proctor.scenes.tabletop_parts import SceneItem
from proctor.scenes.thing import Thing, depth_inside_m, level_tops

WIDEST_M = 0.0715  # between open pads there are 75.7 mm
LOWEST_PAD_M = 0.0285
"""Of the pads' middle above what the object stands on: their lower corners are 24.6 mm below it."""
HIGHEST_PAD_M = 0.085
PAD_REACH_M = 0.02  # above and below their middle, pads touch
ROUND_M = 0.0015  # sides whose distance differs by less are as good as each other
DIRECTIONS, ROUND_STEP = 36, 3
"""Directions that are looked at, and of those in which an object is round, one in how many is used."""

EDGE_M = 0.02  # an object stands at least this far from the edge of what it stands on
GRID_M = 0.05
TIGHT_EDGE_M = 0.005
"""Of what is smaller than the object: so far from its edge the object's middle stands at least."""
MOST_SPOTS = 60


class Grasp(NamedTuple):
    """Where the pads go, in the world."""

    point: Array  # the middle between the pads
    closing_yaw: float  # the direction in which the fingers close; the opposite one is the same
    width_m: float  # of the object between the pads


def grasps_of(thing: Thing, position: Array, rotation: Array) -> list[Grasp]:
    """Return the grasps of an object at a position and a 3 x 3 rotation in the world, narrowest first.

    Of a box these are its two pairs of sides, of a round object all directions. A handle ends up along the
    fingers, since across it the object is wider.
    """
    pieces = [solid.points @ rotation.T for solid in thing.solids]
    bottom_z = min(float(points[:, 2].min()) for points in pieces)
    height_m = max(float(points[:, 2].max()) for points in pieces) - bottom_z
    pad_z = bottom_z + min(max(0.55 * height_m, LOWEST_PAD_M), HIGHEST_PAD_M)
    touched = _between(pieces, pad_z - PAD_REACH_M, pad_z + PAD_REACH_M)
    yaws = np.arange(DIRECTIONS) * math.pi / DIRECTIONS + _side_yaw(thing, rotation)
    across = np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
    reached = touched @ across.T
    low, high = reached.min(axis=0), reached.max(axis=0)
    widths = high - low
    wider = np.minimum(np.roll(widths, 1), np.roll(widths, -1)) - widths
    is_narrow = (wider >= -ROUND_M) & (widths <= WIDEST_M)
    is_round = np.abs(wider) < ROUND_M
    grasps = []
    for index in np.flatnonzero(is_narrow & (~is_round | (np.arange(DIRECTIONS) % ROUND_STEP == 0))):
        cos, sin = across[index]
        along = touched @ [-sin, cos]
        sides = (reached[:, index] < low[index] + ROUND_M, reached[:, index] > high[index] - ROUND_M)
        middle = float(np.mean([(along[side].min() + along[side].max()) / 2 for side in sides]))
        away = across[index] * (low[index] + high[index]) / 2 + np.array([-sin, cos]) * middle
        point = position + np.array([*away, pad_z])
        grasps.append(Grasp(point, float(yaws[index]), float(widths[index])))
    return sorted(grasps, key=lambda grasp: grasp.width_m)


def _side_yaw(thing: Thing, rotation: Array) -> float:
    """Return the direction of a side of the largest piece: its own x axis, seen from above."""
    largest = max(thing.solids, key=lambda solid: float(np.prod(solid.size)))
    x, y, _ = max((rotation @ largest.rotation).T, key=lambda axis: math.hypot(axis[0], axis[1]))
    return math.atan2(y, x)


def _between(pieces: list[Array], low_z: float, high_z: float) -> Array:
    """Return points (N, 2) around what convex pieces are between two heights."""
    found = []
    for points in pieces:
        z = points[:, 2]
        found.append(points[(z >= low_z) & (z <= high_z), :2])
        first, second = np.triu_indices(len(z), 1)
        for level in (low_z, high_z):  # where lines between two points cross it
            crossing = (z[first] < level) != (z[second] < level)
            start, end = points[first[crossing]], points[second[crossing]]
            share = (level - start[:, 2]) / (end[:, 2] - start[:, 2])
            found.append((start + share[:, None] * (end - start))[:, :2])
    return np.concatenate(found)


class Spot(NamedTuple):
    """A place for an object's origin, in the world."""

    point: Array
    is_inside: bool = False  # whether it is in a container: hands may have to stay above it


def spots_of(
    episode: PickAndPlaceEpisode,
    things: Mapping[str, Thing],
    *,
    target_position: Array,
    near: Array,
    radius_m: float,
) -> list[Spot]:
    """Return where the object, of this radius from above, may go, the best places first.

    `target_position` is the middle of the place, `near` where it would be handy if there is a choice. Raises
    UserError if it shall stand on something that has no room for it.
    """
    location = episode.task_goal.target_location
    name = episode.support_name()
    if location is None or name is None:
        slack_m = 0.5 * episode.task_goal.success_criteria.place_tolerance
        return [Spot(point) for point in _around(target_position, slack_m)]
    thing, item = things[name], episode.item(name)
    cavity = thing.cavity
    if cavity is not None:  # the surface of a plate or a tray is its floor, too
        room_m = min(cavity.half_x_m, cavity.half_y_m) * (0.7 if cavity.is_round else 0.9) - radius_m
        floor = np.array([*target_position[:2], item.position[2] + cavity.floor_z])
        return [Spot(point, is_inside=True) for point in _around(floor, max(room_m, 0.005))]
    if location.type == "container":
        return [Spot(np.array([*target_position[:2], item.position[2] + thing.high[2]]), is_inside=True)]
    wanted = near if location.position is None else np.array(location.position)
    points = _on_top(thing, item, wanted, radius_m)
    if not points:
        least_cm = 200 * TIGHT_EDGE_M
        needs = f"a level top of at least {least_cm:g} cm across that does not roll"
        raise UserError(
            f"episode '{episode.episode_id}': '{episode.target_name}' cannot be put on '{name}': expected "
            f"{needs}, found {'one that rolls' if thing.rolls else 'none'}"
        )
    return [Spot(point) for point in points]


def _around(point: Array, reach_m: float) -> list[Array]:
    angles = np.arange(8) * np.pi / 4
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(8)], axis=1)
    return [point, *(point + 0.5 * reach_m * ring), *(point + reach_m * ring)]


def _on_top(thing: Thing, item: SceneItem, wanted: Array, radius_m: float) -> list[Array]:
    """Return points on a level top, nearest to a wanted one first; on a small top, near its middle."""
    turned = Rotation.from_quat(item.rotation)
    local = turned.inv().apply(wanted - np.array(item.position))
    tops = level_tops(thing)
    found: list[Array] = []
    for top in tops:
        low, high = top.min_bound, top.max_bound
        x, y = (np.append(np.arange(low[i], high[i], GRID_M), local[i]) for i in (0, 1))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        found += list(grid[depth_inside_m(top, grid) >= radius_m + EDGE_M])
    found.sort(key=lambda point: float(np.hypot(*(point - local[:2]))))
    found = found or _tight(tops)
    at = [np.array([*point, thing.high[2]]) for point in found[:MOST_SPOTS]]
    return [turned.apply(point) + np.array(item.position) for point in at]


def _tight(tops: Sequence[ConvexHull]) -> list[Array]:
    """Return points on tops that are smaller than the object, the farthest from the edges first."""
    found: list[tuple[float, Array]] = []
    for top in tops:
        x, y = (np.linspace(top.min_bound[i], top.max_bound[i], 9) for i in (0, 1))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        depths_m = depth_inside_m(top, grid)
        found += [(depth_m, at) for depth_m, at in zip(depths_m, grid, strict=True) if depth_m > TIGHT_EDGE_M]
    return [point for _, point in sorted(found, key=lambda each: -each[0])]
