"""A simulated robot's side of ROS 2: what it publishes, how often, in which encodings, and the commands."""

from __future__ import annotations

import math
import sys
from array import array
from typing import Any

import msgspec
import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from geometry_msgs.msg import Twist as TwistMessage
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.context import Context
from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.validate_namespace import validate_namespace
from sensor_msgs.msg import CameraInfo, Image, LaserScan
from tf2_msgs.msg import TFMessage

from proctor.core.errors import UserError, did_you_mean
from proctor.core.geometry import pose_into
from proctor.core.types import Pose2, Vector3
from proctor.robots.robot import Twist
from proctor.robots.spec import Camera, RobotSpec, standard_robot
from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
from proctor.worlds.mujoco.wheeled.robot import TICK_S, MujocoRobot
from proctor.worlds.mujoco.wheeled.robot_body import RobotBody
from proctor.worlds.mujoco.wheeled.world import World
from proctor.worlds.ros2.node.convert import quaternion
from proctor.worlds.ros2.node.node import COMMANDS, LATCHED, SENSORS

CHANNELS = {"rgb8": slice(3), "rgba8": slice(3), "bgr8": slice(None, None, -1)}
"""Where red, green and blue are; a fourth byte is opaque."""
PIXELS: dict[str, tuple[type, tuple[int, ...]]] = {
    "rgb8": (np.uint8, (3,)),
    "bgr8": (np.uint8, (3,)),
    "rgba8": (np.uint8, (4,)),
    "16UC1": (np.uint16, ()),
    "32FC1": (np.float32, ()),
}
TICKS_PER_S = round(1 / TICK_S)
DEPTH_ENCODINGS = ("16UC1", "32FC1")
MAX_PIXELS = 4096
MAX_MPS, MAX_RADPS = 5.0, 10.0  # nothing drives faster: it would pass through walls


class HostedCamera:
    """Publishes `rgb`, `depth` and `camera_info` with one stamp. What nobody listens to is not rendered.

    The frame is the optical one: x right, y down, z ahead.
    """

    def __init__(self, node: Node, spec: Camera, options: SimHostOptions, frame_id: str) -> None:
        self._encodings = options.rgb_encoding, options.depth_encoding
        self._rgb, self._rgb_pixels = _image(spec, options.rgb_encoding, frame_id)
        self._depth, self._depth_pixels = _image(spec, options.depth_encoding, frame_id)
        self._info = _camera_info(spec, frame_id)
        self._rgb_publisher = node.create_publisher(Image, "rgb", SENSORS)
        self._depth_publisher = node.create_publisher(Image, "depth", SENSORS)
        self._info_publisher = node.create_publisher(CameraInfo, "camera_info", SENSORS)

    def publish(self, now: Time, cameras: RgbdCamera, body: RobotBody) -> None:
        """Take a picture and publish it."""
        self._rgb.header.stamp = self._depth.header.stamp = self._info.header.stamp = now
        if self._info_publisher.get_subscription_count():
            self._info_publisher.publish(self._info)
        if self._depth_publisher.get_subscription_count():
            in_metres = self._encodings[1] == "32FC1"
            rgb, self._depth_pixels[...] = cameras.render_metres(body) if in_metres else cameras.render(body)
            self._publish_rgb(rgb)
            self._depth_publisher.publish(self._depth)
        elif self._rgb_publisher.get_subscription_count():
            self._publish_rgb(cameras.render_rgb(body))

    def _publish_rgb(self, rgb: NDArray[np.uint8]) -> None:
        self._rgb_pixels[..., CHANNELS[self._encodings[0]]] = rgb
        self._rgb_publisher.publish(self._rgb)


def camera_transform(spec: Camera) -> TransformStamped:
    """Return where the optical frame (x right, y down, z ahead) is on the robot."""
    transform = TransformStamped()
    transform.transform.translation.z = spec.height_m
    # From the robot's axes to the optical ones, then pitched about the optical x axis, which is the right.
    half = math.radians(spec.pitch_deg) / 2
    cos, sin, rotation = math.cos(half), math.sin(half), transform.transform.rotation
    rotation.x, rotation.y = (sin - cos) / 2, (cos - sin) / 2
    rotation.z, rotation.w = -(cos + sin) / 2, (cos + sin) / 2
    return transform


def _image(spec: Camera, encoding: str, frame_id: str) -> tuple[Image, NDArray[Any]]:
    """Return a message, and its pixels as an array in the same memory: it is filled and sent again and again.

    rclpy copies an array of bytes as a whole, but looks at other sequences element by element.
    """
    kind, channels = PIXELS[encoding]
    pixels: NDArray[Any] = np.full((spec.height, spec.width, *channels), 255, kind)
    image = Image(
        height=spec.height, width=spec.width, encoding=encoding, is_bigendian=sys.byteorder == "big"
    )
    image.header.frame_id, image.step = frame_id, pixels.strides[0]
    image.data = array("B", pixels.tobytes())
    return image, np.frombuffer(image.data, kind).reshape(pixels.shape)


def _camera_info(spec: Camera, frame_id: str) -> CameraInfo:
    focal_px = spec.height / 2 / math.tan(math.radians(spec.fov_deg) / 2)
    info = CameraInfo(height=spec.height, width=spec.width, distortion_model="plumb_bob")
    info.header.frame_id = frame_id
    x, y = spec.width / 2, spec.height / 2
    info.d = [0.0] * 5
    info.k = [focal_px, 0.0, x, 0.0, focal_px, y, 0.0, 0.0, 1.0]
    info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    info.p = [focal_px, 0.0, x, 0.0, 0.0, focal_px, y, 0.0, 0.0, 0.0, 1.0, 0.0]
    return info


class SimHostOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a `SimHost` simulates. Rates are per simulated second."""

    robot: RobotSpec = msgspec.field(default_factory=standard_robot)
    """What all robots are like."""
    real_time_factor: float | None = 1.0
    """None is as fast as possible; 0 begins with PAUSED, and is 1 from then on."""
    camera_hz: float = 30.0  # 0 for no camera
    scan_hz: float = 60.0
    rgb_encoding: str = "rgb8"
    depth_encoding: str = "16UC1"
    """16UC1 in millimetres with 0 for no return, or 32FC1 in metres with the farthest."""
    cmd_vel_timeout_s: float | None = None  # of simulated time; then a robot that hears nothing stops
    name: str = "sim_host"
    ros_args: tuple[str, ...] = ()

    def checked(self) -> SimHostOptions:
        """Return this, or raise UserError if a setting is invalid."""
        factor, camera = self.real_time_factor, self.robot.camera
        if factor is not None and not 0 <= factor <= 1000:
            raise UserError(f"expected a real-time factor from 0 to 1000, found {factor}")
        if not (0 < camera.width <= MAX_PIXELS and 0 < camera.height <= MAX_PIXELS):
            found = f"{camera.width}x{camera.height}"
            raise UserError(f"expected pictures of 1 to {MAX_PIXELS} pixels each way, found {found}")
        for what, rate_hz in (("pictures", self.camera_hz), ("scans", self.scan_hz)):
            if not 0 <= rate_hz <= TICKS_PER_S:
                raise UserError(f"expected 0 to {TICKS_PER_S} {what} in a second, found {rate_hz}")
        for encoding, known in ((self.rgb_encoding, CHANNELS), (self.depth_encoding, DEPTH_ENCODINGS)):
            if encoding not in known:
                hint = did_you_mean(encoding, known)
                raise UserError(f"unknown encoding '{encoding}'{hint}; expected {' or '.join(known)}")
        timeout_s = self.cmd_vel_timeout_s
        if timeout_s is not None and not (timeout_s > 0 and math.isfinite(timeout_s)):
            raise UserError(f"expected a timeout of commands above 0 s, found {timeout_s}")
        return self


def is_due(ticks: int, rate_hz: float) -> bool:
    """Tell whether something that happens at this rate happens in this tick."""
    return math.floor(ticks * rate_hz / TICKS_PER_S) > math.floor((ticks - 1) * rate_hz / TICKS_PER_S)


def check_name(name: str, namespace: str) -> None:
    """Raise UserError if ROS 2 does not allow this name or namespace of a robot."""
    if not (name.isascii() and name.replace("_", "a").isalnum()):
        raise UserError(f"a robot's name is of letters, digits and underscores, found '{name}'")
    try:
        validate_namespace(f"/{namespace}")
    except NameValidationException as error:
        raise UserError(f"'{namespace}' is no namespace: {error}") from None


class HostedRobot:
    """A robot of a world, on ROS 2: a node in its own namespace. Its odometry begins where it is now.

    Nobody spins the node. Commands wait in the subscription until the robot looks at them, once in a tick.
    """

    def __init__(
        self, context: Context, world: World, body: RobotBody, namespace: str, options: SimHostOptions
    ) -> None:
        self.name, self.namespace, self.start = body.name, namespace, body.pose()
        self.base = MujocoRobot(world, body)
        self._world, self._body, self._options = world, body, options
        self._commanded_s = 0.0
        self._zero_frames = 3  # O3DE's first odometry messages have no time and no pose
        self.node = Node(
            f"simulated_{self.name}",
            namespace=namespace,
            context=context,
            start_parameter_services=False,
            enable_rosout=False,
        )
        frame = f"{namespace}/{{}}".format if namespace else str
        self._commands = self.node.create_subscription(TwistMessage, "cmd_vel", lambda _: None, SENSORS)
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
        self._camera = HostedCamera(self.node, spec, options, frame("camera")) if options.camera_hz else None

    def obey(self, now_s: float) -> None:
        """Take the newest command."""
        command = None
        while (taken := self._commands.handle.take_message(TwistMessage, False)) is not None:  # noqa: FBT003
            command = taken[0]
        timeout_s = self._options.cmd_vel_timeout_s
        if command is not None:
            self._drive(command.linear.x, command.linear.y, command.angular.z)
            self._commanded_s = now_s
        elif timeout_s is not None and now_s - self._commanded_s >= timeout_s:
            self._drive(0.0, 0.0, 0.0)

    def _drive(self, ahead_mps: float, left_mps: float, turn_radps: float) -> None:
        if not math.isfinite(ahead_mps + left_mps + turn_radps):
            self.node.get_logger().warning("a command that is not finite is taken for a stop")
            ahead_mps = left_mps = turn_radps = 0.0
        vx, vy = (min(MAX_MPS, max(-MAX_MPS, speed_mps)) for speed_mps in (ahead_mps, left_mps))
        self.base.command(Twist(vx, vy, min(MAX_RADPS, max(-MAX_RADPS, turn_radps))))

    def publish(self, ticks: int, now: Time, cameras: RgbdCamera | None) -> None:
        """Publish what is due in this tick and has a listener."""
        self._publish_motion(now)
        if is_due(ticks, self._options.scan_hz) and self._scan_publisher.get_subscription_count():
            self._publish_scan(now)
        if self._camera is not None and cameras is not None and is_due(ticks, self._options.camera_hz):
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
        pose, (vx, vy, omega) = self._body.pose(), self._body.velocity_world.tolist()
        position, half = Vector3(pose.x, pose.y, self._world.floor_z), pose.yaw / 2
        turned = (0.0, 0.0, math.sin(half), math.cos(half))
        return position, turned, Vector3(vx, vy, 0.0), Vector3(0.0, 0.0, omega)

    def close(self) -> None:
        """Leave the graph."""
        self.node.destroy_node()

    def _publish_motion(self, now: Time) -> None:
        moved, (vx, vy, omega) = pose_into(self.start, self._body.pose()), self.base.velocity()
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
        seen.scan_time = 1 / self._options.scan_hz if self._options.scan_hz else 0.0
        seen.ranges = array("f", bytes(4 * lidar.beams))
        self._ranges = np.frombuffer(seen.ranges, np.float32)  # shares memory: filled in place

    def _publish_scan(self, now: Time) -> None:
        self._ranges[:] = self.base.scan().ranges
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
