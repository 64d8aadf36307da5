"""The O3DE simulator by the name that scripts beside the engine use."""

from vln_evaluator.o3de_simulator import (
    O3DE_SIMULATOR_CONFIG,
    ActionExecutorWrapper,
    Episode,
    O3DEAgentManager,
    O3DEEnv,
    O3DESimulator,
    SensorSubscriber,
)

__all__ = [
    "O3DE_SIMULATOR_CONFIG",
    "ActionExecutorWrapper",
    "Episode",
    "O3DEAgentManager",
    "O3DEEnv",
    "O3DESimulator",
    "SensorSubscriber",
]
