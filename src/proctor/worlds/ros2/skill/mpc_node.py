"""The model predictive controller as a node of its own, driven by the robot's clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rclpy.clock import Clock as RclpyClock
from rclpy.clock import ClockType
from rosgraph_msgs.msg import Clock

from proctor.core.errors import SimulationError
from proctor.core.types import Pose2
from proctor.navigation.path import Trajectory
from proctor.navigation.plugins import ControlReport
from proctor.navigation.tracking.mpc import PERIOD_S, MpcController
from proctor.robots.robot import Twist
from proctor.robots.spec import RobotSpec
from proctor.worlds.ros2.node.convert import seconds
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import BLIND_S, EARLY, WATCH_S, RobotClock
from proctor.worlds.ros2.robot.odometry import Transforms
from proctor.worlds.ros2.robot.ros2_robot import Ros2Robot, topic_in
from proctor.worlds.ros2.skill.path_messages import trajectory_of


class NodeMpcController(RosNode):
    """Keeps a robot on a reference trajectory, with a command at each tick of `/clock`, at most 60 a second.

    Without `/clock` the stamps of the odometry are the ticks. If the odometry falls silent or time goes back,
    the robot is stopped, the reference forgotten, and `problem` says why. For the arguments see `RosNode` and
    `Ros2Robot`.
    """

    def __init__(
        self,
        node_name: str = "mpc_controller",
        *,
        namespace: str = "",
        robot_namespace: str | None = None,
        robot: RobotSpec | None = None,
        odom_origin: Pose2 | None = None,
        ros_args: Sequence[str] = (),
    ) -> None:
        topic_in(robot_namespace, "odom")  # raises before there is a node to close
        super().__init__(node_name, namespace=namespace, ros_args=ros_args, starts=False)
        self._lock = threading.RLock()  # references come from any thread, ticks from the node's
        self.robot_clock = RobotClock(self, self._on_time)
        self.robot = Ros2Robot(
            self,
            self.robot_clock,
            spec=robot,
            robot_namespace=robot_namespace,
            transforms=Transforms(self),
            odom_origin=odom_origin,
            silence_timeout_s=None,
            has_scan=False,
        )
        self.mpc_controller = MpcController(self.robot, now_s=self.get_current_time, period_s=PERIOD_S)
        self.mpc_horizon = self.mpc_controller.mpc_horizon  # seconds that the controller looks ahead
        self.problem: str | None = None  # why the latest reference was given up, if it was
        self._ticked_s, self._jumps = 0.0, 0
        self._heard_s: float | None = None  # when time was last told, on this machine's clock
        self.create_timer(WATCH_S, self._watch, clock=RclpyClock(clock_type=ClockType.STEADY_TIME))
        self.start()

    @property
    def last(self) -> ControlReport | None:
        """What the controller did in its latest tick."""
        return self.mpc_controller.last

    def get_current_time(self) -> float:
        """Return the robot's time."""
        return self.robot_clock.now_s

    def set_reference_trajectory(
        self, trajectory: Trajectory | Iterable[Any], start_time_s: float | None = None
    ) -> None:
        """Follow a trajectory from now on, or as if it had begun at a time of the robot's clock.

        It is a trajectory, its plan_msgs/TrajectoryPoint messages, or `[(t, pos, vel), ...]`.
        """
        reference = trajectory_of(trajectory)
        with self._lock:
            self.problem = None
            self.mpc_controller.set_reference_trajectory(reference, start_time_s)

    def has_reference_trajectory(self) -> bool:
        """Tell whether there is one."""
        return self.mpc_controller.has_reference_trajectory()

    def get_trajectory_segment(self, t: float, horizon: float | None = None) -> Trajectory:
        """Return the reference from a time of the robot's clock on, its own times from 0."""
        with self._lock:
            return self.mpc_controller.get_trajectory_segment(t, horizon)

    def clock_callback(self, msg: Clock) -> None:
        """Do what `control_loop` does, at the time of a message; for those who hear the clock themselves."""
        self.robot_clock.hear(seconds(msg.clock))

    def control_loop(self) -> None:
        """Make one command and send it, unless there is no reference."""
        with self._lock:
            if not self.has_reference_trajectory():
                return
            problem = self.robot.problem()
            try:
                if problem is None:
                    self.mpc_controller.control_loop()
            except SimulationError as error:
                problem = str(error)
            if problem is not None:
                self._give_up(problem)

    def publish_cmd_vel(self, command: Twist | tuple[float, float, float]) -> None:
        """Send a velocity (vx, vy, omega) in the robot's frame, as the loop does itself."""
        self.robot.command(Twist(*command))

    def stop(self) -> None:
        """Command the robot to stand, and forget the reference."""
        with self._lock:
            self.mpc_controller.stop()

    def close(self) -> None:
        """Stop the robot if it is under way, and leave."""
        with self._lock:
            self.mpc_controller.stop()
            self.robot.close()
        super().close()

    def _on_time(self) -> None:
        now_s, self._heard_s = self.get_current_time(), time.monotonic()
        if self.robot_clock.jumps != self._jumps:
            self._jumps = self.robot_clock.jumps
            with self._lock:
                if self.has_reference_trajectory():
                    self._give_up(f"the robot's time went back from {self._ticked_s:.1f} s to {now_s:.1f} s")
                self.robot.forget()
                self._ticked_s = now_s
        elif now_s - self._ticked_s >= EARLY * PERIOD_S:
            self._ticked_s = now_s
            self.control_loop()

    def _watch(self) -> None:
        """Stop a robot that has fallen silent and whose messages were the ticks: it may still be moving."""
        if self._heard_s is None or self.robot_clock.is_simulated:
            return
        silent_s = time.monotonic() - self._heard_s
        with self._lock:
            if silent_s > BLIND_S and self.has_reference_trajectory():
                self._give_up(self.robot.odom.diagnosis())

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.stop()
