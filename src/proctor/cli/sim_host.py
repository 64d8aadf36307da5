"""`proctor sim-host`: the embedded world as ROS 2 robots."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.live import Live
from rich.text import Text

from proctor.cli.navigation_options import episode_of
from proctor.cli.options import (
    add_command,
    add_dataset,
    add_option,
    add_robot,
    add_ros_arguments,
    allow_negative_places,
    place_of,
)
from proctor.cli.terminal import console, exit_code_after, noted_signals
from proctor.core.errors import InvalidFile, UserError
from proctor.core.types import Pose2, Vector3

if TYPE_CHECKING:
    from proctor.worlds.ros2.host.sim_host import SimHost

READY = "ready"
SIM_HOST_HELP = """\
let the embedded world be robots on ROS 2
Let robots of the embedded world be driven and sensed over ROS 2.

examples:
  proctor sim-host --suite houses-v1 --episode house_64959_0
  proctor sim-host --scene my_house.json --start 1,2,1.57 --rtf 5 --camera-hz 0
  proctor sim-host --scene my_house.json --start 1,2 --start 3,2 --namespace alice --namespace bob
  proctor sim-host --scene my_house.json --start 1,2 --robot turtlebot3-burger
  proctor sim-host --scene my_house.json --start 1,2 --ros-args -r rgb:=/camera/image_raw

Each robot publishes odom, scan, rgb, depth and camera_info, obeys cmd_vel (geometry_msgs/Twist), and has the
frames odom, base_link, base_scan and camera below map. The clock is /clock: set use_sim_time in your nodes.
Sensors are best effort, so listen best effort, too: a reliable subscription hears nothing. What nobody
listens to costs nothing. The services of simulation_interfaces (/spawn_entity, /set_simulation_state,
/step_simulation, ...) pause, step, reset and fill the world; without a scene it waits for /load_world.
Places are x,y in metres in the world frame; a third number is a heading in radians. One robot has its topics
at /odom and so on; several have them at /robot_0/odom, /robot_1/odom, unless --namespace says otherwise.

exit codes: 0 ended by SIGTERM, 1 the world broke, 2 user error, 130 interrupted
"""


class _Task(NamedTuple):
    scene: Path | None
    floor_at: Vector3 | None
    robots: list[tuple[str, str, Pose2]]  # name, namespace and place of each


def add_sim_host(commands: Any) -> None:
    """Add the command."""
    host = add_command(commands, "sim-host", _host, SIM_HOST_HELP)
    allow_negative_places(host)
    where = add_dataset(host, required=False)
    add_option(where, "--scene FILE", Path, "a scene file, or a house that is a mesh")
    add_option(host, "--episode ID", str, "of the exam: gives the scene and where the robot starts")
    text = "where a robot stands, once for each robot (default: the episode's start; with --scene none)"
    add_option(host, "--start X,Y[,YAW]", [], text)
    add_option(host, "--namespace NS", [], "of a robot, once for each robot")
    add_robot(host)
    _add_settings(host)


def _add_settings(host: argparse.ArgumentParser) -> None:
    text = "simulated seconds in a second, or max; 0 waits for /set_simulation_state (default: 1)"
    add_option(host, "--rtf X", "1", text)
    add_option(host, "--camera-hz HZ", 30.0, "0 for no camera (default: 30)")
    add_option(host, "--scan-hz HZ", 60.0, "at most 60 (default: 60)")
    add_option(host, "--size WxH", str, "of pictures, such as 640x480 (default: the robot's)")
    add_option(host, "--rgb-encoding NAME", "rgb8", "rgb8, rgba8 or bgr8 (default: rgb8)")
    text = "16UC1, millimetres with 0 for no return, or 32FC1, metres with the farthest (default: 16UC1)"
    add_option(host, "--depth-encoding NAME", "16UC1", text)
    text = "simulated seconds after which a robot without commands stops (default: never)"
    add_option(host, "--cmd-vel-timeout S", float, text)
    add_option(host, "--parent PID", int, argparse.SUPPRESS)  # ends when this ends
    add_ros_arguments(host)


def _host(arguments: argparse.Namespace) -> int:
    task = _task(arguments)
    width, height = size_of(arguments.size) if arguments.size else (None, None)
    real_time_factor = real_time_factor_of(arguments.rtf)

    from proctor.robots.spec import load_robot
    from proctor.scenes.scene import Scene
    from proctor.worlds.ros2.host.hosted_robot import SimHostOptions
    from proctor.worlds.ros2.host.sim_host import SimHost
    from proctor.worlds.ros2.host.simulation_services import SimulationServices

    options = SimHostOptions(
        robot=load_robot(arguments.robot).with_camera(width=width, height=height),
        real_time_factor=real_time_factor,
        camera_hz=arguments.camera_hz,
        scan_hz=arguments.scan_hz,
        rgb_encoding=arguments.rgb_encoding,
        depth_encoding=arguments.depth_encoding,
        cmd_vel_timeout_s=arguments.cmd_vel_timeout,
        ros_args=tuple(arguments.ros_args),
    )
    floor_z = None if task.scene is None else Scene.load(task.scene).floor_near(task.floor_at)
    with SimHost(task.scene, options, floor_z=floor_z) as host:
        for start in task.robots:
            host.spawn(*start)
        SimulationServices(host)
        with noted_signals(host.stop) as signals, live_line(lambda: how_it_goes(host)):
            _announce(host, task)
            host.run(parent_pid=arguments.parent)
    return exit_code_after(signals)


def _announce(host: SimHost, task: _Task) -> None:
    for name, namespace, pose in task.robots:
        below = f"/{namespace}".rstrip("/")
        topics = " ".join(f"{below}/{topic}" for topic in host.topics)
        place = f"{pose.x:g},{pose.y:g},{pose.yaw:.3g}"
        console.say(f"{name} at {place}: {topics}; obeys {below}/cmd_vel")
    if task.scene is None:
        console.print("no world yet: --suite or --scene brings one, /load_world does it later")
    elif not task.robots:
        console.print("no robot yet: --start puts one there, /spawn_entity does it later")
    console.print("/clock /tf /tf_static. Ctrl-C ends it.")
    console.print(READY)


def live_line(words: Callable[[], str]) -> AbstractContextManager[Any]:
    """Show how it goes, where somebody may see it."""
    if not console.is_terminal:
        return nullcontext()
    return Live(get_renderable=lambda: Text(words()), console=console, refresh_per_second=2, transient=True)


def how_it_goes(host: SimHost) -> str:
    """Return a line about a world."""
    robots = ", ".join(host.entity_names()) or "none"
    state, factor = host.state.name.lower(), host.real_time_factor
    return f"{state}, {host.time_s:.1f} s simulated, real-time factor {factor:.2f}, robots: {robots}"


def _task(arguments: argparse.Namespace) -> _Task:
    starts = [place_of("--start", text) for text in arguments.start]
    scene, floor_at = arguments.scene, None
    if arguments.suite or arguments.dataset:
        episode = episode_of(arguments)
        scene, floor_at = Path(str(episode.scene_config_path)), episode.start_position
        starts = starts or [(floor_at.x, floor_at.y, episode.start_yaw)]
    elif arguments.episode is not None:
        raise UserError("--episode is for --suite and --dataset; with --scene give --start")
    if scene is None and starts:
        raise UserError("--start needs a world: give --suite, --dataset or --scene")
    if scene is not None and not scene.is_file():
        raise InvalidFile(scene, "no such file")
    poses = [Pose2(*(*start, 0.0)[:3]) for start in starts if start is not None]
    namespaces = [namespace.strip("/") for namespace in arguments.namespace]
    if namespaces and len(namespaces) != len(poses):
        raise UserError(
            f"expected one --namespace for each robot, found {len(namespaces)} for {len(poses)}: "
            "every robot needs its --start"
        )
    if not namespaces:
        namespaces = [""] if len(poses) == 1 else [f"robot_{number}" for number in range(len(poses))]
    names = [namespace.replace("/", "_") or "robot" for namespace in namespaces]
    return _Task(scene, floor_at, list(zip(names, namespaces, poses, strict=True)))


def size_of(text: str) -> tuple[int, int]:
    """Return the width and height that --size gives."""
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if found is None:
        raise UserError(f"--size: expected WIDTHxHEIGHT such as 640x480, found '{text}'")
    return int(found[1]), int(found[2])


def real_time_factor_of(text: str) -> float | None:
    """Return a number of at least 0, or None for max."""
    if text == "max":
        return None
    try:
        return float(text)
    except ValueError:
        raise UserError(f"--rtf: expected a number or max, found '{text}'") from None
