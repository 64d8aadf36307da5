"""A simulated robot's side of ROS 2: what it publishes, and the commands it obeys."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.validate_namespace import validate_namespace
from sensor_msgs.msg import LaserScan
from tf2_msgs.msg import TFMessage

from proctor.core.errors import UserError
from proctor.core.geometry import pose_into
from proctor.core.types import Pose2, Vector3
from proctor.ros2.convert import quaternion
from proctor.ros2.hosted_camera import HostedCamera, camera_transform
from proctor.ros2.qos import COMMANDS, LATCHED, SENSORS
from proctor.ros2.signals import Signals, is_due
from proctor.sim.camera import RgbdCamera
from proctor.sim.lidar import LaserScanner
from proctor.sim.mobile_base import MobileBase
from proctor.sim.robot_body import RobotBody
from proctor.sim.world import World

ZERO_FRAMES = 3
"""So many odometry messages at first have no time and no pose, as those of O3DE."""
MAX_MPS, MAX_RADPS = 5.0, 10.0
"""Nothing drives faster: it would pass through walls."""


def check_name(name: str, namespace: str) -> None:
    """Check what a robot is to be called.

    Raises:
        UserError: ROS 2 takes no such name or namespace.
    """
    if not (name.isascii() and name.replace("_", "a").isalnum()):
        raise UserError(f"a robot's name is of letters, digits and underscores, found '{name}'")
    try:
        validate_namespace(f"/{namespace}")
    except NameValidationException as error:
        raise UserError(f"'{namespace}' is no namespace: {error}") from None


class HostedRobot:
    """A robot of a world, on ROS 2: a node of its own in its namespace.

    Nobody spins the node. Commands wait in the subscription until the robot looks at them, once in a tick.

    Args:
        context: Whose participant the node is of.
        world: The world.
        body: The robot in it. Where it is now, its odometry begins.
        namespace: Its topics and frames are below this.
        signals: What it publishes.
    """

    def __init__(
        self, context: Context, world: World, body: RobotBody, namespace: str, signals: Signals
    ) -> None:
        self.name, self.namespace, self.start = body.name, namespace, body.pose()
        self.base = MobileBase(world, body=body)
        self._world, self._body, self._signals = world, body, signals
        self._scanner = LaserScanner(world, body)
        self._commanded_s = 0.0
        self._zero_frames = ZERO_FRAMES
        self.node = Node(
            f"simulated_{self.name}",
            namespace=namespace,
            context=context,
            start_parameter_services=False,
            enable_rosout=False,
        )
        frame = f"{namespace}/{{}}".format if namespace else str
        self._commands = self.node.create_subscription(Twist, "cmd_vel", lambda _: None, SENSORS)
        self._odom, self._moved, self._seen = Odometry(), TransformStamped(), LaserScan()
        self._odom.header.frame_id = self._moved.header.frame_id = frame("odom")
        self._odom.child_frame_id = self._moved.child_frame_id = frame("base_link")
        self._prepare_scan(frame("base_scan"))
        self._odom_publisher = self.node.create_publisher(Odometry, "odom", SENSORS)
        self._scan_publisher = self.node.create_publisher(LaserScan, "scan", SENSORS)
        self._tf_publisher = self.node.create_publisher(TFMessage, "/tf", COMMANDS)
        self._static_publisher = self.node.create_publisher(TFMessage, "/tf_static", LATCHED)
        self._static_publisher.publish(TFMessage(transforms=self._static_transforms(frame)))
        spec = world.robot.camera
        self._camera = HostedCamera(self.node, spec, signals, frame("camera")) if signals.camera_hz else None

    def obey(self, now_s: float) -> None:
        """Take the newest command."""
        command = None
        while (taken := self._commands.handle.take_message(Twist, False)) is not None:  # noqa: FBT003
            command = taken[0]
        timeout_s = self._signals.cmd_vel_timeout_s
        if command is not None:
            self._drive(command.linear.x, command.linear.y, command.angular.z)
            self._commanded_s = now_s
        elif timeout_s is not None and now_s - self._commanded_s >= timeout_s:
            self._drive(0.0, 0.0, 0.0)

    def _drive(self, ahead_mps: float, left_mps: float, turn_radps: float) -> None:
        if not math.isfinite(ahead_mps + left_mps + turn_radps):
            self.node.get_logger().warning("a command that is not finite is taken for a stop")
            ahead_mps = left_mps = turn_radps = 0.0
        self.base.target_linear_velocity[:2] = np.clip([ahead_mps, left_mps], -MAX_MPS, MAX_MPS)
        self.base.target_angular_velocity[2] = min(MAX_RADPS, max(-MAX_RADPS, turn_radps))

    def publish(self, ticks: int, now: Time, cameras: RgbdCamera | None) -> None:
        """Publish what is due in this tick and has a listener."""
        self._publish_motion(now)
        if is_due(ticks, self._signals.scan_hz) and self._scan_publisher.get_subscription_count():
            self._publish_scan(now)
        if self._camera is not None and cameras is not None and is_due(ticks, self._signals.camera_hz):
            self._camera.publish(now, cameras, self._body)

    def put(self, pose: Pose2) -> None:
        """Put the robot elsewhere, at rest."""
        self._world.put(self.name, pose)
        self.base.rest()

    def hear_of_reset(self) -> None:
        """Go on in a time that begins at 0."""
        self._commanded_s = 0.0

    def state(self) -> tuple[Vector3, tuple[float, float, float, float], Vector3, Vector3]:
        """Return position, quaternion xyzw, linear and angular velocity in the world frame."""
        position, quaternion_xyzw = self.base.get_world_pose()
        vx, vy, omega = self._body.velocity_world.tolist()
        x, y, z, w = quaternion_xyzw.tolist()
        return Vector3(*position.tolist()), (x, y, z, w), Vector3(vx, vy, 0.0), Vector3(0.0, 0.0, omega)

    def close(self) -> None:
        """Leave the graph."""
        self.node.destroy_node()

    def _publish_motion(self, now: Time) -> None:
        moved, (vx, vy, omega) = pose_into(self.start, self._body.pose()), self.base.get_velocity().tolist()
        odom, transform = self._odom, self._moved
        odom.header.stamp, pose, twist = now, odom.pose.pose, odom.twist.twist
        pose.position.x, pose.position.y, pose.orientation = moved.x, moved.y, quaternion(moved.yaw)
        twist.linear.x, twist.linear.y, twist.angular.z = vx, vy, omega
        if self._zero_frames:
            self._zero_frames -= 1
            odom.header.stamp, pose.position.x, pose.position.y, pose.orientation.z = Time(), 0.0, 0.0, 0.0
            pose.orientation.w = 1.0
        self._odom_publisher.publish(odom)
        if self._tf_publisher.get_subscription_count():
            transform.header.stamp, transform.transform.rotation = now, quaternion(moved.yaw)
            transform.transform.translation.x, transform.transform.translation.y = moved.x, moved.y
            self._tf_publisher.publish(TFMessage(transforms=[transform]))

    def _prepare_scan(self, frame_id: str) -> None:
        lidar, seen = self._world.robot.lidar, self._seen
        seen.header.frame_id = frame_id
        seen.angle_min, seen.angle_increment = lidar.angle_min, lidar.angle_increment
        seen.angle_max = lidar.angle_min + (lidar.beams - 1) * lidar.angle_increment
        seen.range_min, seen.range_max = lidar.range_min_m, lidar.range_max_m
        seen.scan_time = 1 / self._signals.scan_hz if self._signals.scan_hz else 0.0
        seen.ranges = array("f", bytes(4 * lidar.beams))
        self._ranges = np.frombuffer(seen.ranges, np.float32)  # shares memory: filled in place

    def _publish_scan(self, now: Time) -> None:
        self._ranges[:] = self._scanner.scan().ranges
        self._ranges[self._ranges < self._seen.range_min] = -np.inf
        self._seen.header.stamp = now
        self._scan_publisher.publish(self._seen)

    def _static_transforms(self, frame: Any) -> list[TransformStamped]:
        robot, start = self._world.robot, TransformStamped()
        start.header.frame_id, start.child_frame_id = "map", frame("odom")
        start.transform.translation.x, start.transform.translation.y = self.start.x, self.start.y
        start.transform.translation.z = self._world.floor_z
        start.transform.rotation = quaternion(self.start.yaw)
        scanner, camera = TransformStamped(), camera_transform(robot.camera)
        scanner.child_frame_id, camera.child_frame_id = frame("base_scan"), frame("camera")
        scanner.header.frame_id = camera.header.frame_id = frame("base_link")
        scanner.transform.translation.z = robot.lidar.height_m
        return [start, scanner, camera]
