"""The exam on a robot that is on ROS 2: a simulated one that is started for it, or one that is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec

from proctor.core.errors import SimulationError, UserError
from proctor.core.interfaces import DrivingEpisode, Env
from proctor.core.options import checked_options, takes_options
from proctor.core.types import Info, Observation, Pose2, checked_action
from proctor.robots.spec import load_robot, robot_identity
from proctor.scenes.scene import Scene
from proctor.worlds.episode_state import EpisodeState, running, started
from proctor.worlds.mujoco.wheeled.env import DrivingOptions, VLNEnv
from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
from proctor.worlds.ros2.host.sim_host_process import Domain, SimHostProcess
from proctor.worlds.ros2.host.simulation_checks import ROBOT_URI
from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor
from proctor.worlds.ros2.robot.exam_robot import ExamRobot


class _Options(DrivingOptions, kw_only=True):
    attach: bool = False
    """Use a robot that is there, in this shell's ROS domain, and do not simulate one in another domain."""
    namespace: str = ""
    """Of the robot's topics."""
    robot_name: str = "robot"
    """What the simulator calls the robot."""
    robot_uri: str = ROBOT_URI
    """What the simulator is to spawn; by default the robot of a `sim-host`."""
    services_prefix: str = ""
    """Comes before the names of the simulator's services, such as `/gzserver`."""
    real_time_factor: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None
    """How fast the simulated robot's time goes, 4 if missing. Nothing depends on it."""
    depth_far_m: Annotated[float, msgspec.Meta(gt=0, le=1e4)] | None = None
    """What the robot's depth camera tells where there is nothing, its far clip distance; it becomes 0. Where
    that is 0, infinite or above 65.5 m, as in O3DE, it is known."""
    collision_threshold_m: Annotated[float, msgspec.Meta(gt=0, le=10)] | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=600)] = 20.0
    """How long to wait for a topic or a service, in real time."""


class Ros2Env(Env):
    """A robot behind the topics rgb, depth, scan, odom and cmd_vel.

    Positions are those of the simulator, asked for through `simulation_interfaces`; a robot that has none
    is put at the start by a person, does one episode, and is where its odometry says.
    """

    needs_scene = True

    @takes_options(_Options)
    def __init__(self, **given: Any) -> None:
        self._options = options = checked_options(_Options, given)
        self._spec = load_robot(options.robot)
        # How a robot is simulated: one that is there already is what it is.
        of_robot = ("real_time_factor", "width", "height")
        unwanted = [name for name in of_robot if getattr(options, name) is not None]
        if options.attach and unwanted:
            raise UserError(f"{', '.join(unwanted)}: the robot that is attached to has its own; leave it out")
        self._state: EpisodeState | None = None
        self._robot: ExamRobot | None = None
        self._resources = ExitStack()
        self._host: SimHostProcess | None = None

    @classmethod
    def identity(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec of the robot, unless it is the standard one."""
        return robot_identity(options)

    def check(self, episodes: Sequence[DrivingEpisode]) -> None:
        """Build every scene and put the robot at every start, in the embedded world.

        A robot that nobody can put at their starts does only one episode.
        """
        VLNEnv(sensors=[], robot=self._options.robot).check(episodes)
        if self._options.attach and len(episodes) > 1 and not self._connected().is_simulated():
            raise UserError(
                "the robot has no services of simulation_interfaces that could put it at the start of an "
                "episode: put it there yourself, and run one episode at a time with --episode ID"
            )

    def reset(self, episode: DrivingEpisode) -> Observation:
        """Put the robot at the episode's start."""
        self._state = None
        if not episode.scene_config_path:
            raise UserError(f"episode '{episode.episode_id}': it needs a scene; set scene_config_path")
        scene_path, start = Path(episode.scene_config_path), episode.start_position
        robot = self._connected()
        robot.load_world(scene_path)
        robot.begin(Pose2(start.x, start.y, episode.start_yaw), Scene.load(scene_path).floor_near(start))
        position, yaw = robot.pose()
        self._state = EpisodeState(episode, position, yaw)
        return robot.observe()

    def step(self, action: Any) -> tuple[Observation, float, bool, Info]:
        """Do one action, an integer from 0 to 3, by driving the robot."""
        state, action = running(self._state), checked_action(action)
        if self._robot is None:
            raise SimulationError("step() was called after close()")
        return self._robot.step(state, action, end_on_collision=self._options.end_on_collision)

    def info(self) -> Info:
        """Return the ground truth of the present state."""
        return started(self._state).info()

    def close(self) -> None:
        """Stop the robot, and what was started for it."""
        self._state = self._robot = self._host = None
        self._resources.close()

    def _connected(self) -> ExamRobot:
        """Return the robot; starting one takes seconds, so only when it is needed."""
        if self._host is not None and not self._host.is_running:
            self.close()  # it has died, and the next episode is to have another one
        if self._robot is None:
            try:
                self._robot = self._start()
            except BaseException:
                self.close()
                raise
        return self._robot

    def _start(self) -> ExamRobot:
        if self._options.attach:
            return self._reached()
        domain = Domain()
        self._resources.callback(domain.close)
        with domain.entered():
            self._host = self._started()
            self._resources.callback(self._host.close)
            return self._reached()

    def _started(self) -> SimHostProcess:
        options = self._options
        return SimHostProcess(
            SimHostOptions(
                robot=self._spec.with_camera(width=options.width, height=options.height),
                real_time_factor=options.real_time_factor or 4.0,
                camera_hz=5 if options.has_camera else 0,  # one picture is looked at per action
                scan_hz=30,
            )
        )

    def _reached(self) -> ExamRobot:
        options, spec = self._options, self._spec
        executor = VLNActionExecutor(
            namespace=options.namespace,
            linear_speed=options.linear_speed_mps or spec.action_speed_mps,
            angular_speed=options.angular_speed_radps or spec.action_speed_radps,
            collision_threshold=options.collision_threshold_m or spec.collision_threshold_m,
            silence_timeout_s=options.timeout_s,
        )
        self._resources.callback(executor.close)
        return ExamRobot(
            executor,
            name=options.robot_name,
            namespace=options.namespace,
            uri=options.robot_uri,
            prefix=options.services_prefix,
            sensors=options.sensors,
            depth_far_m=options.depth_far_m,
            timeout_s=options.timeout_s,
        )
