"""Builds an exam: generated houses, episodes in them, and the checksums that freeze both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import msgspec
import numpy as np

from proctor.core.documents import write_atomically
from proctor.core.errors import UserError
from proctor.core.geometry import pose_after
from proctor.core.types import Action, Array, Pose2, Vector3
from proctor.episodes.datasets import CHECKSUMS, save_dataset
from proctor.episodes.vln import DEFAULT_MAX_STEPS, Episode
from proctor.instructions.surroundings import Surroundings
from proctor.instructions.writer import LEVELS, write_instruction
from proctor.navigation.action_planner import ActionPlanner
from proctor.navigation.grid_map import PLANNING_RADIUS_M, GridMap
from proctor.scenes.floor_plan import Rect
from proctor.scenes.houses import House, generate_house
from proctor.scenes.scene_config import save_scene

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
HOPELESS = 10
"""So many houses in a row without enough episodes mean that none has enough."""


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
    if seed < 0:
        raise UserError(f"expected a seed from 0 up, found {seed}")
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
    write_atomically(folder / CHECKSUMS, msgspec.json.format(msgspec.json.encode(checksums)) + b"\n")


def _usable_houses(episodes_per_house: int, seed: int) -> Iterator[tuple[House, list[Episode]]]:
    """Yield houses with their episodes, leaving out those where a room cannot be entered."""
    misses = 0
    for house_seed in np.random.default_rng(seed).permutation(HOUSE_SEEDS):
        if misses > HOPELESS:
            raise UserError(f"{episodes_per_house} different episodes are too many for one house")
        misses += 1
        house = generate_house(int(house_seed))
        grid = GridMap.from_scene(house.scene)
        if rooms_are_reachable(house, grid):
            rng = np.random.default_rng([seed, int(house_seed)])
            episodes = _HouseExaminer(house, grid, rng).episodes(episodes_per_house)
            if len(episodes) == episodes_per_house:
                misses = 0
                yield house, episodes


def rooms_are_reachable(house: House, grid: GridMap) -> bool:
    """Tell whether a robot that stands in the hall gets into every other room."""
    hall, *others = [_free_points(room.floor, grid) for room in house.rooms]
    if not len(hall):
        return False
    return all(
        len(points) and math.isfinite(grid.distance_m(hall[0], points[0], radius_m=PLANNING_RADIUS_M))
        for points in others
    )


class _HouseExaminer:
    """Sets the episodes of one house."""

    def __init__(self, house: House, grid: GridMap, rng: np.random.Generator) -> None:
        self._house, self._grid, self._rng = house, grid, rng
        self._surroundings = Surroundings.of(house.scene)
        self._landmarks = [item for item in house.furniture if item.landmark]
        self._free = {room.name: _free_points(room.floor, grid) for room in house.rooms}

    def episodes(self, count: int) -> list[Episode]:
        """Return this many episodes that all have different instructions, or fewer if it is too hard."""
        found: dict[str, Episode] = {}
        tries_left = TRIES_PER_EPISODE
        while len(found) < count and tries_left:
            tries_left -= 1
            episode = self._attempt(len(found))
            if episode is not None and episode.instruction not in found:
                found[episode.instruction] = episode
                tries_left = TRIES_PER_EPISODE
        return list(found.values())

    def _attempt(self, index: int) -> Episode | None:
        """Draw an episode at random; None if it is no good."""
        rng = self._rng
        landmark = self._landmarks[rng.integers(len(self._landmarks))]
        goal_room = landmark.object.room
        others = [room for room in self._free if room != goal_room]
        start_room = goal_room if rng.random() < SAME_ROOM_SHARE else others[rng.integers(len(others))]
        starts, goals = self._free[start_room], self._free[goal_room]
        goals = goals[[landmark.footprint.distance_m(x, y) <= GOAL_REACH_M for x, y in goals]]
        if not len(goals):
            return None
        start_xy, goal_xy = starts[rng.integers(len(starts))], goals[rng.integers(len(goals))]
        path = self._grid.shortest_path(start_xy, goal_xy, radius_m=PLANNING_RADIUS_M)
        if path is None or not GEODESIC_M[0] <= _length_m(path) <= GEODESIC_M[1]:
            return None
        return self._episode(index, _dense(path), yaw_deg=15.0 * int(rng.integers(24)))

    def _episode(self, index: int, path: Array, *, yaw_deg: float) -> Episode | None:
        """Return the episode along a path; None if there is nothing to say, or no good way to go."""
        level = LEVELS[index % len(LEVELS)]
        instruction = write_instruction(
            self._surroundings, path, math.radians(yaw_deg), level=level, language="en", rng=self._rng
        )
        if instruction is None:
            return None
        start, goal = _vector(path[0]), _vector(path[-1])
        pose = Pose2(start.x, start.y, math.radians(yaw_deg))
        actions = ActionPlanner(self._grid, (goal.x, goal.y)).plan(pose)
        end = reduce(lambda pose, action: pose_after(action, pose), actions, pose)
        if math.dist((end.x, end.y), (goal.x, goal.y)) > REFERENCE_MISS_M:
            return None
        scene_id = self._house.scene.scene_name
        return Episode(
            episode_id=f"{scene_id}_{index}",
            scene_id=scene_id,
            start_position=start,
            start_rotation=Vector3(0.0, 0.0, yaw_deg),
            goal_position=goal,
            instruction=instruction,
            max_steps=DEFAULT_MAX_STEPS,
            success_threshold=SUCCESS_THRESHOLD_M,
            reference_path=[_vector(point) for point in path],
            reference_actions=[*actions, Action.STOP],
            level=level,
            split="test",
        )


def _length_m(path: Array) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _dense(path: Array) -> Array:
    """Return evenly spaced points along a path."""
    along = np.concatenate([[0.0], np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()])
    marks = np.linspace(0.0, along[-1], math.ceil(along[-1] / REFERENCE_SPACING_M) + 1)
    return np.stack([np.interp(marks, along, path[:, axis]) for axis in (0, 1)], axis=1)


def _vector(point: Array) -> Vector3:
    return Vector3(round(float(point[0]), 3), round(float(point[1]), 3), 0.0)


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
