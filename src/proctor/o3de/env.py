"""The production world: O3DE, reached over ROS 2 and the agent in its Editor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.o3de.simulator import O3DESimulator


class O3DEEnv(O3DESimulator):
    """An env on a running O3DE. Keys differ from `O3DE_SIMULATOR_CONFIG`, as a dict or one by one."""

    def __init__(self, simulator_config: Mapping[str, Any] | None = None, **keys: Any) -> None:
        super().__init__(config={**(simulator_config or {}), **keys})
        self.success_threshold_m = self.config.success_threshold

    @property
    def simulator(self) -> O3DESimulator:
        """This env as the simulator that it is."""
        return self
