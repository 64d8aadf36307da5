"""A world without walls, physics or pictures: exact motion on an endless floor, for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from proctor.core.geometry import pose_after, wrap_angle
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.types import STEP_M, TURN_RAD, Action, Info, Observation, Pose2, Vector3, checked_action
from proctor.worlds.episode_state import EpisodeState, running, started, velocities_of_actions

LINEAR_SPEED_MPS, ANGULAR_SPEED_RADPS = 0.1, 0.3
VELOCITIES = velocities_of_actions(LINEAR_SPEED_MPS, ANGULAR_SPEED_RADPS)
TURN_S = TURN_RAD / ANGULAR_SPEED_RADPS
DURATIONS_S = dict(zip(Action, (0.0, STEP_M / LINEAR_SPEED_MPS, TURN_S, TURN_S), strict=True))


class MockEnv(Env):
    """FORWARD moves by 25 cm and turns turn by 15°, exactly; nothing is ever in the way."""

    def __init__(self) -> None:
        self._state: EpisodeState | None = None
        self._last, self._time_s = Action.STOP, 0.0

    @classmethod
    def example_observation(cls, episode: Any, options: Mapping[str, Any]) -> Observation:
        """Return what every observation is."""
        return _observation()

    def reset(self, episode: DrivingEpisode) -> Observation:
        """Put the robot at the start."""
        self._state = EpisodeState(episode, episode.start_position, episode.start_yaw)
        self._last, self._time_s = Action.STOP, 0.0
        return _observation()

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action."""
        state, action = running(self._state), checked_action(action)
        pose = pose_after(action, Pose2(state.position.x, state.position.y, state.yaw))
        state.record(action, Vector3(pose.x, pose.y, state.position.z), pose.yaw, collision=False)
        self._last, self._time_s = action, self._time_s + DURATIONS_S[action]
        return _observation(), 0.0, state.done, state.info()

    def wait(self, duration_s: float, *, keep: bool) -> None:
        """Move on at the speed of the last action, or stand."""
        state, (linear_mps, angular_radps) = running(self._state), VELOCITIES[self._last]
        self._time_s += duration_s
        if keep:
            x = state.position.x + duration_s * linear_mps * math.cos(state.yaw)
            y = state.position.y + duration_s * linear_mps * math.sin(state.yaw)
            state.position = Vector3(x, y, state.position.z)
            state.yaw = wrap_angle(state.yaw + duration_s * angular_radps)

    def time_s(self) -> float:
        """Return the simulated seconds since `reset`, at the speeds of a real robot."""
        return self._time_s

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def close(self) -> None:
        """Forget the episode."""
        self._state = None


def _observation() -> Observation:
    return {"rgb": np.zeros((4, 4, 3), np.uint8), "depth": np.zeros((4, 4), np.uint16)}
