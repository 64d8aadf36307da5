"""The O3DE simulator and what it is made of."""

from proctor.envs import o3de_simulator
from proctor.envs.o3de import O3DEEnv
from proctor.exams.vln.episode import Episode
from proctor.o3de.agent_manager import O3DEAgentManager
from proctor.o3de.config import O3DE_SIMULATOR_CONFIG
from proctor.ros2.action_executor import ActionExecutorWrapper
from proctor.ros2.sensors import SensorSubscriber


class O3DESimulator(o3de_simulator.O3DESimulator):
    """The robot of an O3DE project, with the episode that it takes at hand: `simulator.Episode(...)`."""

    Episode = Episode


__all__ = [
    "O3DE_SIMULATOR_CONFIG",
    "ActionExecutorWrapper",
    "Episode",
    "O3DEAgentManager",
    "O3DEEnv",
    "O3DESimulator",
    "SensorSubscriber",
]
