"""The base of a robot on ROS 2 topics: odometry and transforms in, velocities out."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from nav_msgs.msg import Odometry
from rclpy.exceptions import NameValidationException
from rclpy.validate_namespace import validate_namespace
from tf2_msgs.msg import TFMessage

from proctor.core.errors import SimulationError, UserError
from proctor.core.geometry import pose_out_of
from proctor.core.types import Array, Pose2
from proctor.robots.dynamics import Dynamics
from proctor.robots.held import Held
from proctor.worlds.ros2.node.convert import yaw_of
from proctor.worlds.ros2.node.node import RosNode
from proctor.worlds.ros2.node.qos import SENSORS, sensor_qos
from proctor.worlds.ros2.node.robot_clock import RobotClock
from proctor.worlds.ros2.node.topic import Topic, TwistTopic
from proctor.worlds.ros2.robot.odometry import STALE_S, Moved, Track, read_odometry

ALL_LATCHED = sensor_qos("RELIABLE", "TRANSIENT_LOCAL", 100)
"""Each robot has its own publisher of static transforms, and all of them send at once when we subscribe."""
MOST_FRAMES = 1000
MAP_FRAME = "map"


class Transforms:
    """Keeps the newest transform of each frame; older ones are not remembered."""

    def __init__(self, node: RosNode) -> None:
        self._parents: dict[str, tuple[str, Any]] = {}
        node.create_subscription(TFMessage, "/tf", self._hear, SENSORS)
        node.create_subscription(TFMessage, "/tf_static", self._hear, ALL_LATCHED)

    def pose_of(self, frame: str, parent: str) -> Pose2 | None:
        """Return where a frame is in another one, seen from above, or None if nobody tells."""
        pose, name, parent = Pose2(0.0, 0.0, 0.0), _plain(frame), _plain(parent)
        for _ in range(32):  # a longer chain is a ring
            if name == parent:
                return pose
            if name not in self._parents:
                return None
            name, transform = self._parents[name]
            step = Pose2(transform.translation.x, transform.translation.y, yaw_of(transform.rotation))
            pose = pose_out_of(step, pose)
        return None

    def _hear(self, message: TFMessage) -> None:
        for told in message.transforms:
            place, turn = told.transform.translation, told.transform.rotation
            child = _plain(told.child_frame_id)
            finite = math.isfinite(place.x + place.y + turn.x + turn.y + turn.z + turn.w)
            if finite and (child in self._parents or len(self._parents) < MOST_FRAMES):
                self._parents[child] = _plain(told.header.frame_id), told.transform


def _plain(frame: str) -> str:
    """Return a frame's name without the slash that older robots begin it with."""
    return frame.removeprefix("/")


class RosBase:
    """The base of a robot that publishes `odom` and obeys `cmd_vel` (see `navigation.tracking.mpc`).

    Its pose is that of the odometry in the map, extrapolated to the present by the velocity. Where the
    odometry begins in the map is what `/tf` says of its frame, or else `odom_origin`. Velocities are sent by
    `publish` only. It counts as collided when it is commanded to move and does not. Topics are in
    `robot_namespace`: "" for `/odom`, `robot_0` for `/robot_0/odom`, None for the node's own namespace.
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
        self.dynamics = dynamics or Dynamics()  # what the base can do; may be set
        self.target_linear_velocity, self.target_angular_velocity = np.zeros(3), np.zeros(3)
        self.frame = "base_link"  # the name of the robot's own frame
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
        """Return where the robot is in the map; SimulationError if there is no recent odometry."""
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
        """Return the position [x, y, z] and the quaternion [qx, qy, qz, qw], in the map."""
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
    """Return the name of a topic in a namespace; relative to the node's if it is None."""
    if namespace is None:
        return name
    path = f"/{namespace.strip('/')}"
    try:
        validate_namespace(path)
    except NameValidationException as error:
        raise UserError(f"'{namespace}' is no namespace of a robot: {error}") from None
    return f"{path.rstrip('/')}/{name}"
