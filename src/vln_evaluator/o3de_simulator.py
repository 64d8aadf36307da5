"""The O3DE simulator and what it is made of."""

from proctor.exams.vln.episode import Episode
from proctor.o3de import simulator as o3de_simulator
from proctor.o3de.agent_manager import O3DEAgentManager
from proctor.o3de.config import O3DE_SIMULATOR_CONFIG
from proctor.o3de.simulator import O3DEEnv
from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper
from proctor.worlds.ros2.robot.sensors import SensorSubscriber


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
