"""The policy that plans as the skill `navigate_to` does, and follows its path with the four actions."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import distances_along, evenly_spaced, pose_after
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import STEP_M, TURN_RAD, Action, Array, EpisodeInfo, Observation, Pose2
from proctor.exams.path_distance import has_map
from proctor.maps.failure import NavigationFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.navigation.planner import planner_name
from proctor.navigation.process.pipeline import compute_path
from proctor.navigation.process.requests import Motion, PathRequest
from proctor.scenes.scene_map import map_of_scene

RADIUS_M = 0.22  # every move keeps this: the robot's radius, and what its laser wants to see ahead
MARGIN_M = 0.08  # paths keep more, for the moves lead beside them
SPACING_M = 0.05  # between the points of a path
AHEAD = 4  # so many steps are thought of at once
BEAM = 80
PROBES = np.array([0.25, 0.5, 0.75, 1.0])  # of a step
ANY_TURN, FEW_TURNS = np.arange(-11, 13), np.arange(-2, 3)
"""In turns of 15°, before the first step and before those that follow."""
IN_VIEW = round(2 * AHEAD * STEP_M / SPACING_M)  # so many points of the path count at a time

OFF_PATH_M = 0.1
"""So far beside the path costs as much as a path of this length; twice as far, four times as much."""
TURN_COST_M = 0.02
CLOSENESS_COST = 2.0
DEAD_END_COST_M = 1.0  # of going on where no step is possible any more
MISS_COST = 5.0
NEAR_M = 0.05  # nearer to the goal than this is no better
LOST_M = 0.5  # further from the path than this, another one is planned
AHEAD_M, BLOCK_M = 0.45, 0.1
"""Where what was bumped into is put on the map, and its radius."""
PLANNING_TIMEOUT_S = 120.0
"""Nothing moves while the policy plans, and at the first plan code may have to be compiled."""
REACH_M = 2.0  # a goal inside of an object is exchanged for the nearest place that is no further away


class NavigateToPolicy(Policy):
    """Plans a smooth path once, and follows it with steps of 0.25 m and turns of 15°.

    Before each step a few steps ahead are thought through, from where the robot really is: they should stay
    near the path, get on, turn little and keep clear of everything. Another path is planned when the robot
    bumps into something or is far from its path. `planner` is a name such as `grid` or `rrt_star`.
    """

    privileged: ClassVar[bool] = True

    def __init__(self, planner: str = "grid") -> None:
        self._planner, self._seed = planner_name(planner), 0
        self._grid = GridMap(np.zeros((2, 2), dtype=bool))
        self._goal = (0.0, 0.0)
        self._follower: _Follower | None = None
        self._actions: deque[Action] = deque()
        self._expected: Pose2 | None = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the goal and the map."""
        episode = episode_info.episode
        start, self._goal = episode.start_position, (episode.goal.x, episode.goal.y)
        grid = GridMap(np.zeros((2, 2), dtype=bool), origin_world=(start.x, start.y))
        if has_map(episode):
            grid = map_of_scene(Path(episode.scene_config_path), start)
        self._grid = grid.covering((start.x, start.y), self._goal)
        self._seed = episode_info.seed
        self._follower, self._expected = None, None
        self._actions.clear()

    def act(self, observation: Observation) -> Action:
        """Do the next of some turns and a step, or think of the next ones."""
        truth = observation[TRUTH]
        pose = Pose2(truth["position"].x, truth["position"].y, truth["yaw"])
        if self._expected is not None and _apart_m(pose, self._expected) > STEP_M / 2:
            self._block(pose)
        if not self._actions:
            if self._follower is None or self._follower.off_path_m(pose) > LOST_M:
                self._follower = self._plan(pose)
            self._actions.extend(self._follower.actions(pose) if self._follower else [Action.STOP])
        action = self._actions.popleft()
        self._expected = pose_after(action, pose)
        return action

    def _block(self, pose: Pose2) -> None:
        """Put what was bumped into on the map, and plan anew."""
        ahead = np.array([pose.x + AHEAD_M * math.cos(pose.yaw), pose.y + AHEAD_M * math.sin(pose.yaw)])
        rows, columns = self._grid.occupied.shape
        cells = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1) + 0.5
        centres = cells * self._grid.resolution_m + self._grid.origin_world
        blocked = np.linalg.norm(centres - ahead, axis=-1) < BLOCK_M
        self._grid = GridMap(
            self._grid.occupied | blocked,
            resolution_m=self._grid.resolution_m,
            origin_world=self._grid.origin_world,
            ends=self._grid.ends,
        )
        self._follower = None
        self._actions.clear()

    def _plan(self, pose: Pose2) -> _Follower | None:
        """Return who follows the path from here, or None if there is no path."""
        start, goal = (pose.x, pose.y), self._goal
        for _ in range(3):  # each end may have to be moved once
            try:
                request = PathRequest(
                    start=Motion(*start, pose.yaw),
                    goal_xy=goal,
                    planner=self._planner,
                    radius_m=RADIUS_M,
                    margin_m=MARGIN_M,
                    timeout_s=PLANNING_TIMEOUT_S,
                    seed=self._seed,
                )
                return _Follower(self._grid, compute_path(self._grid.field, request).points)
            except NavigationFailure as failure:
                ends = {Reason.START_OCCUPIED: start, Reason.GOAL_OCCUPIED: goal}
                end = ends.get(failure.reason)
                place = end and self._grid.place_beside(end, RADIUS_M + SPACING_M, reach_m=REACH_M)
                if place is None or place == end:
                    return None
                start, goal = (place, goal) if end is start else (start, place)
        return None


class _Layer(NamedTuple):
    """Poses after the same number of steps, and how they came about. Costs are in metres of path."""

    points: Array  # (N, 2)
    yaws: Array
    costs: Array
    misses_m: Array  # how far the goal is, along the path where that is long
    firsts: NDArray[np.int64]  # turns before the first step; left is positive


class _Follower:
    """Chooses the turns and the step that follow a path best."""

    def __init__(self, grid: GridMap, points: Array) -> None:
        self._grid = grid
        self._points = evenly_spaced(points, SPACING_M)
        along_m = distances_along(self._points)
        self._to_go_m = along_m[-1] - along_m
        self._nearest = 0

    def off_path_m(self, pose: Pose2) -> float:
        """Go on along the path to where the robot is, and return how far beside it that is."""
        ahead = self._points[self._nearest : self._nearest + IN_VIEW]
        apart_m = np.hypot(*(ahead - (pose.x, pose.y)).T)
        self._nearest += int(apart_m.argmin())
        return float(apart_m.min())

    def actions(self, pose: Pose2) -> list[Action]:
        """Return the turns and the step to do next, or a STOP."""
        here, zero = np.array([[pose.x, pose.y]]), np.zeros(1)
        layer = _Layer(
            here, np.array([pose.yaw]), zero, self._path_distances_m(here)[1], zero.astype(np.int64)
        )
        best_total, best_turns = _cost_of_stopping(layer)[0], None
        for number in range(AHEAD):
            layer = self._after_step(layer, ANY_TURN if number == 0 else FEW_TURNS)
            if not len(layer.costs):
                break
            going_on = layer.costs + layer.misses_m + (0 if number == AHEAD - 1 else DEAD_END_COST_M)
            totals = np.minimum(_cost_of_stopping(layer), going_on)
            best = int(totals.argmin())
            if totals[best] < best_total:
                best_total, best_turns = totals[best], int(layer.firsts[best])
        if best_turns is None:
            return [Action.STOP]
        turn = Action.LEFT if best_turns > 0 else Action.RIGHT
        return [turn] * abs(best_turns) + [Action.FORWARD]

    def _after_step(self, layer: _Layer, turns: NDArray[np.int64]) -> _Layer:
        """Turn all poses by several angles, go forward, and keep the best of what is allowed."""
        parents = np.repeat(np.arange(len(layer.costs)), len(turns))
        turned = np.tile(turns, len(layer.costs))
        yaws = layer.yaws[parents] + TURN_RAD * turned
        moves = STEP_M * np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
        points = layer.points[parents] + moves
        probes = layer.points[parents][:, None] + PROBES[:, None] * moves[:, None]
        clearances_m = self._grid.clearances(probes).min(axis=1)
        off_m, misses_m = self._path_distances_m(points)
        costs = layer.costs[parents] + STEP_M + TURN_COST_M * np.abs(turned) + off_m**2 / OFF_PATH_M
        costs += CLOSENESS_COST * np.maximum(RADIUS_M + MARGIN_M - clearances_m, 0)
        costs[clearances_m <= RADIUS_M] = np.inf
        firsts = turned if len(layer.costs) == 1 else layer.firsts[parents]
        order = np.argsort(costs + misses_m, kind="stable")
        kept = order[: min(BEAM, int(np.isfinite(costs).sum()))]
        return _Layer(points[kept], yaws[kept], costs[kept], misses_m[kept], firsts[kept])

    def _path_distances_m(self, points: Array) -> tuple[Array, Array]:
        """Return how far (N, 2) points are from the path, and from its end along the path."""
        ahead = slice(self._nearest, self._nearest + IN_VIEW)
        (x, y), (path_x, path_y) = points.T[..., None], self._points[ahead].T
        apart_m = np.hypot(x - path_x, y - path_y)
        nearest = apart_m.argmin(axis=1)
        off_m: Array = apart_m[np.arange(len(points)), nearest]
        return off_m, np.hypot(off_m, self._to_go_m[ahead][nearest])


def _cost_of_stopping(layer: _Layer) -> Array:
    return layer.costs + MISS_COST * np.maximum(layer.misses_m - NEAR_M, 0)


def _apart_m(a: Pose2, b: Pose2) -> float:
    return math.hypot(a.x - b.x, a.y - b.y)
