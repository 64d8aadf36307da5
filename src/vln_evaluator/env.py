"""Environments and the episode they take."""

from proctor.core.interfaces import Env
from proctor.envs.mock import MockEnv
from proctor.envs.o3de import O3DE_SIMULATOR_CONFIG, O3DEEnv
from proctor.episodes.vln import Episode

__all__ = ["O3DE_SIMULATOR_CONFIG", "Env", "Episode", "MockEnv", "O3DEEnv"]
