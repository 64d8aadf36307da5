"""`proctor skill-server`: navigate_to as a ROS 2 action."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

import proctor
from proctor.cli.navigation_options import episode_of
from proctor.cli.options import (
    add_command,
    add_dataset,
    add_option,
    add_robot,
    add_ros_arguments,
    allow_negative_places,
    place_of,
    read_options,
)
from proctor.cli.terminal import console, exit_code_after, noted_signals
from proctor.core.errors import InvalidFile, SimulationError, UserError
from proctor.core.types import Pose2

if TYPE_CHECKING:
    from proctor.maps.grid_map import GridMap
    from proctor.worlds.ros2.skill.skill_server import SkillServer

NAP_S = 0.5
SKILL_SERVER_HELP = """\
offer navigate_to as a ROS 2 action
Offer the skill navigate_to, planning and views for RViz on ROS 2.

examples:
  proctor skill-server --suite houses-v1 --episode house_64959_0 --robot-namespace ""
  proctor skill-server --scene my_house.json --namespace alice
  proctor skill-server --map house.yaml --robot-namespace "" --odom-origin 1,2,1.57 --limit v_max=0.5

A robot to try it with: proctor sim-host --suite houses-v1 --episode house_64959_0
The robot publishes odom and scan, and obeys cmd_vel. Where its odometry begins in the map is what /tf tells
of the frame map; --odom-origin says it where nobody does (with --episode: the episode's start). Ticks come
from /clock, or from the stamps of the odometry.

exit codes: 0 ended by SIGTERM, 1 the node broke, 2 user error, 130 interrupted
"""


class _World(NamedTuple):
    grid: GridMap
    floor_z: float
    start: Pose2 | None
    goal: tuple[float, float]  # somewhere to go, to try it


def add_skill_server(commands: Any) -> None:
    """Add the command."""
    server = add_command(commands, "skill-server", _serve, SKILL_SERVER_HELP)
    allow_negative_places(server)
    where = add_dataset(server, required=True)
    add_option(where, "--scene FILE", Path, "a scene file, or a house that is a mesh")
    add_option(where, "--map FILE", Path, "a map: .yaml with its .pgm, or .npz")
    add_option(server, "--episode ID", str, "of the exam: gives the scene")
    add_option(server, "--namespace NS", "robot_0", "of the actions (default: robot_0)")
    text = 'of the robot\'s topics, "" for /odom, /scan and /cmd_vel (default: that of the actions)'
    add_option(server, "--robot-namespace NS", str, text)
    text = "where in the map the odometry begins, if /tf does not tell"
    add_option(server, "--odom-origin X,Y[,YAW]", str, text)
    add_option(server, "--planner NAME", "grid", "grid, rrt, rrt_star, prm or rrt_connect")
    add_robot(server)
    add_option(server, "--limit KEY=VALUE", [], "of the base: v_max, omega_max, a_max, alpha_max or drive")
    add_option(server, "--no-scan", bool, "the robot has no laser scanner")
    add_ros_arguments(server)


def _serve(arguments: argparse.Namespace) -> int:
    from proctor.navigation.planner import planner_name
    from proctor.robots.dynamics import Dynamics
    from proctor.robots.spec import load_robot

    planner, robot = planner_name(arguments.planner), load_robot(arguments.robot)
    limits = Dynamics.of({**msgspec.structs.asdict(robot.dynamics), **read_options(arguments.limit)})
    origin = place_of("--odom-origin", arguments.odom_origin)
    world = _world(arguments)

    from proctor.worlds.ros2.skill.navigator import LIVE_PARAMS, NavigatorOptions
    from proctor.worlds.ros2.skill.skill_server import SkillServer

    options = NavigatorOptions(
        params=msgspec.structs.replace(LIVE_PARAMS, planner=planner, radius_m=robot.radius_m),
        robot=msgspec.structs.replace(robot, dynamics=limits),
        robot_namespace=arguments.robot_namespace,
        odom_origin=world.start if origin is None else Pose2(*(*origin, 0.0)[:3]),
        floor_z=world.floor_z,
        uses_scan=not arguments.no_scan,
    )
    with (
        noted_signals() as signals,
        SkillServer(
            world.grid, namespace=arguments.namespace, options=options, ros_args=arguments.ros_args
        ) as server,
    ):
        with console.status("starting the planner (the first time, half a minute of compiling)"):
            while not signals and not server.wait_until_ready(NAP_S):
                pass
        _announce(server, world)
        while not signals:
            if not server.is_listening:
                raise SimulationError("the skill server has ended: see the error above")
            time.sleep(NAP_S)
    return exit_code_after(signals)


def _world(arguments: argparse.Namespace) -> _World:
    """Return the map that the command line asks for."""
    from proctor.maps.map_files import load_map
    from proctor.robots.spec import load_robot
    from proctor.scenes.scene import Scene

    if arguments.map is not None or arguments.scene is not None:
        if arguments.episode is not None:
            raise UserError("--episode is for --suite and --dataset")
        if arguments.map is not None:
            return _World(load_map(arguments.map), 0.0, None, (1.0, 0.0))
    at, start, goal = None, None, (1.0, 0.0)
    scene: Path = arguments.scene
    if scene is None:
        episode = episode_of(arguments)
        scene, at = Path(str(episode.scene_config_path)), episode.start_position
        start, goal = Pose2(at.x, at.y, episode.start_yaw), (episode.goal.x, episode.goal.y)
    if not scene.is_file():
        raise InvalidFile(scene, "no such file")
    loaded = Scene.load(scene)
    floor_z = loaded.floor_near(at)
    grid = loaded.map(floor_z, height_band_m=load_robot(arguments.robot).height_band_m)
    return _World(grid, floor_z, start, goal)


def _command_to_try(action_name: str, x: float, y: float) -> str:
    """Return a command that sends a goal: of `ros2`, or of this checkout where there is no `ros2`."""
    example = Path(proctor.__file__).parents[2] / "examples" / "ros2" / "navigate.py"
    if shutil.which("ros2") is None and example.is_file():
        return shlex.join([sys.executable, str(example), f"{x:.2f}", f"{y:.2f}", "--action", action_name])
    return (
        f"ros2 action send_goal {action_name} plan_msgs/action/SkillExecution '{{skill_request: "
        f'{{skill_list: [{{skill: navigate_to, params: [{{key: goal_pos, value: "[{x:.2f}, {y:.2f}, 0]"}}, '
        '{key: timeout, value: "60.0"}]}]}}\' --feedback'
    )


def _announce(server: SkillServer, world: _World) -> None:
    """Say what there is, and the line with which to try it."""
    below = server.get_namespace().rstrip("/")
    console.say(
        f"actions: {server.action_name} {below}/compute_path_to_pose {below}/generate_trajectory",
        f"for RViz: {below}/map {below}/plan {below}/driven. Ctrl-C ends it.",
        "try it:",
        _command_to_try(server.action_name, *world.goal),
        "ready",
    )
