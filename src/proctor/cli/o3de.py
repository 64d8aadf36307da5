"""`proctor export-o3de` and `o3de-standin`: exams for an O3DE project, and an Editor without the engine."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from proctor.cli.options import add_command, add_dataset, add_option, add_scenes, dataset_of
from proctor.cli.sim_host import READY, how_it_goes, live_line, real_time_factor_of, size_of
from proctor.cli.terminal import DONE, console, exit_code_after, noted_signals
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.o3de.standin.standin import StandIn, WorldSettings
    from proctor.o3de_export.project import Export

EXPORT_O3DE_HELP = """\
write scenes and exams into an O3DE project
Write the scenes of an exam, and all else that runs it, into an O3DE project.

examples:
  proctor export-o3de --suite houses-v1 --out ~/O3DE/Projects/Exam
  proctor export-o3de --dataset my_exam --out ~/O3DE/Projects/Exam
  proctor export-o3de --scene room.json house.glb --out ~/O3DE/Projects/Exam

what it writes below DIR:
  Assets/Proctor/<scene>/     a glTF file for each object, and scene.json, which also runs in MuJoCo
  Assets/Proctor/textures/    the images that the meshes share
  Assets/Models/robot/        the robot's notes and a prefab to start from
  Editor/Scripts/             the agent that builds levels in the Editor, and what starts it
  episodes.json               the exam: proctor run --dataset DIR/episodes.json --env o3de ...

Files that are already right are left alone, so that the Asset Processor has nothing to do twice. A
bootstrap.py or robot.prefab of your own is never written over.
"""
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


def add_export_o3de(commands: Any) -> None:
    """Add the command."""
    export = add_command(commands, "export-o3de", _export, EXPORT_O3DE_HELP)
    what = add_dataset(export, required=True, note=" (proctor list)")
    text = "scene files, or meshes that are whole houses"
    add_option(what, "--scene FILE", Path, text, nargs="+")
    add_option(export, "--out DIR", Path, "the project's folder", required=True)
    add_scenes(export)


def add_o3de_standin(commands: Any) -> None:
    """Add the command."""
    standin = add_command(commands, "o3de-standin", _stand_in, O3DE_STANDIN_HELP)
    add_dataset(standin, required=False)
    add_option(standin, "--project DIR", Path, "the project's folder (default: a temporary one)")
    text = "of the agent (default: what O3DE_AGENT_PORT says, else 8080)"
    add_option(standin, "--port N", int, text)
    add_option(standin, "--rtf X", "5", "simulated seconds in a second, or max (default: 5)")
    add_option(standin, "--camera-hz HZ", 5.0, "0 for no camera (default: 5)")
    add_option(standin, "--scan-hz HZ", 30.0, "at most 60 (default: 30)")
    add_option(standin, "--size WxH", "640x480", "of pictures (default: 640x480)")
    add_option(standin, "--no-simulation-interfaces", bool, "leave out the gem SimulationInterfaces")
    add_option(standin, "--launcher", bool, "pose as the project's GameLauncher instead")
    add_option(standin, "--parent PID", int, argparse.SUPPRESS)  # ends when this ends


def _export(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import episodes_of
    from proctor.exams.vln.episode import Episode
    from proctor.o3de_export.project import export_scenes, export_suite, scenes_of

    columns = (TextColumn("scenes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        if arguments.scene is not None:
            task = bar.add_task("scenes", total=len(arguments.scene))
            exported = export_scenes(
                arguments.scene, arguments.out, tell=lambda done: bar.update(task, completed=done)
            )
        else:
            dataset = dataset_of(arguments)
            task = bar.add_task("scenes", total=len(scenes_of(episodes_of(dataset, Episode), dataset.path)))
            exported = export_suite(
                dataset, arguments.out, tell=lambda done: bar.update(task, completed=done)
            )
    _print_export(exported, arguments.out, with_episodes=arguments.scene is None)
    return DONE


def _print_export(exported: Export, out: Path, *, with_episodes: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("What")
    table.add_column("Files", justify="right")
    table.add_column("MB", justify="right")
    table.add_column(f"Where in {escape(str(out))}", overflow="fold")
    for row in exported.rows:
        table.add_row(row.what, str(row.files), f"{row.size_bytes / 1e6:.2f}", escape(row.where))
    console.print(table)
    total = sum(row.files for row in exported.rows)
    size_mb = sum(row.size_bytes for row in exported.rows) / 1e6
    console.print(f"{total} files, {size_mb:.1f} MB; {exported.changed} are new or changed.")
    console.say(*(f"note: {note}" for note in exported.notes))
    console.say(f"What to do next: {out / 'Assets/Proctor/README.md'}")
    if with_episodes:
        command = f"proctor run --dataset {shlex.quote(str(out / 'episodes.json'))} --policy oracle"
        console.say(f"Try the scenes without O3DE: {command}")


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
        _put_meshes(arguments, project)
        pose = _launch if arguments.launcher else _edit
        signals = pose(project, settings, arguments)
    return exit_code_after(signals)


def _put_meshes(arguments: argparse.Namespace, project: Path) -> None:
    """Put the meshes of an exam into the project."""
    if not (arguments.suite or arguments.dataset):
        return
    from proctor.o3de_export.project import export_suite

    dataset = dataset_of(arguments)
    with console.status("writing the meshes of the exam into the project"):
        exported = export_suite(dataset, project)
    console.say(f"{exported.changed} files of {arguments.suite or arguments.dataset} are new in the project")


def _edit(project: Path, settings: WorldSettings, arguments: argparse.Namespace) -> list[int]:
    from o3de_sim.constants import agent_port
    from o3de_sim.errors import O3DEError
    from proctor.o3de.standin.standin import StandIn

    try:
        port = agent_port() if arguments.port is None else arguments.port
        standin = StandIn(project, port=port, settings=settings)
    except O3DEError as error:
        raise UserError(error.message) from None
    with standin, noted_signals(standin.stop) as signals, live_line(lambda: _state_of(standin)):
        gem = "with" if settings.has_simulation_interfaces else "without"
        console.say(f"an O3DE Editor {gem} the gem SimulationInterfaces, project {project}")
        token = standin.server.token_path or "that of the environment"
        console.say(f"agent on 127.0.0.1 port {standin.server.port}, token: {token}. Ctrl-C ends it.")
        console.print(READY)
        standin.run(parent_pid=arguments.parent)
    return signals


def _launch(project: Path, settings: WorldSettings, arguments: argparse.Namespace) -> list[int]:
    from proctor.o3de.standin.project_files import AssetCatalog, prepare_project
    from proctor.o3de.standin.standin import launcher_rules
    from proctor.worlds.ros2.host.simulation_services import SimulationServices

    prepare_project(project)
    with settings.open(None) as host:
        SimulationServices(host, rules=launcher_rules(AssetCatalog(project)))
        with noted_signals(host.stop) as signals, live_line(lambda: how_it_goes(host)):
            console.say(f"an O3DE GameLauncher, project {project}")
            levels = sorted(path.name for path in (project / "Levels").iterdir() if path.is_dir())
            console.say(f"levels for /load_world: {', '.join(levels)}. Ctrl-C ends it.")
            console.print(READY)
            host.run(parent_pid=arguments.parent)
    return signals


def _state_of(standin: StandIn) -> str:
    level = standin.editor.level
    where = "no level" if level is None else f"level {level.name}, {len(level.live)} entities"
    world = standin.world
    return f"{where}, edit mode" if world is None else f"{where}, game mode: {how_it_goes(world)}"
