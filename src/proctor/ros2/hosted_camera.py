"""The RGB-D camera of a simulated robot, on ROS 2."""

from __future__ import annotations

import math
import sys
from array import array
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from proctor.robots.wheeled import Camera
from proctor.ros2.qos import SENSORS
from proctor.ros2.signals import Signals
from proctor.sim.camera import RgbdCamera
from proctor.sim.robot_body import RobotBody

CHANNELS = {"rgb8": slice(3), "rgba8": slice(3), "bgr8": slice(None, None, -1)}
"""Where red, green and blue are; a fourth byte is opaque."""
PIXELS: dict[str, tuple[type, tuple[int, ...]]] = {
    "rgb8": (np.uint8, (3,)),
    "bgr8": (np.uint8, (3,)),
    "rgba8": (np.uint8, (4,)),
    "16UC1": (np.uint16, ()),
    "32FC1": (np.float32, ()),
}


class HostedCamera:
    """Publishes `rgb`, `depth` and `camera_info` with one stamp. What nobody listens to is not drawn.

    Args:
        node: Whose topics they are.
        spec: The camera.
        signals: The encodings.
        frame_id: The optical frame: x right, y down, z ahead.
    """

    def __init__(self, node: Node, spec: Camera, signals: Signals, frame_id: str) -> None:
        self._encodings = signals.rgb_encoding, signals.depth_encoding
        self._rgb, self._rgb_pixels = _image(spec, signals.rgb_encoding, frame_id)
        self._depth, self._depth_pixels = _image(spec, signals.depth_encoding, frame_id)
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
