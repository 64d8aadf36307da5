"""The O3DE simulator and what it is made of."""

from proctor.envs.o3de import O3DEEnv
from proctor.envs.o3de_simulator import O3DESimulator
from proctor.exams.vln.episode import Episode
from proctor.o3de.agent_manager import O3DEAgentManager
from proctor.o3de.config import O3DE_SIMULATOR_CONFIG
from proctor.ros2.action_executor_wrapper import ActionExecutorWrapper
from proctor.ros2.sensors import SensorSubscriber

__all__ = [
    "O3DE_SIMULATOR_CONFIG",
    "ActionExecutorWrapper",
    "Episode",
    "O3DEAgentManager",
    "O3DEEnv",
    "O3DESimulator",
    "SensorSubscriber",
]
