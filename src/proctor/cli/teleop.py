"""`proctor teleop`: drive a robot on ROS 2 by hand."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.cli.options import add_command
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


class _Key(NamedTuple):
    """What a key does."""

    told: str
    move: Callable[[VLNActionExecutor], Any]


MOVES = {
    "1": _Key("forward 25 cm", lambda robot: robot.execute_forward_25cm()),
    "2": _Key("left 15°", lambda robot: robot.execute_rotate_15deg("left")),
    "3": _Key("right 15°", lambda robot: robot.execute_rotate_15deg("right")),
    "f": _Key("forward 1 s", lambda robot: robot.move_timed(linear_x=robot.LINEAR_SPEED)),
    "b": _Key("back 1 s", lambda robot: robot.move_timed(linear_x=-robot.LINEAR_SPEED)),
    "l": _Key("left 1 s", lambda robot: robot.move_timed(angular_z=robot.ANGULAR_SPEED)),
    "r": _Key("right 1 s", lambda robot: robot.move_timed(angular_z=-robot.ANGULAR_SPEED)),
}


def add_teleop(commands: Any) -> None:
    """Add the command."""
    teleop = add_command(commands, "teleop", _teleop, TELEOP_HELP)
    teleop.add_argument("--namespace", default="", metavar="NS", help="of the robot's topics (default: none)")
    teleop.add_argument("--linear-speed", type=float, default=0.1, metavar="MPS", help="m/s (default: 0.1)")
    teleop.add_argument(
        "--angular-speed", type=float, default=0.3, metavar="RADPS", help="rad/s (default: 0.3)"
    )
    teleop.add_argument(
        "--collision-threshold",
        type=float,
        default=0.2,
        metavar="M",
        help="forward moves end when something is nearer than this, in metres (default: 0.2)",
    )
    teleop.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        metavar="S",
        help="real seconds for which the robot may be silent (default: 5)",
    )
    teleop.add_argument(
        "--ros-args", nargs=argparse.REMAINDER, default=[], metavar="...", help="for ROS 2; comes last"
    )


def _teleop(arguments: argparse.Namespace) -> int:
    from proctor.worlds.ros2.robot.action_executor import VLNActionExecutor

    for ending in (signal.SIGTERM, signal.SIGHUP):  # a robot that is not told to stop drives on
        signal.signal(ending, _interrupt)
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
            errors.print(f"no odometry yet: {robot.diagnosis()}", markup=False, soft_wrap=True)
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
        errors.print(f"{told}: {error}", markup=False, soft_wrap=True)
        return
    stopped = "  stopped by a collision" if motion.collided else ""
    console.print(f"{told:<14}{_state(robot)}{stopped}", markup=False, soft_wrap=True)


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


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt
