"""The executor of actions on a robot behind ROS 2; run, it is the tool `proctor teleop`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from proctor.cli import main as proctor

if TYPE_CHECKING:
    from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper as ActionExecutorWrapper  # noqa: PLC0414
    from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor as VLNActionExecutor  # noqa: PLC0414

HOMES = {
    "VLNActionExecutor": "proctor.worlds.ros2.robot.action_executor",
    "ActionExecutorWrapper": "proctor.worlds.ros2.robot.action_executor",
}
"""Looked up when they are asked for: this can be imported without ROS 2, and run, says how to get it."""


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)


def main() -> int:
    """Drive a robot by hand."""
    return proctor(["teleop", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
