"""What the environments have in common whose robot is behind ROS 2."""

from __future__ import annotations

from typing import Any

from proctor.core.errors import SimulationError
from proctor.core.interfaces import Env
from proctor.core.types import Info, Observation, Vector3
from proctor.envs.episode_state import EpisodeState, checked_action, running, started
from proctor.ros2.exam_robot import ExamRobot


class RosRobotEnv(Env):
    """A robot that is driven and sensed over ROS 2.

    Args:
        end_on_collision: Whether the first collision ends the episode.
    """

    tasks = ("vln",)

    def __init__(self, *, end_on_collision: bool = False) -> None:
        self._end_on_collision = end_on_collision
        self._state: EpisodeState | None = None
        self._robot: ExamRobot | None = None

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action by driving the robot.

        Raises:
            SimulationError: There was no reset, the episode is over, or the robot is silent.
            ValueError: The action is not an integer from 0 to 3.
        """
        state, action = running(self._state), checked_action(action)
        if self._robot is None:
            raise SimulationError("step() was called after close()")
        collided = self._robot.act(action)
        position, yaw = self._pose(self._robot)
        state.record(action, position, yaw, collision=collided)
        state.done = state.done or (self._end_on_collision and collided)
        return self._robot.observe(), 0.0, state.done, state.info()

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def _pose(self, robot: ExamRobot) -> tuple[Vector3, float]:
        return robot.pose()
