"""Vision-and-language navigation as an exam: legal actions, what is measured, how an episode is judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import UNSET, UnsetType

from proctor.core.actions import parse_navigation_action
from proctor.core.geometry import distance
from proctor.core.interfaces import DistanceFn, Metric
from proctor.core.registry import build, names
from proctor.core.types import Action, EpisodeInfo, Info, Observation, Vector3
from proctor.exams.env_info import read_flag, read_number, read_point
from proctor.exams.results import EpisodeResult
from proctor.exams.sensors import sensors_of
from proctor.exams.vln.episode import DEFAULT_SUCCESS_THRESHOLD_M, Episode, stored_geodesic_m
from proctor.navigation.maps.grid_map import (
    PLANNING_RADIUS_M,
    ROBOT,
    GridMap,
    Point,
    floor_of_scene,
    map_of_scene,
)
from proctor.runs.agent_ids import agent_id, draw_key
from proctor.runs.episode_log import EpisodeLog
from proctor.scenes.scene_config import scene_version

HEADING_DIGITS = 6
CAREFUL_RADIUS_M = 0.1
"""The robot's radius less what the map may be too careful."""
JOIN_M = 0.5
"""An end inside of something is joined to a free place if the thing ends no further away than this."""

TRIES = (
    *((PLANNING_RADIUS_M, 0.0), (ROBOT.radius_m, 0.0)),
    *((PLANNING_RADIUS_M, JOIN_M), (ROBOT.radius_m, JOIN_M), (CAREFUL_RADIUS_M, JOIN_M)),
)
"""For which disc to look for a way, in this order, and how far its ends may be joined."""


class PlanarFn(Protocol):
    """How far it is over the floor for a disc."""

    def __call__(self, start: Point, goal: Point, /, *, radius_m: float) -> float:
        """Return metres, infinite if there is no way."""


class VLNTask:
    """The VLN exam.

    Args:
        success_threshold_m: How near to the goal a STOP counts, for episodes that do not say it.
        agent_id_key: The secret by which the ids that agents are told are made; drawn if it is empty.
    """

    def __init__(
        self, *, success_threshold_m: float = DEFAULT_SUCCESS_THRESHOLD_M, agent_id_key: str = ""
    ) -> None:
        self._agent_id_key = agent_id_key or draw_key()
        self._default_threshold_m = success_threshold_m
        self._metrics: dict[str, Metric] = {name: build("metric", name, {}) for name in names("metric")}
        self._distance: Literal["geodesic", "euclidean"] = "euclidean"
        self._distance_fn: DistanceFn = distance
        self._shortest_path: Literal["dataset"] | UnsetType = UNSET
        self._trajectory: list[Vector3] = []
        self._headings: list[float] = []
        self._collision_steps: list[int] = []

    def begin(self, episode: Episode) -> None:
        """Find the episode's map and start its metrics."""
        self._trajectory = [Vector3.of(episode.start_position)]
        self._headings = [round(episode.start_yaw, HEADING_DIGITS)]
        self._collision_steps = []
        self._distance, self._distance_fn = _distance_of(episode)
        is_stored = not has_map(episode) and stored_geodesic_m(episode) is not None
        self._shortest_path = "dataset" if is_stored else UNSET
        for metric in self._metrics.values():
            metric.reset(episode, self)

    def start(self, info: Callable[[], Info]) -> None:
        """Ask for nothing: the episode says where the robot starts, and not every env tells it."""

    def briefing(
        self, episode: Episode, observation: Observation, *, seed: int, privileged: bool
    ) -> EpisodeInfo:
        """Return the instruction and, to privileged policies only, the stored id and the whole episode."""
        return EpisodeInfo(
            episode_id=episode.episode_id if privileged else agent_id(self._agent_id_key, episode.episode_id),
            instruction=episode.instruction,
            max_steps=episode.step_limit,
            seed=seed,
            language=episode.language,
            sensors=sensors_of(observation),
            actions=tuple(Action.__members__),
            episode=episode if privileged else None,
        )

    def parse_action(self, answer: Any) -> Action:
        """Return the action an agent means.

        Raises:
            AgentFault: It means none.
        """
        return parse_navigation_action(answer)

    def update(self, action: Action, info: Info) -> None:
        """Measure the state after a step.

        Raises:
            SimulationError: The env reports what cannot be measured.
        """
        position, collided = read_point(info, "position"), read_flag(info, "collision")
        yaw = read_number(info, "yaw") if "yaw" in info else self._headings[-1]
        self._trajectory.append(position)
        self._headings.append(round(yaw, HEADING_DIGITS))
        if collided:
            self._collision_steps.append(len(self._trajectory) - 1)
        state = {**info, "position": position, "collision": collided, "action": action}
        for metric in self._metrics.values():
            metric.update(state)

    def distance_m(self, a: Vector3, b: Vector3) -> float:
        """Return the distance by which the present episode is judged."""
        return self._distance_fn(a, b)

    def shortest_path_m(self, episode: Episode) -> float:
        """Return the length of the shortest path from start to goal, by which SPL is measured.

        Without a map it is the geodesic distance that the dataset stores, and failing that the straight line.
        """
        if self._shortest_path == "dataset":
            return shortest_known_m(episode)
        return self.distance_m(episode.start_position, episode.goal)

    def success_threshold_m(self, episode: Episode) -> float:
        """Return the episode's own threshold, or the run's."""
        own = episode.success_threshold
        return self._default_threshold_m if own is None else own

    def measure(self) -> dict[str, float]:
        """Return the metrics that apply to the episode, as of its last step."""
        values = {name: float(metric.get_metric()) for name, metric in self._metrics.items()}
        return {name: value for name, value in values.items() if math.isfinite(value)}

    def result(self, episode: Episode, log: EpisodeLog) -> EpisodeResult:
        """Write the episode's record."""
        fault = log.fault
        success = fault is None and log.metrics["success"] == 1.0
        reason = fault.kind if fault else None if success else self._failure_reason(episode, log)
        return EpisodeResult(
            episode_id=episode.episode_id,
            scene_id=episode.scene_id,
            instruction=episode.instruction,
            status="error" if fault else "success" if success else "failure",
            success=success,
            failure_reason=reason,
            error=fault,
            final_distance_to_goal=distance(self._trajectory[-1], episode.goal),
            steps=len(log.actions),
            collision_count=len(self._collision_steps),
            trajectory=self._trajectory,
            headings=self._headings,
            collision_steps=self._collision_steps,
            actions=[int(action) for action in log.actions],
            metrics=log.metrics,
            distance=self._distance,
            shortest_path=self._shortest_path,
            seed=log.seed,
            timing=log.timing,
        )

    def _failure_reason(self, episode: Episode, log: EpisodeLog) -> str:
        if log.actions and log.actions[-1] == Action.STOP:
            return "stopped_far"
        if len(log.actions) >= episode.step_limit:
            return "timeout"
        # Only an env with `end_on_collision` ends early for that; predictions just end.
        last = len(self._trajectory) - 1
        return "collision" if self._collision_steps[-1:] == [last] else "no_stop"


def _distance_of(episode: Episode) -> tuple[Literal["geodesic", "euclidean"], DistanceFn]:
    """Return the distance by which an episode is judged, one and the same for the whole of it.

    It is geodesic where the scene has a map, and Euclidean where there is none. Where the map does not
    connect start and goal, it is infinite, and the name is that of the navigation error.
    """
    if not has_map(episode):
        return "euclidean", distance
    grid = _map_of(Path(str(episode.scene_config_path)), episode.start_position, episode.goal)
    if grid is None:
        return "euclidean", _no_way
    length_m = cache(partial(geodesic_m, grid))  # several metrics ask for the same
    if not math.isfinite(length_m(episode.start_position, episode.goal)):
        return "euclidean", _no_way

    def geodesic(a: Vector3, b: Vector3) -> float:
        if math.isfinite(length_m(a, b)):
            return length_m(a, b)
        # The robot may get to where the map, which is a few centimetres too careful, sees no way.
        careful_m = _drive_m(grid, a, b, CAREFUL_RADIUS_M, JOIN_M, grid.distance_m)
        return math.inf if careful_m is None else careful_m

    return "geodesic", geodesic


def shortest_known_m(episode: Episode) -> float:
    """Return how far it is from start to goal: on the map, else as the dataset stores it, else straight.

    Raises:
        InvalidFile: The scene is broken.
    """
    stored_m = None if has_map(episode) else stored_geodesic_m(episode)
    return _distance_of(episode)[1](episode.start_position, episode.goal) if stored_m is None else stored_m


def has_map(episode: Episode) -> bool:
    """Tell whether there is a scene file from which a map can be drawn."""
    return episode.scene_config_path is not None and Path(episode.scene_config_path).is_file()


def is_reachable(episode: Episode) -> bool:
    """Tell whether a robot on wheels can get from start to goal, as far as a map can tell.

    Raises:
        InvalidFile: The scene is broken.
    """
    if not has_map(episode):
        return True
    scene = Path(str(episode.scene_config_path))
    return _is_connected(scene, scene_version(scene), episode.start_position, episode.goal)


@lru_cache(maxsize=2**14)
def _is_connected(scene: Path, version: int, start: Vector3, goal: Vector3) -> bool:
    del version  # only there to tell versions apart
    grid = _map_of(scene, start, goal)
    return grid is not None and has_way(grid, start, goal)


def _map_of(scene: Path, start: Vector3, goal: Vector3) -> GridMap | None:
    """Return the map that shows both start and goal, None if they lie on different floors."""
    if floor_of_scene(scene, start) != floor_of_scene(scene, goal):
        return None
    return map_of_scene(scene, start).covering((start.x, start.y), (goal.x, goal.y))


def _no_way(a: Vector3, b: Vector3) -> float:
    del a, b
    return math.inf


def geodesic_m(grid: GridMap, a: Vector3, b: Vector3) -> float:
    """Return the length of the shortest drive from a to b, and the climb on top of it; infinite if none.

    It is measured for the disc that ways are planned for or, where that finds no way, for the robot's own.
    An end where neither fits is joined to a place close by where one does, never through a wall. Where there
    is no such place, the map being a little too careful, it is measured for a smaller disc.
    """
    return _first_drive_m(grid, a, b, grid.distance_m)


def has_way(grid: GridMap, a: Vector3, b: Vector3) -> bool:
    """Tell whether `geodesic_m` is finite, much faster."""

    def nothing_m(start: Point, goal: Point, *, radius_m: float) -> float:
        return 0.0 if grid.connects(start, goal, radius_m=radius_m) else math.inf

    return math.isfinite(_first_drive_m(grid, a, b, nothing_m))


def _first_drive_m(grid: GridMap, a: Vector3, b: Vector3, planar: PlanarFn) -> float:
    for radius_m, reach_m in TRIES:
        length_m = _drive_m(grid, a, b, radius_m, reach_m, planar)
        if length_m is not None and (math.isfinite(length_m) or radius_m <= ROBOT.radius_m):
            return length_m
    return math.inf


def _drive_m(
    grid: GridMap, a: Vector3, b: Vector3, radius_m: float, reach_m: float, planar: PlanarFn
) -> float | None:
    """Return how far a disc has to go, its ends joined to where it fits; None if it fits nowhere near."""
    start, goal = (a.x, a.y), (b.x, b.y)
    # Joins are a detour, which would count where a robot beside a wall is close to its goal.
    if math.dist(start, goal) <= 2 * reach_m and grid.line_is_free(start, goal, CAREFUL_RADIUS_M):
        return distance(a, b)
    first = grid.place_beside(start, radius_m, reach_m=reach_m)
    last = grid.place_beside(goal, radius_m, reach_m=reach_m)
    if first is None or last is None:
        return None
    planar_m = planar(first, last, radius_m=radius_m)
    return math.hypot(math.dist(start, first) + planar_m + math.dist(last, goal), b.z - a.z)
