"""Vision-and-language navigation as an exam: legal actions, what is measured, how an episode is judged."""

from __future__ import annotations

import math
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from proctor.core.errors import AgentFault
from proctor.core.geometry import distance
from proctor.core.interfaces import DistanceFn, Metric
from proctor.core.results import EpisodeResult
from proctor.core.types import Action, EpisodeInfo, Info, Vector3
from proctor.episodes.vln import DEFAULT_SUCCESS_THRESHOLD_M, Episode
from proctor.evaluation.episode_log import EpisodeLog
from proctor.navigation.grid_map import PLANNING_RADIUS_M, ROBOT, GridMap, floor_of_scene, map_of_scene
from proctor.registry import build, names

HEADING_DIGITS = 6
CAREFUL_RADIUS_M = 0.1
"""The robot's radius less what the map may be too careful."""


class VLNTask:
    """The VLN exam.

    Args:
        success_threshold_m: How near to the goal a STOP counts, for episodes that do not say it.
    """

    def __init__(self, *, success_threshold_m: float = DEFAULT_SUCCESS_THRESHOLD_M) -> None:
        self._default_threshold_m = success_threshold_m
        self._metrics: dict[str, Metric] = {name: build("metric", name, {}) for name in names("metric")}
        self._distance: Literal["geodesic", "euclidean"] = "euclidean"
        self._distance_fn: DistanceFn = distance
        self._trajectory: list[Vector3] = []
        self._headings: list[float] = []
        self._collision_steps: list[int] = []

    def begin(self, episode: Episode) -> None:
        """Find the episode's map and start its metrics."""
        self._trajectory = [episode.start_position]
        self._headings = [round(episode.start_yaw, HEADING_DIGITS)]
        self._collision_steps = []
        self._distance, self._distance_fn = _distance_of(episode)
        for metric in self._metrics.values():
            metric.reset(episode, self)

    def briefing(self, episode: Episode, *, seed: int, privileged: bool) -> EpisodeInfo:
        """Return the instruction and, to privileged policies only, the whole episode."""
        return EpisodeInfo(
            episode_id=episode.episode_id,
            instruction=episode.instruction,
            max_steps=episode.step_limit,
            seed=seed,
            language=episode.language,
            episode=episode if privileged else None,
        )

    def parse_action(self, answer: Any) -> Action:
        """Return the action an agent means: an integer from 0 to 3.

        Raises:
            AgentFault: It is something else.
        """
        is_integer = isinstance(answer, int | np.integer) and not isinstance(answer, bool)
        if not (is_integer and 0 <= answer <= 3):
            expected = "expected an integer: 0 STOP, 1 FORWARD, 2 LEFT or 3 RIGHT"
            # Only plain values are quoted: the repr of others may be huge, or differ from run to run.
            plain = isinstance(answer, int | float | str | np.number) or answer is None
            found = f"{type(answer).__name__} {answer!r:.40}" if plain else type(answer).__name__
            raise AgentFault("invalid_action", f"{expected}; found {found}")
        return Action(int(answer))

    def update(self, action: Action, info: Info) -> None:
        """Measure the state after a step."""
        position, collided = Vector3.of(info["position"]), bool(info["collision"])
        self._trajectory.append(position)
        self._headings.append(round(float(info.get("yaw", self._headings[-1])), HEADING_DIGITS))
        if collided:
            self._collision_steps.append(len(self._trajectory) - 1)
        state = {**info, "position": position, "collision": collided, "action": action}
        for metric in self._metrics.values():
            metric.update(state)

    def distance_m(self, a: Vector3, b: Vector3) -> float:
        """Return the distance by which the present episode is judged."""
        return self._distance_fn(a, b)

    def success_threshold_m(self, episode: Episode) -> float:
        """Return the episode's own threshold, or the run's."""
        own = episode.success_threshold
        return self._default_threshold_m if own is None else own

    def measure(self) -> dict[str, float]:
        """Return the metrics that apply to the episode, as of its last step."""
        values = {name: metric.get_metric() for name, metric in self._metrics.items()}
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
    """Return the distance by which an episode is judged.

    It is geodesic where the scene has a map that connects start and goal, else Euclidean: one and the
    same for the whole episode.
    """
    if episode.scene_config_path is None or not Path(episode.scene_config_path).is_file():
        return "euclidean", distance
    start, goal = episode.start_position, episode.goal
    scene = Path(episode.scene_config_path)
    if floor_of_scene(scene, start.z) != floor_of_scene(scene, goal.z):
        return "euclidean", distance  # no way on wheels, and no map that shows both
    grid = map_of_scene(scene, start.z).covering((start.x, start.y), (goal.x, goal.y))

    length_m = cache(partial(geodesic_m, grid))  # several metrics ask for the same

    def geodesic(a: Vector3, b: Vector3) -> float:
        if math.isfinite(length_m(a, b)):
            return length_m(a, b)
        # The robot got to where the map, which is a few centimetres too careful, sees no way.
        rough_m = grid.rough_distances_m((a.x, a.y), (b.x, b.y), radius_m=PLANNING_RADIUS_M)
        return math.hypot(float(rough_m), b.z - a.z)

    return ("geodesic", geodesic) if math.isfinite(length_m(start, goal)) else ("euclidean", distance)


def geodesic_m(grid: GridMap, a: Vector3, b: Vector3) -> float:
    """Return the length of the shortest drive from a to b, and the climb on top of it; infinite if none.

    It is measured for the disc that ways are planned for or, where that finds no way, for the robot's own.
    Where not even that fits, the map being a little too careful, it is a smaller one; and the last resort,
    for ends inside of things, is the nearest free place.
    """
    start_xy, goal_xy = (a.x, a.y), (b.x, b.y)
    for radius_m in (PLANNING_RADIUS_M, ROBOT.radius_m, CAREFUL_RADIUS_M):
        if grid.is_free(*start_xy, radius_m) and grid.is_free(*goal_xy, radius_m):
            planar_m = grid.distance_m(start_xy, goal_xy, radius_m=radius_m)
            if math.isfinite(planar_m) or radius_m <= ROBOT.radius_m:
                return math.hypot(planar_m, b.z - a.z)
    return math.hypot(grid.distance_m(start_xy, goal_xy, radius_m=PLANNING_RADIUS_M), b.z - a.z)
