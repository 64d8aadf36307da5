"""Where an object may be put down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from proctor.core.errors import UserError
from proctor.core.types import Array
from proctor.exams.pick_place.episode import PickAndPlaceEpisode, SceneItem
from proctor.scenes.thing import Thing, depth_inside_m, level_tops

EDGE_M = 0.02
"""An object stands at least this far from the edge of what it stands on."""
GRID_M = 0.05
TIGHT_GRID = 9
TIGHT_EDGE_M = 0.005
"""Of what is smaller than the object: so far from its edge the object's middle stands at least."""
MOST_SPOTS = 60


class Spot(NamedTuple):
    """A place for an object's origin, in the world."""

    point: Array
    is_inside: bool = False
    """Whether it is in a container: hands may have to stay above it."""


def spots_of(
    episode: PickAndPlaceEpisode,
    things: Mapping[str, Thing],
    *,
    target_position: Array,
    near: Array,
    radius_m: float,
) -> list[Spot]:
    """Return where the object may go, the best places first.

    Args:
        episode: Has a target location.
        things: Its scene objects, by name.
        target_position: The middle of the place, as the world says it.
        near: Where it would be handy, if there is a choice.
        radius_m: Of the object, seen from above.

    Raises:
        UserError: It shall stand on something that has no room for it.
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
    """Return a point and some around it."""
    angles = np.arange(8) * np.pi / 4
    ring = np.stack([np.cos(angles), np.sin(angles), np.zeros(8)], axis=1)
    return [point, *(point + 0.5 * reach_m * ring), *(point + reach_m * ring)]


def _on_top(thing: Thing, item: SceneItem, wanted: Array, radius_m: float) -> list[Array]:
    """Return points on a thing's level top, the nearest to a wanted one first.

    Where the top is too small for the whole object, its middle goes as far from the edges as it can.
    """
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
        x, y = (np.linspace(top.min_bound[i], top.max_bound[i], TIGHT_GRID) for i in (0, 1))
        grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        depths_m = depth_inside_m(top, grid)
        found += [(depth_m, at) for depth_m, at in zip(depths_m, grid, strict=True) if depth_m > TIGHT_EDGE_M]
    return [point for _, point in sorted(found, key=lambda each: -each[0])]
