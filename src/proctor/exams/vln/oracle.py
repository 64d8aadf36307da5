"""The policy that knows the map, the goal and where it is: the upper bound of the exam."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from proctor.core.geometry import pose_after, wrap_angle
from proctor.core.interfaces import TRUTH, Policy
from proctor.core.types import STEP_M, Action, EpisodeInfo, Observation, Pose2
from proctor.exams.path_distance import has_map
from proctor.navigation.action_planner import ActionPlanner
from proctor.scenes.scene_map import map_of_scene

DRIFT_M = 0.02
DRIFT_RAD = math.radians(3)
"""Further off than this, a plan is no longer followed: plans keep 2 cm more than the robot needs."""


class OraclePolicy(Policy):
    """Goes the shortest path with the four actions and keeps clear of everything.

    All actions are planned at once and carried out. They are planned anew from where the robot
    really is when that is not where it should be. Without a scene it goes straight to the goal.
    """

    privileged: ClassVar[bool] = True

    def __init__(self) -> None:
        self._planner = ActionPlanner(None, (0.0, 0.0))
        self._plan: Iterator[Action] = iter(())
        self._expected: Pose2 | None = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the goal and the map."""
        episode = episode_info.episode
        start_xy = (episode.start_position.x, episode.start_position.y)
        goal_xy = (episode.goal.x, episode.goal.y)
        grid = None
        if has_map(episode):
            scene = Path(episode.scene_config_path)
            grid = map_of_scene(scene, episode.start_position).covering(start_xy, goal_xy)
        self._planner = ActionPlanner(grid, goal_xy)
        self._expected = None

    def act(self, observation: Observation) -> Action:
        """Do the next action of the plan."""
        truth = observation[TRUTH]
        pose = Pose2(truth["position"].x, truth["position"].y, truth["yaw"])
        if self._expected is None or _has_drifted(pose, self._expected):
            if self._expected is not None and _apart_m(pose, self._expected) > STEP_M / 2:
                self._planner.block(self._expected.x, self._expected.y)
            self._plan, self._expected = iter(self._planner.plan(pose)), pose
        action = next(self._plan, Action.STOP)
        self._expected = pose_after(action, self._expected)
        return action


def _apart_m(a: Pose2, b: Pose2) -> float:
    return math.hypot(a.x - b.x, a.y - b.y)


def _has_drifted(pose: Pose2, expected: Pose2) -> bool:
    turned_rad = abs(wrap_angle(pose.yaw - expected.yaw))
    return _apart_m(pose, expected) > DRIFT_M or turned_rad > DRIFT_RAD
