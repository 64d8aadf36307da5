"""The executor of actions on a robot behind ROS 2; run, it is the tool `proctor teleop`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from proctor.cli import main as proctor

if TYPE_CHECKING:
    from proctor.worlds.ros2.robot.action_executor import ActionExecutorWrapper as ActionExecutorWrapper  # noqa: PLC0414
    from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor as VLNActionExecutor  # noqa: PLC0414


def __getattr__(name: str) -> Any:
    """Look the classes up when they are asked for: without ROS 2 this can be run, and says how to get it."""
    if name not in ("VLNActionExecutor", "ActionExecutorWrapper"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("proctor.worlds.ros2.robot.action_executor"), name)


def main() -> int:
    """Drive a robot by hand."""
    return proctor(["teleop", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
