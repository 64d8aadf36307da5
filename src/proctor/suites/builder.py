"""Builds an exam: generated houses, episodes in them, and the checksums that freeze both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.core.types import Action, Array, Pose2, Vector3
from proctor.episodes.datasets import save_dataset
from proctor.episodes.vln import DEFAULT_MAX_STEPS, Episode
from proctor.navigation.action_planner import STEP_M, TURN_RAD, ActionPlanner
from proctor.navigation.grid_map import GridMap
from proctor.scenes.floor_plan import Rect
from proctor.scenes.houses import House, generate_house
from proctor.scenes.instructions import write_instruction
from proctor.scenes.scene_config import save_scene

PLANNING_RADIUS_M = 0.25
CLEARANCE_M = 0.3
GEODESIC_M = (3.0, 20.0)
GOAL_REACH_M = 0.9
"""How far from its landmark a goal may be."""
SUCCESS_THRESHOLD_M = 1.0
REFERENCE_MISS_M = 0.2
"""How far from the goal the reference actions may end."""
REFERENCE_SPACING_M = 0.25
SAME_ROOM_SHARE = 0.15
TRIES_PER_EPISODE = 50
HOUSE_SEEDS = 10_000


def build_suite(
    folder: Path,
    *,
    houses: int,
    episodes_per_house: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write `episodes.json`, `scenes/` and `checksums.json`.

    Args:
        folder: Where to; made if it does not exist.
        houses: How many houses.
        episodes_per_house: How many episodes in each of them.
        seed: The same seed gives the same files, byte by byte.
        progress: Told how many houses are done, after each.

    Raises:
        UserError: A count is below 1, or there are not that many houses.
    """
    if houses < 1 or episodes_per_house < 1:
        raise UserError(f"expected at least 1 house and 1 episode, found {houses} and {episodes_per_house}")
    scenes = folder / "scenes"
    scenes.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    episodes: list[Episode] = []
    for house, found in _usable_houses(episodes_per_house, seed):
        file = scenes / f"{house.scene.scene_name}.json"
        save_scene(house.scene, file)
        files.append(file)
        episodes += found
        if progress is not None:
            progress(len(files))
        if len(files) == houses:
            break
    else:
        raise UserError(f"{houses} houses were asked for, but only {len(files)} can be made")
    files.append(folder / "episodes.json")
    save_dataset(episodes, files[-1])
    checksums = {file.relative_to(folder).as_posix(): _sha256(file) for file in sorted(files)}
    write_atomically(folder / "checksums.json", msgspec.json.format(msgspec.json.encode(checksums)) + b"\n")


def _usable_houses(episodes_per_house: int, seed: int) -> Iterator[tuple[House, list[Episode]]]:
    """Yield houses with their episodes, leaving out those where a room cannot be entered."""
    for house_seed in np.random.default_rng(seed).permutation(HOUSE_SEEDS):
        house = generate_house(int(house_seed))
        grid = GridMap.from_scene(house.scene)
        if rooms_are_reachable(house, grid):
            rng = np.random.default_rng([seed, int(house_seed)])
            episodes = _Examiner(house, grid, rng).episodes(episodes_per_house)
            if len(episodes) == episodes_per_house:
                yield house, episodes


def rooms_are_reachable(house: House, grid: GridMap) -> bool:
    """Tell whether a robot that stands in the hall gets into every other room."""
    hall, *others = [_free_points(room.floor, grid) for room in house.rooms]
    if not len(hall):
        return False
    from_hall = [points for points in others if len(points)]
    return len(from_hall) == len(others) and all(
        math.isfinite(grid.distance_m(hall[0], points[0], radius_m=PLANNING_RADIUS_M)) for points in from_hall
    )


class _Examiner:
    """Sets the episodes of one house."""

    def __init__(self, house: House, grid: GridMap, rng: np.random.Generator) -> None:
        self._house, self._grid, self._rng = house, grid, rng
        self._landmarks = [item for item in house.furniture if item.landmark]
        self._free = {room.name: _free_points(room.floor, grid) for room in house.rooms}

    def episodes(self, count: int) -> list[Episode]:
        """Return this many episodes that all have different instructions, or fewer if it is too hard."""
        found: dict[str, Episode] = {}
        for _ in range(TRIES_PER_EPISODE * count):
            episode = self._attempt(len(found))
            if episode is not None:
                found.setdefault(episode.instruction, episode)
            if len(found) == count:
                break
        return list(found.values())

    def _attempt(self, index: int) -> Episode | None:
        """Draw an episode at random; None if it is no good."""
        rng, grid = self._rng, self._grid
        goals = self._goals()
        starts = self._starts(...)
        return None


def _free_points(floor: Rect, grid: GridMap) -> Array:
    """Return the places (N, 2) in a room, 5 cm apart, with room for a robot, the roomiest first."""
    x, y = np.arange(floor.x0, floor.x1, 0.05), np.arange(floor.y0, floor.y1, 0.05)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2).round(2)
    clearances = grid.clearances(points)
    order = np.argsort(-clearances, kind="stable")
    free: Array = points[order[: np.count_nonzero(clearances > CLEARANCE_M)]]
    return free


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
