"""A robot on ROS 2 that takes exams: it is put at a start, acts, and tells what it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rclpy.logging import LoggingSeverity
from rclpy.qos import QoSProfile

from proctor.core.errors import SimulationError
from proctor.core.geometry import pose_into, pose_out_of
from proctor.core.types import Action, Info, Observation, Pose2, Vector3
from proctor.worlds.episode_state import EpisodeState
from proctor.worlds.ros2.node.convert import pose2
from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper, VLNActionExecutor
from proctor.worlds.ros2.robot.sensors import SensorSubscriber
from proctor.worlds.ros2.robot.simulation_client import SimulationClient

SERVICES_S = 5.0  # so long, at most, is looked for the services of a simulator


class ExamRobot:
    """A robot for episodes; if its simulator offers `simulation_interfaces`, that places and locates it.

    Without these services it counts as a real robot: a person puts it at the start, and its odometry says
    where it is. `name` is its name in the simulator, `uri` what the simulator spawns, `prefix` that of the
    services' names. `sensors` are some of rgb, depth, scan and odom; for `depth_far_m` see `depth_of`.
    `timeout_s` is real time. Whoever made the executor closes it, and with it all subscriptions.
    """

    def __init__(  # noqa: PLR0913  (all but one are named)
        self,
        executor: VLNActionExecutor,
        *,
        name: str,
        namespace: str,
        uri: str,
        prefix: str = "",
        sensors: Sequence[str],
        depth_far_m: float | None = None,
        qos: QoSProfile | None = None,
        timeout_s: float,
    ) -> None:
        self._executor = executor
        executor.collision_log.set_level(LoggingSeverity.ERROR)  # collisions are told in the results
        self.actions = ActionExecutorWrapper(executor.LINEAR_SPEED, executor.ANGULAR_SPEED, executor=executor)
        """For those who drive the robot by hand."""
        self._name, self._namespace, self._uri = name, namespace, uri
        self._wanted, self._timeout_s = tuple(sensors), timeout_s
        heard = [sensor for sensor in sensors if sensor != "odom"]
        self._awaits_sensors = bool(heard)
        """Odometry needs no wait: a move ends when it shows that the robot stands."""
        self.sensors = SensorSubscriber(
            qos, node=executor, clock=executor.robot_clock, sensors=heard or ["scan"], depth_far_m=depth_far_m
        )
        self._simulation = SimulationClient(
            executor, prefix=prefix, timeout_s=timeout_s, clock=executor.robot_clock
        )
        self._start = Pose2(0.0, 0.0, 0.0)
        self._floor_z = 0.0
        self._origin = Pose2(0.0, 0.0, 0.0)  # what odometry said at the start
        self._world: Path | str | None = None
        self._has_simulator = False
        """In this episode. A simulator that goes away in it is an error, and not a robot without one."""

    def is_simulated(self) -> bool:
        """Tell whether there is a simulator that can be told where the robot is to stand."""
        return self._simulation.is_available(min(SERVICES_S, self._timeout_s))

    def load_world(self, scene: Path | str) -> None:
        """Load a scene file, or a URI that only the simulator knows, if the simulator can load worlds."""
        if scene != self._world and self.is_simulated() and "WORLD_LOADING" in self._simulation.features():
            self._simulation.load_world(str(scene.resolve() if isinstance(scene, Path) else scene))
        self._world = scene

    def begin(self, start: Pose2, floor_z: float, *, is_placed: bool = False) -> None:
        """Put the robot at the start of an episode, and wait until it can sense and move.

        The start and the floor's height are in the world. With `is_placed` somebody has put the robot there
        already, and no simulator is looked for. SimulationError: the simulator refuses, or a topic is silent
        or has two sources.
        """
        self._start, self._floor_z = start, floor_z
        since_s = 0.0
        self._has_simulator = not is_placed and self.is_simulated()
        if self._has_simulator:
            since_s = self._simulation.respawn(
                self._name, start, floor_z, uri=self._uri, namespace=self._namespace
            )
        self._executor.forget()
        if not self._executor.wait_for_odom(self._timeout_s, since_s):
            raise SimulationError(f"the robot does not tell where it is: {self._executor.diagnosis()}")
        if (doubt := self._executor.doubt()) is not None:
            raise SimulationError(doubt)
        self._origin = pose2(self._executor.curr_pose)
        self.sensors.reset()
        self.sensors.mark_action(since_s)

    def step(
        self,
        state: EpisodeState,
        action: Action,
        *,
        pose: Callable[[], tuple[Vector3, float]] | None = None,
        end_on_collision: bool = False,
    ) -> tuple[Observation, float, bool, Info]:
        """Do an action, record it in the episode's state and return what `Env.step` does.

        `pose` returns the position and heading in the world, where a simulator knows better than the robot.
        """
        collided = self._executor.execute(action).collided
        self.sensors.mark_action(self._executor.robot_clock.now_s)
        position, yaw = (pose or self.pose)()
        state.record(action, position, yaw, collision=collided)
        state.done = state.done or (end_on_collision and collided)
        return self.observe(), 0.0, state.done, state.info()

    def observe(self) -> Observation:
        """Return what the robot has sensed since its last action, or say which topic is silent, and why."""
        observation = self.sensors.get_observation(self._timeout_s) if self._awaits_sensors else {}
        observation["odom"] = self._driven()
        return {name: observation[name] for name in self._wanted}

    def pose(self) -> tuple[Vector3, float]:
        """Return the position in the world and the heading: the truth where a simulator knows it."""
        if self._has_simulator:
            return self._simulation.position(self._name)
        at = pose_out_of(self._start, self._driven())
        return Vector3(at.x, at.y, self._floor_z), at.yaw

    def _driven(self) -> Pose2:
        return pose_into(self._origin, pose2(self._executor.curr_pose))
