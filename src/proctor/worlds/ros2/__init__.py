"""ROS 2 clients (drive a robot) and servers (act as a robot). Only this package imports rclpy."""

from importlib.util import find_spec

from proctor.core.errors import MissingDependency

if find_spec("rclpy") is None:
    raise MissingDependency(
        "ROS 2",
        "There are two ways to get it: install ROS 2 (Jazzy or Kilted) and source its setup.bash before you "
        "start Python, or in a checkout of Proctor run `make ros` and use .venv-ros/bin/proctor. "
        "docs/ros2.md has both.",
    )
