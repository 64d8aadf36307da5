"""`proctor o3de-standin`: an O3DE Editor without the engine."""

from __future__ import annotations

import argparse
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.options import add_command
from proctor.cli.sim_host import (
    READY,
    how_it_goes,
    live_line,
    real_time_factor_of,
    size_of,
    stopped_by_signals,
)
from proctor.cli.terminal import DONE, INTERRUPTED, console, errors
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.o3de.standin.standin import StandIn, WorldSettings

O3DE_STANDIN_HELP = """\
pose as an O3DE Editor, without the engine
Pose as an O3DE Editor: its Python calls, its game mode and its ROS 2.

examples:
  proctor o3de-standin --suite houses-v1
  proctor o3de-standin --project my_project --rtf max --camera-hz 0
  proctor o3de-standin --suite houses-v1 --launcher

It poses as an O3DE Editor whose project has Proctor's agent in it: what o3de_sim and --env o3de ask for is
done by the agent's own code, on a made-up engine that is as strict as the real one. In game mode the level
is a world of the embedded simulator, with O3DE's topics, encodings and services; out of it there is no ROS 2.
With the gem SimulationInterfaces the game begins STOPPED, and robots are spawned; without it, the robot is
the prefab that stands in the level, and drives at once. The launcher has no agent: it loads saved levels.
A project keeps its levels; without --project it is a temporary one. --suite and --dataset put the meshes of
an exam's scenes into the project, so that they are seen as they are in the embedded world.

exit codes: 0 ended by SIGTERM, 1 the world broke, 2 user error, 130 interrupted
"""


def add_o3de_standin(commands: Any) -> None:
    """Add the command."""
    standin = add_command(commands, "o3de-standin", _stand_in, O3DE_STANDIN_HELP)
    exam = standin.add_mutually_exclusive_group()
    exam.add_argument("--suite", metavar="NAME", help="an exam that comes with Proctor")
    exam.add_argument("--dataset", type=Path, metavar="PATH", help="an episode file or folder of your own")
    standin.add_argument(
        "--project", type=Path, metavar="DIR", help="the project's folder (default: a temporary one)"
    )
    standin.add_argument(
        "--port", type=int, metavar="N", help="of the agent (default: what O3DE_AGENT_PORT says, else 8080)"
    )
    standin.add_argument(
        "--rtf", default="5", metavar="X", help="simulated seconds in a second, or max (default: 5)"
    )
    standin.add_argument(
        "--camera-hz", type=float, default=5.0, metavar="HZ", help="0 for no camera (default: 5)"
    )
    standin.add_argument("--scan-hz", type=float, default=30.0, metavar="HZ", help="at most 60 (default: 30)")
    standin.add_argument("--size", default="640x480", metavar="WxH", help="of pictures (default: 640x480)")
    standin.add_argument(
        "--no-simulation-interfaces", action="store_true", help="leave out the gem SimulationInterfaces"
    )
    standin.add_argument("--launcher", action="store_true", help="pose as the project's GameLauncher instead")
    standin.add_argument("--parent", type=int, metavar="PID", help=argparse.SUPPRESS)  # ends when this ends


def _stand_in(arguments: argparse.Namespace) -> int:
    width, height = size_of(arguments.size)
    real_time_factor = real_time_factor_of(arguments.rtf)
    if arguments.port is not None and not 0 <= arguments.port < 65536:
        raise UserError(f"--port: expected a port from 0 (any free one) to 65535, found {arguments.port}")
    if arguments.launcher and arguments.no_simulation_interfaces:
        raise UserError("--launcher needs the gem SimulationInterfaces: levels are loaded with it")

    from proctor.o3de.standin.standin import WorldSettings

    settings = WorldSettings(
        real_time_factor=real_time_factor,
        camera_hz=arguments.camera_hz,
        scan_hz=arguments.scan_hz,
        width=width,
        height=height,
        has_simulation_interfaces=not arguments.no_simulation_interfaces,
    )
    settings.check()
    with ExitStack() as stack:
        project = arguments.project
        if project is None:
            project = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="o3de_project_")))
        elif project.exists() and not project.is_dir():
            raise UserError(f"--project: expected a folder, found the file {project}")
        project = project.resolve()
        project.mkdir(parents=True, exist_ok=True)
        _export(arguments, project)
        pose = _launch if arguments.launcher else _edit
        signals = pose(project, settings, arguments)
    if signal.SIGINT in signals:
        errors.print("interrupted")
        return INTERRUPTED
    return DONE


def _export(arguments: argparse.Namespace, project: Path) -> None:
    """Put the meshes of an exam into the project."""
    if not (arguments.suite or arguments.dataset):
        return
    from proctor.core.registry import suite_path
    from proctor.exams.datasets import load_dataset
    from proctor.o3de_export.project import export_suite

    dataset = load_dataset(suite_path(arguments.suite) if arguments.suite else arguments.dataset)
    with console.status("writing the meshes of the exam into the project"):
        exported = export_suite(dataset, project)
    _say(f"{exported.changed} files of {arguments.suite or arguments.dataset} are new in the project")


def _edit(project: Path, settings: WorldSettings, arguments: argparse.Namespace) -> list[int]:
    from o3de_sim.agent_port import agent_port
    from o3de_sim.errors import O3DEError
    from proctor.o3de.standin.standin import StandIn

    try:
        port = agent_port() if arguments.port is None else arguments.port
        standin = StandIn(project, port=port, settings=settings)
    except O3DEError as error:
        raise UserError(error.message) from None
    with standin, stopped_by_signals(standin) as signals, live_line(lambda: _words(standin)):
        gem = "with" if settings.has_simulation_interfaces else "without"
        _say(f"an O3DE Editor {gem} the gem SimulationInterfaces, project {project}")
        token = standin.server.token_path or "that of the environment"
        _say(f"agent on 127.0.0.1 port {standin.server.port}, token: {token}. Ctrl-C ends it.")
        console.print(READY)
        standin.run(parent_pid=arguments.parent)
    return signals


def _launch(project: Path, settings: WorldSettings, arguments: argparse.Namespace) -> list[int]:
    from proctor.o3de.standin.asset_catalog import AssetCatalog
    from proctor.o3de.standin.prefab_files import prepare_project
    from proctor.o3de.standin.standin import launcher_rules
    from proctor.worlds.ros2.host.simulation_services import SimulationServices

    prepare_project(project)
    with settings.open(None) as host:
        SimulationServices(host, rules=launcher_rules(AssetCatalog(project)))
        with stopped_by_signals(host) as signals, live_line(lambda: how_it_goes(host)):
            _say(f"an O3DE GameLauncher, project {project}")
            levels = sorted(path.name for path in (project / "Levels").iterdir() if path.is_dir())
            _say(f"levels for /load_world: {', '.join(levels)}. Ctrl-C ends it.")
            console.print(READY)
            host.run(parent_pid=arguments.parent)
    return signals


def _words(standin: StandIn) -> str:
    level = standin.editor.level
    where = "no level" if level is None else f"level {level.name}, {len(level.live)} entities"
    world = standin.world
    return f"{where}, edit mode" if world is None else f"{where}, game mode: {how_it_goes(world.host)}"


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
