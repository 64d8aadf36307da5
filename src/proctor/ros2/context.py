"""What a process needs to take part in ROS 2."""

from __future__ import annotations

from collections.abc import Sequence

import rclpy
from rclpy.context import Context

from proctor.core.errors import UserError
from proctor.ros2.profile import use_profile


def open_context(ros_args: Sequence[str] = ()) -> Context:
    """Return a context of its own, so that any number may come and go in one process.

    Args:
        ros_args: What ROS 2 takes after `--ros-args`.

    Raises:
        UserError: It does not take these.
    """
    use_profile()
    context = Context()
    try:
        rclpy.init(args=["--ros-args", *ros_args] if ros_args else [], context=context)
    except RuntimeError as error:
        if not ros_args:
            raise
        raise UserError(f"ROS 2 does not take --ros-args {' '.join(ros_args)}: {error}") from None
    return context
