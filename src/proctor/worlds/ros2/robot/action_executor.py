"""The node that executes the four actions on a robot behind ROS 2, and its wrapper by action number."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from proctor.core.errors import SimulationError, UserError
from proctor.core.types import Action, Scan, checked_action
from proctor.robots.landing import WITH_LATENCY
from proctor.robots.motion import ActionExecutor, Motion, clearance_ahead_m
from proctor.worlds.ros2.node.convert import yaw_of
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.topic import RobotClock
from proctor.worlds.ros2.robot.ros2_robot import Ros2Robot


def _above_0(name: str, value: float) -> float:
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise UserError(f"{name}: expected a number above 0, found {value!r}")
    return float(value)


def _of_motion(name: str, read: Callable[[Any], Any], description: str) -> property:
    """Return a property that is an attribute of the node's `ActionExecutor`; `read` checks a new value."""
    return property(
        lambda self: getattr(self._motion, name),
        lambda self, value: setattr(self._motion, name, read(value)),
        doc=description,
    )


class VLNActionExecutor(RosNode):
    """Moves a robot by 25 cm or 15°, by its odometry, and stops it before it hits something.

    It listens to `odom` and `scan`, publishes `cmd_vel`, and uses the robot's time: that of `/clock`, or else
    of the messages' stamps. Moves return when the robot stands; one is made at a time, by any thread. A robot
    whose `scan` nobody publishes drives without collision detection, and the log says so once. Forward moves
    end when the scan shows something nearer than `collision_threshold` metres. The robot may be silent for
    `silence_timeout_s` of real time. Speeds are in m/s and rad/s. `ros_args` is what follows `--ros-args`,
    such as `-r`, `scan:=/lidar`. A subclass adds an action: it sets `is_running` to True and
    `collision_detected` to False, publishes on `cmd_pub`, and ends with `stop_robot`. Meanwhile a range ahead
    below the threshold sets `collision_detected` and counts, once.
    """

    LINEAR_SPEED = _of_motion(
        "linear_speed_mps", partial(_above_0, "LINEAR_SPEED"), "Speed of forward moves, in m/s."
    )
    ANGULAR_SPEED = _of_motion(
        "angular_speed_radps", partial(_above_0, "ANGULAR_SPEED"), "Speed of turns, in rad/s."
    )
    COLLISION_THRESHOLD = _of_motion(
        "collision_threshold_m",
        partial(_above_0, "COLLISION_THRESHOLD"),
        "Forward moves end when the scan shows something nearer than this, in metres.",
    )
    collision_detected = _of_motion(
        "collision_detected",
        bool,
        "Whether the last move ended, or this one is about to end, with a collision.",
    )
    collision_count = _of_motion(
        "collision_count", int, "Collisions of all moves since the node was made, at most one each."
    )

    def __init__(
        self,
        node_name: str = "vln_action_executor",
        *,
        namespace: str = "",
        ros_args: Sequence[str] = (),
        linear_speed: float = 0.1,
        angular_speed: float = 0.3,
        collision_threshold: float = 0.2,
        silence_timeout_s: float = 5.0,
    ) -> None:
        speeds = {
            "linear_speed_mps": _above_0("linear_speed", linear_speed),
            "angular_speed_radps": _above_0("angular_speed", angular_speed),
            "collision_threshold_m": _above_0("collision_threshold", collision_threshold),
        }
        _above_0("silence_timeout_s", silence_timeout_s)
        super().__init__(node_name, namespace=namespace, ros_args=ros_args)
        self.robot_clock = RobotClock(self)
        self._robot = Ros2Robot(
            self, self.robot_clock, silence_timeout_s=silence_timeout_s, on_scan=self._watch_scan
        )
        self._motion = ActionExecutor(self._robot, landing=WITH_LATENCY, **speeds)
        self._one_at_a_time = threading.Lock()
        self._runs_other_action = False  # whether a subclass makes a move of its own
        self.collision_log = self.get_logger().get_child("collisions")
        """Logs each collision of the moves here."""
        self.cmd_pub = self._robot.cmd_vel.publisher

    @property
    def curr_pose(self) -> Any:
        """The newest pose of the odometry, a geometry_msgs/Pose, or None before there is one."""
        heard = self._robot.odom.value
        return None if heard is None else heard.message

    @property
    def is_running(self) -> bool:
        """Whether a move is being made. An action of a subclass sets it; `stop_robot` sets it to False."""
        return self._motion.is_running

    @is_running.setter
    def is_running(self, is_running: bool) -> None:
        self._motion.is_running = self._runs_other_action = bool(is_running)

    def execute(self, action: Action) -> Motion:
        """Do one of the four actions. SimulationError if the robot is silent or disobeys."""
        if action is Action.STOP:
            self.stop_robot()
            return Motion(collided=False, duration_s=0.0)
        with self._moving():
            return self._motion.execute(action)

    def execute_forward_25cm(self) -> Motion:
        """Drive 25 cm ahead, or up to an obstacle. SimulationError if the robot is silent or disobeys."""
        return self.execute(Action.FORWARD)

    def execute_rotate_15deg(self, direction: Literal["left", "right"] | str = "left") -> Motion:
        """Turn on the spot by 15°. SimulationError if the robot is silent or disobeys."""
        action = {"left": Action.LEFT, "right": Action.RIGHT}.get(direction)
        if action is None:
            raise UserError(f"expected the direction 'left' or 'right', found {direction!r}")
        return self.execute(action)

    def move_timed(self, linear_x: float = 0.0, angular_z: float = 0.0, duration_sec: float = 1.0) -> Motion:
        """Drive at this velocity (m/s, rad/s) for this much of the robot's time, without odometry."""
        if not (all(map(math.isfinite, (linear_x, angular_z, duration_sec))) and duration_sec >= 0):
            raise UserError(
                "expected finite velocities and a duration of at least 0 s, found"
                f" {linear_x!r}, {angular_z!r}, {duration_sec!r}"
            )
        with self._moving():
            return self._motion.move_timed(linear_x, angular_z, duration_sec)

    def stop_robot(self) -> None:
        """Stop at once; a move that another thread makes ends where the robot is."""
        self._runs_other_action = False
        self._motion.halt()

    def get_yaw(self) -> float:
        """Return the heading in the odometry's frame, 0 before there is one."""
        pose = self.curr_pose
        return 0.0 if pose is None else yaw_of(pose.orientation)

    def wait_for_odom(self, timeout_sec: float = 5.0, newer_than_s: float = 0.0) -> bool:
        """Wait for odometry of the robot's time `newer_than_s` or later; return whether there is any."""

        def is_there() -> bool:
            newest = self._robot.odom.newest
            return newest.value is not None and newest.stamp_s >= newer_than_s

        return self.wait_until(is_there, timeout_sec)

    def forget(self) -> None:
        """Drop what was heard of the robot: it is another one now, or elsewhere."""
        self._robot.forget()

    def odom_callback(self, msg: Any) -> None:
        """Take in a nav_msgs/Odometry as if the robot had sent it."""
        self._robot.odom.hear(msg)

    def scan_callback(self, msg: Any) -> None:
        """Take in a sensor_msgs/LaserScan as if the robot had sent it."""
        self._robot.scans.hear(msg)

    def doubt(self) -> str | None:
        """Return what is wrong if several nodes tell where the robot is, which would go unnoticed."""
        odom = self._robot.odom
        sources = odom.sources()
        if len(sources) < 2:
            return None
        return (
            f"{odom.name} is published by {' and '.join(sources)}: which is the robot? Another ROS_DOMAIN_ID "
            "or namespace keeps them apart"
        )

    def diagnosis(self) -> str:
        """Return why there is no odometry, as far as the graph of nodes tells."""
        return self._robot.odom.diagnosis()

    def close(self) -> None:
        """Stop the robot and leave the graph; a move that another thread makes raises SimulationError."""
        self._robot.close()
        super().close()

    @contextmanager
    def _moving(self) -> Iterator[None]:
        if not self._one_at_a_time.acquire(blocking=False):
            raise SimulationError("the robot is moving: wait for the end of its move, or stop it")
        try:
            self._runs_other_action = False
            self._robot.catch_up()
            before = self._motion.collision_count
            yield
            if self._motion.collision_count > before:
                self.collision_log.warning(f"stopped by a collision, the {self.collision_count}. in all")
        finally:
            self._one_at_a_time.release()

    def _watch_scan(self, scan: Scan) -> None:
        """Note a collision in an action of a subclass; the moves here look at the scan themselves."""
        is_unnoted = self._runs_other_action and not self._motion.collision_detected
        if is_unnoted and clearance_ahead_m(scan) < self._motion.collision_threshold_m:
            self._motion.note_collision()


class ActionExecutorWrapper:
    """Executes a policy's answers: 0 stop, 1 forward, 2 left, 3 right. Speeds are in m/s and rad/s."""

    def __init__(
        self,
        linear_speed: float = 0.1,
        angular_speed: float = 0.3,
        *,
        executor: VLNActionExecutor | None = None,
    ) -> None:
        self._is_owner = executor is None
        self.executor = executor or VLNActionExecutor(linear_speed=linear_speed, angular_speed=angular_speed)
        self.executor.LINEAR_SPEED, self.executor.ANGULAR_SPEED = linear_speed, angular_speed

    def execute_action(self, action: int) -> None:
        """Execute an action, and return when it is done."""
        try:
            checked = checked_action(action)
        except ValueError as error:
            raise UserError(str(error)) from None
        if checked is Action.FORWARD:
            self.forward_25cm()
        elif checked is Action.STOP:
            self.stop()
        else:
            self.rotate_15deg("left" if checked is Action.LEFT else "right")

    def forward_25cm(self) -> None:
        """Drive 25 cm ahead."""
        self.executor.execute_forward_25cm()

    def rotate_15deg(self, direction: str) -> None:
        """Turn by 15° to the `left` or `right`."""
        self.executor.execute_rotate_15deg(direction)

    def stop(self) -> None:
        """Stop the robot."""
        self.executor.stop_robot()

    def get_collision_count(self) -> int:
        """Return the collisions of all moves so far."""
        return int(self.executor.collision_count)

    def close(self) -> None:
        """Stop the robot, and close the executor if it was made here."""
        if self._is_owner:
            self.executor.close()
        else:
            self.executor.stop_robot()
