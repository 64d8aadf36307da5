"""The production world: O3DE, reached over ROS 2 and the agent in its Editor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.types import Info, Observation
from proctor.o3de.simulator import O3DESimulator


class O3DEEnv(Env):
    """An env on a running O3DE. Keys differ from `O3DE_SIMULATOR_CONFIG`, as a dict or one by one."""

    def __init__(self, simulator_config: Mapping[str, Any] | None = None, **keys: Any) -> None:
        self.simulator = O3DESimulator(config={**(simulator_config or {}), **keys})
        self.success_threshold_m = self.simulator.config.success_threshold

    def check(self, episodes: Sequence[DrivingEpisode]) -> list[str]:
        """See `O3DESimulator.check`."""
        return self.simulator.check(episodes)

    def reset(self, episode: DrivingEpisode) -> Observation:
        """See `O3DESimulator.reset`."""
        return self.simulator.reset(episode)

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """See `O3DESimulator.step`."""
        return self.simulator.step(action)

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return self.simulator.info()

    def close(self) -> None:
        """Stop the robot, and leave O3DE."""
        self.simulator.close()
