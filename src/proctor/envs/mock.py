"""A world without walls, physics or pictures: exact motion on an endless floor, for tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.core.geometry import wrap_angle
from proctor.core.interfaces import Env
from proctor.core.types import Action, Info, Observation, Vector3
from proctor.envs.episode_state import EpisodeState, checked_action, running, started
from proctor.episodes.vln import Episode

STEP_M = 0.25
TURN_RAD = {Action.LEFT: math.radians(15), Action.RIGHT: -math.radians(15)}
OBSERVATION: dict[str, NDArray[Any]] = {
    "rgb": np.zeros((4, 4, 3), np.uint8),
    "depth": np.zeros((4, 4), np.uint16),
}
for _array in OBSERVATION.values():
    _array.flags.writeable = False  # all observations share them


class MockEnv(Env):
    """FORWARD moves by 25 cm and turns turn by 15°, exactly; nothing is ever in the way."""

    def __init__(self) -> None:
        self._state: EpisodeState | None = None

    def reset(self, episode: Episode) -> Observation:
        """Put the robot at the start."""
        yaw = wrap_angle(math.radians(Vector3.of(episode.start_rotation).z))
        self._state = EpisodeState(episode, Vector3.of(episode.start_position), yaw)
        return dict(OBSERVATION)

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action."""
        state, action = running(self._state), checked_action(action)
        position, yaw = state.position, state.yaw
        if action is Action.FORWARD:
            x, y = position.x + STEP_M * math.cos(yaw), position.y + STEP_M * math.sin(yaw)
            position = Vector3(x, y, position.z)
        elif action in TURN_RAD:
            yaw = wrap_angle(yaw + TURN_RAD[action])
        state.record(action, position, yaw, collision=False)
        return dict(OBSERVATION), 0.0, state.done, state.info()

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def close(self) -> None:
        """Forget the episode."""
        self._state = None
