"""A step of an episode whose robot is behind ROS 2, whichever simulator it is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proctor.core.errors import SimulationError
from proctor.core.types import Info, Observation, Vector3, checked_action
from proctor.worlds.episode_state import EpisodeState, running
from proctor.worlds.ros2.robot.exam_robot import ExamRobot


def step_robot(
    state: EpisodeState | None,
    robot: ExamRobot | None,
    action: Any,
    *,
    pose: Callable[[], tuple[Vector3, float]] | None = None,
    end_on_collision: bool = False,
) -> tuple[Observation, float, bool, Info]:
    """Do one action by driving the robot, and return what `Env.step` does.

    `pose` returns the position and heading in the world, where a simulator knows better than the robot.
    """
    state, action = running(state), checked_action(action)
    if robot is None:
        raise SimulationError("step() was called after close()")
    collided = robot.act(action)
    position, yaw = (pose or robot.pose)()
    state.record(action, position, yaw, collision=collided)
    state.done = state.done or (end_on_collision and collided)
    return robot.observe(), 0.0, state.done, state.info()
