"""A robot on ROS 2 topics as navigation drives it: odometry in, velocities out."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from nav_msgs.msg import Odometry
from rclpy.exceptions import NameValidationException
from rclpy.validate_namespace import validate_namespace

from proctor.control.held import Held
from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import pose_out_of
from proctor.core.types import Array, Pose2
from proctor.robots.dynamics import Dynamics
from proctor.ros2.node import RosNode
from proctor.ros2.odometry import STALE_S, Moved, Track, read_odometry
from proctor.ros2.robot_clock import RobotClock
from proctor.ros2.topic import Topic
from proctor.ros2.transforms import Transforms
from proctor.ros2.twist_topic import TwistTopic

MAP_FRAME = "map"


class RosBase:
    """The base of a robot that publishes `odom` and obeys `cmd_vel` (see `navigation.tracking.mobile_robot`).

    Its pose is that of the odometry in the map, carried on to the present by the velocity. Where the odometry
    begins in the map is what `/tf` tells of its frame, or `odom_origin` if nobody does. Velocities are sent
    by `publish` only. It counts as collided when it is told to move and does not.

    Args:
        node: Who listens and publishes.
        clock: The robot's; takes the stamps of the odometry if there is no `/clock`.
        robot_namespace: Where the topics are: "" for `/odom`, `robot_0` for `/robot_0/odom`, None for the
            node's own namespace.
        dynamics: What the base can do.
        map_frame: The frame in which poses are told.
        odom_origin: Where in the map the odometry begins, if no transform tells.
    """

    def __init__(
        self,
        node: RosNode,
        clock: RobotClock,
        *,
        robot_namespace: str | None = None,
        dynamics: Dynamics | None = None,
        map_frame: str = MAP_FRAME,
        odom_origin: Pose2 | None = None,
    ) -> None:
        self._clock, self._map_frame = clock, map_frame
        self._odom_origin = odom_origin or Pose2(0.0, 0.0, 0.0)
        self.dynamics = dynamics or Dynamics()
        """What the base can do; may be set."""
        self.target_linear_velocity, self.target_angular_velocity = np.zeros(3), np.zeros(3)
        self.frame = "base_link"
        """The name of the robot's own frame."""
        self._odom_frame, self._newest_s = "odom", 0.0
        self._track, self._held = Track(), Held()
        self.transforms = Transforms(node)
        self.odometry: Topic[Moved] = Topic(
            node,
            Odometry,
            topic_in(robot_namespace, "odom"),
            self._take,
            on_value=lambda: clock.hear_stamp(self._newest_s),
        )
        self._cmd_vel = TwistTopic(node, topic_in(robot_namespace, "cmd_vel"))

    def problem(self) -> str | None:
        """Return why the robot cannot be driven now, or None if it can."""
        if self.odometry.value is None or self._age_s() > STALE_S:
            return self.odometry.diagnosis()
        if self._age_s() < -STALE_S:  # its silence would not be noticed
            return (
                f"{self.odometry.name} is stamped {self._newest_s:.3f} s, but the robot's time is "
                f"{self._clock.now_s:.3f} s: does its driver go by /clock (use_sim_time)?"
            )
        return None if self._cmd_vel.is_heard() else self._cmd_vel.diagnosis()

    def pose(self) -> Pose2:
        """Return where the robot is in the map.

        Raises:
            SimulationError: There is no odometry, or none of the last moments.
        """
        pose = self.pose_at(self._clock.now_s)
        if pose is None or self._age_s() > STALE_S:
            raise SimulationError(f"the robot's pose is not known: {self.odometry.diagnosis()}")
        return pose

    def pose_at(self, time_s: float) -> Pose2 | None:
        """Return where the robot was in the map at a time of the last seconds, None if nobody knows."""
        pose_odom = self._track.at(time_s)
        if pose_odom is None:
            return None
        origin = self.transforms.pose_of(self._odom_frame, self._map_frame)
        return pose_out_of(self._odom_origin if origin is None else origin, pose_odom)

    def knew_pose_at(self, time_s: float) -> bool:
        """Tell whether the odometry was there at a time, so that the pose then is no guess."""
        return self._track.covers(time_s)

    def get_world_pose(self) -> tuple[Array, Array]:
        """Return the position [x, y, z] and the quaternion [qx, qy, qz, qw], in the map.

        Raises:
            SimulationError: There is no odometry, or none of the last moments.
        """
        pose = self.pose()
        half = pose.yaw / 2
        return np.array([pose.x, pose.y, 0.0]), np.array([0.0, 0.0, math.sin(half), math.cos(half)])

    def get_velocity(self) -> Array:
        """Return [vx, vy, omega] in the robot's frame; nothing if there is no odometry yet."""
        moved = self.odometry.value
        return np.zeros(3) if moved is None else moved.velocity.copy()

    def get_dynamics_constraints(self) -> dict[str, Any]:
        """Return the limits by name."""
        return msgspec.structs.asdict(self.dynamics)

    def is_collision_detected(self) -> bool:
        """Tell whether the robot is held by something: it is told to move and does not."""
        return self._held.is_held

    def target(self) -> Array:
        """Return [vx, vy, omega], what the base is to do."""
        return np.array([*self.target_linear_velocity[:2], self.target_angular_velocity[2]])

    def publish(self) -> None:
        """Send the target velocities."""
        vx, vy, omega = self.target().tolist()
        self._cmd_vel.publish(vx, omega, vy)

    def halt(self) -> None:
        """Command the robot to stand, at once."""
        self.target_linear_velocity, self.target_angular_velocity = np.zeros(3), np.zeros(3)
        self.publish()

    def forget(self) -> None:
        """Forget where the robot was: its time began anew."""
        self._track.forget()
        self._held = Held()
        self.odometry.forget()

    def close(self) -> None:
        """Stop the robot for good. Comes before the node is closed."""
        self._cmd_vel.close()

    def _age_s(self) -> float:
        return self._clock.now_s - self._newest_s

    def _take(self, message: Odometry) -> tuple[float, Moved] | None:
        read = read_odometry(message, self._clock.now_s)
        if read is not None:
            self._newest_s, moved = read
            self._odom_frame = message.header.frame_id or self._odom_frame
            self.frame = message.child_frame_id or self.frame
            self._track.add(moved)
            self._held.update(moved.stamp_s, self.target(), *self._track.newest_speeds())
        return read


def topic_in(namespace: str | None, name: str) -> str:
    """Return the name of a topic in a namespace; relative to the node's if there is none.

    Raises:
        UserError: ROS 2 takes no such namespace.
    """
    if namespace is None:
        return name
    path = f"/{namespace.strip('/')}"
    try:
        validate_namespace(path)
    except NameValidationException as error:
        raise UserError(f"'{namespace}' is no namespace of a robot: {error}") from None
    return f"{path.rstrip('/')}/{name}"
