"""A world without walls, physics or pictures: exact motion on an endless floor, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from proctor.core.geometry import pose_after
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.types import Info, Observation, Pose2, Vector3, checked_action
from proctor.envs.episode_state import EpisodeState, running, started


class MockEnv(Env):
    """FORWARD moves by 25 cm and turns turn by 15°, exactly; nothing is ever in the way."""

    def __init__(self) -> None:
        self._state: EpisodeState | None = None

    def reset(self, episode: DrivingEpisode) -> Observation:
        """Put the robot at the start."""
        self._state = EpisodeState(episode, episode.start_position, episode.start_yaw)
        return _observation()

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action."""
        state, action = running(self._state), checked_action(action)
        pose = pose_after(action, Pose2(state.position.x, state.position.y, state.yaw))
        state.record(action, Vector3(pose.x, pose.y, state.position.z), pose.yaw, collision=False)
        return _observation(), 0.0, state.done, state.info()

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def close(self) -> None:
        """Forget the episode."""
        self._state = None


def _observation() -> Observation:
    return {"rgb": np.zeros((4, 4, 3), np.uint8), "depth": np.zeros((4, 4), np.uint16)}
