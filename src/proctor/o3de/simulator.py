"""O3DE as a simulator: the Editor through its agent, the robot through ROS 2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from o3de_sim.constants import O3DE_AGENT_SOCKET_MODE, Mode
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface import math as o3de_math
from o3de_sim.o3de_api.interface.tools import EntityId
from o3de_sim.o3de_api.o3de_agent import O3DEAgent
from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import distance, yaw_of_quaternion
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.types import Info, Observation, Pose2, Vector3, checked_action
from proctor.o3de.agent_manager import O3DEAgentManager, level_of
from proctor.o3de.config import O3DEConfig, config_of
from proctor.scenes.scene import Scene
from proctor.worlds.episode_state import EpisodeState, running, started
from proctor.worlds.mujoco.wheeled.env import VLNEnv
from proctor.worlds.ros2.node.node import sensor_qos as qos_of
from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper, VLNActionExecutor
from proctor.worlds.ros2.robot.exam_robot import ExamRobot
from proctor.worlds.ros2.robot.sensors import SensorSubscriber

_open: dict[tuple[str, str, int], O3DESimulator] = {}
"""The simulators of this process that were not closed, by where their engines are."""


class O3DESimulator(Env):
    """The robot of an O3DE project.

    Levels are built and game mode is entered through the agent in the Editor. Where the project has the
    SimulationInterfaces Gem, each episode's robot is spawned by it, and it tells where the robot is; else the
    agent puts the robot's prefab into the level and tells it. A GameLauncher has no agent (`agent_manager` is
    None): it needs the Gem, and loads levels that were built before.

    An engine has one robot, so a new simulator closes an earlier one of this process on the same engine.

    Args:
        mode: How to reach the Editor: `socket`. The documents' other one, `peb`, is refused with what to use.
        sensor_qos: How to listen to the sensors: a QoSProfile, or a dict as in O3DE_SIMULATOR_CONFIG.
        config: Keys of O3DE_SIMULATOR_CONFIG that should differ from it; they win over the other two.
    """

    def __init__(
        self,
        mode: Mode = O3DE_AGENT_SOCKET_MODE,
        sensor_qos: Any = None,
        *,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        keys: dict[str, Any] = {"mode": mode, **(config or {})}
        is_profile = sensor_qos is not None and not isinstance(sensor_qos, Mapping)
        if isinstance(sensor_qos, Mapping):
            keys.setdefault("sensor_qos", dict(sensor_qos))
        self.config: O3DEConfig = config_of(keys)
        self._address = (self.config.mode, self.config.socket_host, self.config.socket_port)
        if (earlier := _open.get(self._address)) is not None:
            earlier.close()
        self._state: EpisodeState | None = None
        self._robot: ExamRobot | None = None
        self.agent_manager: O3DEAgentManager | None = None
        self._has_services: bool | None = None
        """Whether there is the SimulationInterfaces Gem; not known before the first game mode."""
        self._is_playing = False
        self.robot_entity_id: EntityId | None = None
        """None before the first episode. Spawned robots go by their names."""
        self._executor = VLNActionExecutor(
            namespace=self.config.namespace,
            linear_speed=self.config.linear_speed,
            angular_speed=self.config.angular_speed,
            collision_threshold=self.config.collision_threshold,
            silence_timeout_s=self.config.timeout_s,
        )
        try:
            self._robot = ExamRobot(
                self._executor,
                name=self.config.robot_name,
                namespace=self.config.namespace,
                uri=self.config.robot_uri,
                sensors=("rgb", "depth"),
                qos=sensor_qos if is_profile else qos_of(**msgspec.structs.asdict(self.config.sensor_qos)),
                depth_far_m=self.config.depth_far_m,
                timeout_s=self.config.timeout_s,
            )
            self.agent_manager = self._reached(self._robot)
        except BaseException:
            self._executor.close()
            raise
        _open[self._address] = self

    @property
    def current_step(self) -> int:
        """Actions done in this episode."""
        return 0 if self._state is None else self._state.step

    @property
    def goal_position(self) -> Vector3 | None:
        """Where this episode is to end."""
        return None if self._state is None else self._state.episode.goal

    @property
    def action_executor(self) -> ActionExecutorWrapper:
        """Does the four actions, without counting them as steps."""
        return self._robot_here().actions

    @property
    def sensor_sub(self) -> SensorSubscriber:
        """Hears what observations are made of."""
        return self._robot_here().sensors

    @property
    def o3de_agent(self) -> O3DEAgent | None:
        """The engine with all its tools. None if there is only a GameLauncher."""
        return None if self.agent_manager is None else self.agent_manager.agent

    def check(self, episodes: Sequence[DrivingEpisode]) -> list[str]:
        """Build every scene and put the robot at every start, in the embedded world.

        Return how many scenes will not look as they should, if any: the look is part of the exam.
        """
        for episode in episodes:
            _check_world(episode)
        VLNEnv(sensors=[]).check([episode for episode in episodes if episode.scene_config_path])
        manager = self.agent_manager
        if manager is None:
            return []
        scenes = sorted({Path(e.scene_config_path) for e in episodes if e.scene_config_path})
        with self._explained():
            exists = manager.agent.editor_tool.level_exists
            for level in sorted({e.scene_id for e in episodes if not e.scene_config_path}):
                if not exists(level):
                    raise UserError(_no_level(level))
            plain = [path.stem for path in scenes if manager.lacking_meshes(Scene.load(path))]
        if not plain:
            return []
        return [
            f"{len(plain)} of {len(scenes)} scenes are not seen as they should be, {plain[0]} for one: the "
            "O3DE project lacks meshes of them, or has not processed them yet (proctor export-o3de)"
        ]

    def reset(self, episode: DrivingEpisode) -> Observation:
        """Open the episode's level, building it if need be, and put the robot at the start."""
        self._state, robot = None, self._robot_here()
        _check_world(episode)
        start = episode.start_position
        floor_z = start.z
        if episode.scene_config_path:
            floor_z = Scene.load(Path(episode.scene_config_path)).floor_near(start)
        with self._explained():
            self._enter(episode)
            self._place(episode, floor_z)
            robot.begin(Pose2(start.x, start.y, episode.start_yaw), floor_z, is_placed=not self._has_services)
            self.robot_entity_id = self._found_robot()
            position, yaw = self._pose()
            observation = robot.observe()
        self._state = EpisodeState(episode, position, yaw)
        return observation

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action, an integer from 0 to 3, by driving the robot."""
        state, action = running(self._state), checked_action(action)
        with self._explained():
            return self._robot_here().step(state, action, pose=self._pose)

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def get_current_position(self) -> o3de_math.Vector3:
        """Return where the robot is, as the engine says."""
        if self._state is None:
            raise SimulationError("get_current_position() was called before reset()")
        with self._explained():
            position, _ = self._pose()
        return o3de_math.Vector3(position.x, position.y, position.z)

    def get_distance_to_goal(self) -> float:
        """Return the straight distance from the robot to the goal, in metres."""
        position = Vector3.of(self.get_current_position())
        goal = self.goal_position
        return math.nan if goal is None else distance(position, goal)

    def get_robot_entity_id(self) -> EntityId | None:
        """Return the robot's entity, None before the first episode."""
        return self.robot_entity_id

    def close(self) -> None:
        """Stop the robot, leave the game mode that was entered for it, and go."""
        self._state = self._robot = None
        if _open.get(self._address) is self:
            del _open[self._address]
        try:
            self._executor.close()
        finally:  # whatever becomes of the robot, the Editor is given back
            self._leave()

    def _leave(self) -> None:
        if self.agent_manager is None:
            return
        with suppress(O3DEError):  # an Editor that is gone is in no game mode either
            if self._is_playing:
                self.agent_manager.leave_game_mode()
        self._is_playing = False
        self.agent_manager.close()

    def _reached(self, robot: ExamRobot) -> O3DEAgentManager | None:
        """Connect to the Editor; without one there has to be a GameLauncher."""
        try:
            manager = O3DEAgentManager(self.config.mode, config=self.config)
            manager.agent.ping()
        except O3DEError as error:
            if error.code == "connection" and robot.is_simulated():
                self._has_services = True
                return None
            raise UserError(f"O3DE cannot be reached: {error}") from None
        return manager

    def _enter(self, episode: DrivingEpisode) -> None:
        """Open the level of an episode."""
        path = episode.scene_config_path
        if self.agent_manager is None:
            level = level_of(Scene.load(Path(path)).config) if path else episode.scene_id
            self._robot_here().load_world(f"levels/{level}/{level}.spawnable".lower())
        elif path:
            self.agent_manager.create_scene(path)
        elif not self.agent_manager.open_level(episode.scene_id):
            raise SimulationError(_no_level(episode.scene_id))

    def _place(self, episode: DrivingEpisode, floor_z: float) -> None:
        """Enter game mode, with the robot in the level if nobody can spawn it later."""
        manager = self.agent_manager
        if manager is None:
            return
        if self._has_services is None:
            manager.enter_game_mode()
            self._is_playing = True
            self._has_services = self._robot_here().is_simulated()
        if not self._has_services:
            start = episode.start_position
            manager.set_robot_position((start.x, start.y, floor_z), episode.start_rotation)
        manager.enter_game_mode()
        self._is_playing = True

    def _found_robot(self) -> EntityId:
        if self._has_services or self.agent_manager is None:
            return EntityId(self.config.robot_name)
        found = self.agent_manager.find_robot()
        if found is None:
            raise SimulationError(
                f"O3DE is in game mode, but no entity in it is called '{self.config.robot_name}'"
            )
        return found

    def _pose(self) -> tuple[Vector3, float]:
        """Return position and heading in the world, from the engine: odometry begins at the start."""
        manager = self.agent_manager
        if self._has_services or manager is None:
            return self._robot_here().pose()
        q = manager.get_robot_rotation()
        yaw = yaw_of_quaternion(np.array([q.w, q.x, q.y, q.z]))
        return Vector3.of(manager.get_robot_position()), yaw

    def _robot_here(self) -> ExamRobot:
        if self._robot is None:
            raise SimulationError("the simulator was closed: make a new one")
        return self._robot

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of a silent robot whether O3DE is in game mode at all, outside of which ROS 2 is not there."""
        try:
            yield
        except O3DEError as error:
            raise SimulationError(f"O3DE: {error}") from error
        except SimulationError as error:
            raise SimulationError(f"{error}{self._state_of_engine()}") from error

    def _state_of_engine(self) -> str:
        if self.agent_manager is None:
            return ""
        try:
            agent = self.agent_manager.agent
            level, is_playing = agent.editor_tool.current_level(), agent.simulation_tool.is_in_game_mode()
        except O3DEError as error:
            return f" (and O3DE's Editor: {error})"
        mode = "in game mode" if is_playing else "NOT in game mode, so ROS 2 is not there"
        return f" (O3DE's Editor has the level '{level}' and is {mode})"


class O3DEEnv(O3DESimulator):
    """An env on a running O3DE. Keys differ from `O3DE_SIMULATOR_CONFIG`, as a dict or one by one."""

    def __init__(self, simulator_config: Mapping[str, Any] | None = None, **keys: Any) -> None:
        super().__init__(config={**(simulator_config or {}), **keys})
        self.success_threshold_m = self.config.success_threshold

    @property
    def simulator(self) -> O3DESimulator:
        """This env as the simulator that it is."""
        return self


def _check_world(episode: DrivingEpisode) -> None:
    if not episode.scene_config_path and not episode.scene_id:
        raise UserError(
            f"episode '{episode.episode_id}': it needs a scene; set scene_config_path, or scene_id to a level"
        )


def _no_level(name: str) -> str:
    return (
        f"the O3DE project has no level '{name}', which an episode names by its scene_id; with "
        "scene_config_path it would be built"
    )
