"""`proctor teleop`: drive a robot on ROS 2 by hand."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from proctor.cli.options import add_command, add_option, add_ros_arguments
from proctor.cli.terminal import DONE, console, errors
from proctor.core.errors import SimulationError

if TYPE_CHECKING:
    from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor

KEYS = """\
1 forward 25 cm   2 left 15°   3 right 15°
f forward   b back   l left   r right   (one second each)
q quit"""
TELEOP_HELP = f"""\
drive a robot on ROS 2 by hand
Drive a robot on ROS 2 with keys. It listens to odom and scan and speaks on cmd_vel.

keys:
{KEYS}

examples:
  proctor teleop
  proctor teleop --namespace robot_0 --linear-speed 0.2
  proctor teleop --ros-args -r scan:=/lidar/scan
  echo 1 1 2 1 | proctor teleop

Ctrl-C stops the robot, also in the middle of a move. A robot to try it with: proctor sim-host
exit codes: 0 quit, 1 the robot is silent or does not obey, 2 user error, 130 interrupted
"""


MOVES: dict[str, tuple[str, Callable[[VLNActionExecutor], Any]]] = {
    "1": ("forward 25 cm", lambda robot: robot.execute_forward_25cm()),
    "2": ("left 15°", lambda robot: robot.execute_rotate_15deg("left")),
    "3": ("right 15°", lambda robot: robot.execute_rotate_15deg("right")),
    "f": ("forward 1 s", lambda robot: robot.move_timed(linear_x=robot.LINEAR_SPEED)),
    "b": ("back 1 s", lambda robot: robot.move_timed(linear_x=-robot.LINEAR_SPEED)),
    "l": ("left 1 s", lambda robot: robot.move_timed(angular_z=robot.ANGULAR_SPEED)),
    "r": ("right 1 s", lambda robot: robot.move_timed(angular_z=-robot.ANGULAR_SPEED)),
}
"""What each key does, in words and as a call."""


def add_teleop(commands: Any) -> None:
    """Add the command."""
    teleop = add_command(commands, "teleop", _teleop, TELEOP_HELP)
    add_option(teleop, "--namespace NS", "", "of the robot's topics (default: none)")
    add_option(teleop, "--linear-speed MPS", 0.1, "m/s (default: 0.1)")
    add_option(teleop, "--angular-speed RADPS", 0.3, "rad/s (default: 0.3)")
    text = "forward moves end when something is nearer than this, in metres (default: 0.2)"
    add_option(teleop, "--collision-threshold M", 0.2, text)
    add_option(teleop, "--timeout S", 5.0, "real seconds for which the robot may be silent (default: 5)")
    add_ros_arguments(teleop)


def _teleop(arguments: argparse.Namespace) -> int:
    from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor

    for ending in (signal.SIGTERM, signal.SIGHUP):  # a robot that is not told to stop drives on
        signal.signal(ending, signal.default_int_handler)
    with (
        _key_by_key(),
        VLNActionExecutor(
            "proctor_teleop",
            namespace=arguments.namespace,
            ros_args=arguments.ros_args,
            linear_speed=arguments.linear_speed,
            angular_speed=arguments.angular_speed,
            collision_threshold=arguments.collision_threshold,
            silence_timeout_s=arguments.timeout,
        ) as robot,
    ):
        console.print(KEYS, markup=False)
        if robot.wait_for_odom(arguments.timeout):
            console.print(_state(robot), markup=False)
        else:  # timed moves need none
            errors.say(f"no odometry yet: {robot.diagnosis()}")
        for key in _keys():
            if key in ("q", "\x04"):  # Ctrl-D, as a terminal sends it key by key
                break
            _press(robot, key)
    return DONE


def _press(robot: VLNActionExecutor, key: str) -> None:
    """Do what a key stands for, and show what has come of it."""
    if key not in MOVES:
        errors.print(f"no such key: '{key}'. {' '.join(MOVES)} move, q quits", markup=False)
        return
    told, move = MOVES[key]
    try:
        motion = move(robot)
    except SimulationError as error:
        if not sys.stdin.isatty():
            raise
        errors.say(f"{told}: {error}")
        return
    stopped = "  stopped by a collision" if motion.collided else ""
    console.say(f"{told:<14}{_state(robot)}{stopped}")


def _state(robot: VLNActionExecutor) -> str:
    pose, collisions = robot.curr_pose, f"collisions {robot.collision_count}"
    if pose is None:
        return f"no odometry  {collisions}"
    yaw_deg = math.degrees(robot.get_yaw())
    return f"x {pose.position.x:z.3f} m  y {pose.position.y:z.3f} m  yaw {yaw_deg:z.1f}°  {collisions}"


def _keys() -> Iterator[str]:
    """Return keys as they are pressed, or what is piped in, without blanks and line ends."""
    if sys.stdin.isatty():
        while key := os.read(sys.stdin.fileno(), 1):
            yield key.decode(errors="replace").lower()
    else:
        for line in sys.stdin:
            yield from (key.lower() for key in line if not key.isspace())


@contextmanager
def _key_by_key() -> Iterator[None]:
    """Let a terminal give each key at once, and not only whole lines."""
    if not sys.stdin.isatty():
        yield
        return
    import termios  # there is no such thing on Windows
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # keys that were pressed before count
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
