"""What a process needs to take part in ROS 2."""

from __future__ import annotations

import os
from collections.abc import Sequence

import rclpy
from rclpy.context import Context

from proctor.core.errors import UserError
from proctor.ros2.profile import use_profile

LAST_DOMAIN = 232
"""Those above have no ports; Fast DDS ends the process then, without a word to Python."""


def open_context(ros_args: Sequence[str] = ()) -> Context:
    """Return a context of its own, so that any number may come and go in one process.

    Args:
        ros_args: What ROS 2 takes after `--ros-args`.

    Raises:
        UserError: It does not take these, or the domain of the environment is none.
    """
    domain = os.environ.get("ROS_DOMAIN_ID", "")
    if domain and not (domain.isdecimal() and int(domain) <= LAST_DOMAIN):
        raise UserError(f"ROS_DOMAIN_ID: expected a number from 0 to {LAST_DOMAIN}, found '{domain}'")
    use_profile()
    context = Context()
    try:
        rclpy.init(args=["--ros-args", *ros_args] if ros_args else [], context=context)
    except RuntimeError as error:
        if not ros_args:
            raise
        raise UserError(f"ROS 2 does not take --ros-args {' '.join(ros_args)}: {error}") from None
    return context
