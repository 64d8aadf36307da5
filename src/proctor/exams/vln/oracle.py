"""The policy that knows the map, the goal and where it is: the upper bound of the exam."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from proctor.core.geometry import pose_after, wrap_angle
from proctor.core.interfaces import TRUTH, DrivingEpisode, Policy
from proctor.core.types import STEP_M, Action, EpisodeInfo, Observation, Pose2
from proctor.exams.path_distance import scene_of
from proctor.maps.grid_map import GridMap
from proctor.navigation.action_planner import ActionPlanner

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
        self._actions: Iterator[Action] = iter(())
        self._expected: Pose2 | None = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the goal and the map."""
        episode = episode_info.episode
        self._planner = ActionPlanner(map_of_episode(episode), (episode.goal.x, episode.goal.y))
        self._expected = None

    def act(self, observation: Observation) -> Action:
        """Do the next action of the plan."""
        truth = observation[TRUTH]
        pose = Pose2(truth["position"].x, truth["position"].y, truth["yaw"])
        expected = self._expected or pose
        apart_m = math.hypot(pose.x - expected.x, pose.y - expected.y)
        turned_rad = abs(wrap_angle(pose.yaw - expected.yaw))
        if self._expected is None or apart_m > DRIFT_M or turned_rad > DRIFT_RAD:
            if apart_m > STEP_M / 2:
                self.block(pose, expected)
            self._actions, self._expected = iter(self.plan(pose)), pose
        action = next(self._actions, Action.STOP)
        self._expected = pose_after(action, self._expected)
        return action

    def plan(self, pose: Pose2) -> list[Action]:
        """Return the actions from here up to the STOP."""
        return self._planner.plan(pose)

    def block(self, pose: Pose2, expected: Pose2) -> None:
        """Note that the robot bumped into something: it is not where it should be."""
        del pose
        self._planner.block(expected.x, expected.y)


def map_of_episode(episode: DrivingEpisode) -> GridMap | None:
    """Return the map that shows start and goal of an episode, None without a scene."""
    scene = scene_of(episode)
    if scene is None:
        return None
    start = episode.start_position
    return scene.map_at(start).covering((start.x, start.y), (episode.goal.x, episode.goal.y))
