"""The policy that plans as the skill `navigate_to` does, and follows its path with the four actions.

The skill's controller commands velocities, which an exam of four actions does not take. So the policy shares
with the skill what comes before that: the planner by its name, and the smoothing. The actions along the path
come from the planner of actions, which sees no more of the map than a corridor around the path.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from proctor.core.geometry import evenly_spaced
from proctor.core.types import Action, Array, EpisodeInfo, Pose2
from proctor.exams.vln.oracle import OraclePolicy, map_of_episode
from proctor.maps.failure import NavigationFailure, PluginFailure, Reason
from proctor.maps.grid_map import GridMap
from proctor.navigation.action_planner import ActionPlanner
from proctor.navigation.path import RobotMotion
from proctor.navigation.planner import planner_name
from proctor.navigation.process.plan import PlanRequest, plan

RADIUS_M = 0.22  # every move keeps this: the robot's radius, and what its laser wants to see ahead
MARGIN_M = 0.08  # paths keep more, for the moves lead beside them
CORRIDOR_M = 0.5  # from the path to where its corridor ends, for the robot with all that it keeps clear
AHEAD_M, BLOCK_M = 0.45, 0.1
"""Where what was bumped into is put on the map, and its radius."""
PLANNING_TIMEOUT_S = 120.0
"""Nothing moves while the policy plans, and at the first plan code may have to be compiled."""
REACH_M = 2.0  # a goal inside of an object is exchanged for the nearest place that is no further away


class NavigateToPolicy(OraclePolicy):
    """Plans a smooth path and follows it with steps of 0.25 m and turns of 15°.

    Another path is planned when the robot bumps into something or is not where it should be. `planner` is a
    name such as `grid` or `rrt_star`.
    """

    def __init__(self, planner: str = "grid") -> None:
        super().__init__()
        self._path_planner, self._seed = planner_name(planner), 0
        self._grid = GridMap(np.zeros((2, 2), dtype=bool))
        self._goal = (0.0, 0.0)

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the goal and the map."""
        episode = episode_info.episode
        start = (episode.start_position.x, episode.start_position.y)
        self._goal = (episode.goal.x, episode.goal.y)
        empty = GridMap(np.zeros((2, 2), dtype=bool), origin_world=start)
        self._grid = map_of_episode(episode) or empty.covering(start, self._goal)
        self._seed = episode_info.seed
        self._expected = None

    def block(self, pose: Pose2, expected: Pose2) -> None:
        """Put what was bumped into on the map."""
        del expected
        ahead = (pose.x + AHEAD_M * math.cos(pose.yaw), pose.y + AHEAD_M * math.sin(pose.yaw))
        self._grid = _closed(self._grid, _distances_m(self._grid, np.array([ahead])) < BLOCK_M)

    def plan(self, pose: Pose2) -> list[Action]:
        """Return the actions along the path from here, none if there is no path."""
        start, goal = (pose.x, pose.y), self._goal
        for _ in range(3):  # each end may have to be moved once
            try:
                request = PlanRequest(
                    start=RobotMotion(*start, pose.yaw),
                    goal_xy=goal,
                    planner=self._path_planner,
                    radius_m=RADIUS_M,
                    margin_m=MARGIN_M,
                    timing=None,
                    timeout_s=PLANNING_TIMEOUT_S,
                    seed=self._seed,
                )
                path = plan(request, self._grid.field).found_path().points
                path = evenly_spaced(np.concatenate([[(pose.x, pose.y)], path]), self._grid.resolution_m)
                corridor = _closed(self._grid, _distances_m(self._grid, path) > CORRIDOR_M)
                return ActionPlanner(corridor, goal).plan(pose)
            except PluginFailure:
                raise
            except NavigationFailure as failure:
                ends = {Reason.START_OCCUPIED: start, Reason.GOAL_OCCUPIED: goal}
                end = ends.get(failure.reason)
                place = end and self._grid.place_beside(end, RADIUS_M + 0.05, reach_m=REACH_M)
                if place is None or place == end:
                    return []
                start, goal = (place, goal) if end is start else (start, place)
        return []


def _distances_m(grid: GridMap, points: Array) -> Array:
    """Return for each cell how far it is from the nearest of the cells that (N, 2) points are in."""
    rows, columns = grid.occupied.shape
    cells = ((points - grid.origin_world) // grid.resolution_m).astype(int)
    inside = ((cells >= 0) & (cells < (columns, rows))).all(axis=1)
    apart = np.ones(grid.occupied.shape, dtype=bool)
    apart[cells[inside, 1], cells[inside, 0]] = False
    if apart.all():
        return np.full(apart.shape, np.inf)
    distances_m: Array = distance_transform_edt(apart) * grid.resolution_m
    return distances_m


def _closed(grid: GridMap, cells: NDArray[np.bool_]) -> GridMap:
    """Return a map on which some more cells are occupied."""
    return GridMap(
        grid.occupied | cells,
        resolution_m=grid.resolution_m,
        origin_world=grid.origin_world,
        ends=grid.ends,
    )
