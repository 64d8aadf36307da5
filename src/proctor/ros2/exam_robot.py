"""A robot on ROS 2 that takes exams: it is put at a start, acts, and tells what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rclpy.logging import LoggingSeverity
from rclpy.qos import QoSProfile

from proctor.core.errors import SimulationError
from proctor.core.geometry import pose_into, pose_out_of
from proctor.core.types import Action, Observation, Pose2, Vector3
from proctor.ros2.action_executor import VLNActionExecutor
from proctor.ros2.action_executor_wrapper import ActionExecutorWrapper
from proctor.ros2.convert import pose2
from proctor.ros2.sensors import SensorSubscriber
from proctor.ros2.simulation_client import SimulationClient

SERVICES_S = 5.0
"""So long, at most, is looked for the services of a simulator."""


class ExamRobot:
    """A robot whose simulator, if it has one, is told where it starts and asked where it is.

    Without the services of `simulation_interfaces` it is a real robot, or as good as one: a person puts it
    at the start, and its odometry tells where it is.

    Args:
        executor: Moves it. Who made it closes it, and with it all that listens here.
        name: Of the robot in the simulator.
        namespace: Of its topics.
        uri: What the simulator is to spawn.
        prefix: Of the names of the simulator's services.
        sensors: What an observation holds: out of rgb, depth, scan and odom.
        depth_far_m: The far clip distance of the depth camera, see `images.depth_of`.
        qos: How to listen to the sensors; as they usually publish, if it is None.
        timeout_s: How long to wait for a sensor or a service, in real time.

    Attributes:
        actions: Does the four actions.
        sensors: Hears what observations are made of.
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
        self._origin = Pose2(0.0, 0.0, 0.0)
        """What odometry said at the start."""
        self._world: Path | str | None = None
        self._has_simulator = False
        """In this episode. A simulator that goes away in it is an error, and not a robot without one."""

    def is_simulated(self) -> bool:
        """Tell whether there is a simulator that can be told where the robot is to stand."""
        return self._simulation.is_available(min(SERVICES_S, self._timeout_s))

    def load_world(self, scene: Path | str) -> None:
        """Have a scene loaded, if the simulator can; else it is taken to be in it.

        Args:
            scene: A file, or the address of what only the simulator knows.

        Raises:
            SimulationError: The simulator refuses.
        """
        if scene != self._world and self.is_simulated() and "WORLD_LOADING" in self._simulation.features():
            self._simulation.load_world(str(scene.resolve() if isinstance(scene, Path) else scene))
        self._world = scene

    def begin(self, start: Pose2, floor_z: float, *, is_placed: bool = False) -> None:
        """Put the robot at the start of an episode, and wait until it can sense and move.

        Args:
            start: Where it begins, in the world.
            floor_z: Height of the floor there.
            is_placed: Whether somebody has put it there already, so that no simulator is looked for.

        Raises:
            SimulationError: The simulator refuses, or a topic of the robot is silent or has two sources.
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

    def act(self, action: Action) -> bool:
        """Do an action and return whether the robot collided."""
        self.actions.execute_action(int(action))
        self.sensors.mark_action(self._executor.robot_clock.now_s)
        return action is not Action.STOP and self._executor.collision_detected

    def observe(self) -> Observation:
        """Return what the robot senses since its last action.

        Raises:
            SimulationError: A topic is silent, and why.
        """
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
