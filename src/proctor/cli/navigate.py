"""`proctor navigate`: send the robot somewhere, and see how it gets there."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from proctor.cli.import_world import scene_file
from proctor.cli.navigation_options import add_navigation_options, episode_of, navigation_params
from proctor.cli.options import (
    add_command,
    add_dataset,
    add_models,
    add_option,
    add_robot,
    allow_negative_places,
    place_of,
)
from proctor.cli.terminal import DONE, console, errors
from proctor.core.documents import write_atomically
from proctor.core.errors import InvalidFile, UserError
from proctor.core.geometry import wrap_angle
from proctor.core.types import Pose2

if TYPE_CHECKING:
    from proctor.maps.grid_map import GridMap
    from proctor.navigation.skill.drive import Drive
    from proctor.navigation.skill.goal import NavigationGoal
    from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator

SUFFIXES = {"plot": ".png", "json": ".json", "video": ".mp4"}
NAVIGATE_HELP = """\
send the robot to a place, and plot or film how it gets there
Send the robot of the embedded world to a place with the skill `navigate_to`.

examples:
  proctor navigate --suite houses-v1 --episode house_64959_0 --plot drive.png
  proctor navigate --suite houses-v1 --episode house_64959_0 --planner rrt_star --seed 3 --json drive.json
  proctor navigate --scene my_house.json --start -1,2,1.57 --goal 4.5,2 --video drive.mp4
  proctor navigate --scene barn/world_0.world --start -2.25,3 --goal -2.25,13 --plot drive.png
  proctor navigate --map my_map.yaml --start 1,2 --goal 4.5,2 --plot drive.png
  proctor navigate --map arena.map --scenario arena.map.scen:12 --plot drive.png
  proctor navigate --suite houses-v1 --episode house_64959_0 --robot turtlebot3-burger
  proctor navigate --suite houses-v1 --episode house_64959_0 --goal-checker-option position_tolerance_m=0.02

Places are x,y in metres in the world frame. A third number is a heading in radians: 0 looks along +x, 1.57
along +y. Without one the robot starts with the heading 0, and may arrive with any.

exit codes: 0 arrived, 1 did not arrive, 2 user error, 130 interrupted
"""


class _Task(NamedTuple):
    scene: Path  # of the scene, or of the map
    floor_z: float
    start: Pose2
    goal: NavigationGoal
    grid: GridMap | None  # the map, if it was given instead of a scene


def add_navigate(commands: Any) -> None:
    """Add the command."""
    navigate = add_command(commands, "navigate", _navigate, NAVIGATE_HELP)
    allow_negative_places(navigate)
    where = add_dataset(navigate, required=True)
    text = "a scene file, a house that is a mesh, or a world of Gazebo or MuJoCo (proctor import-world)"
    add_option(where, "--scene FILE", Path, text)
    add_option(where, "--map FILE", Path, "a map: map_server's .yaml, .npz, or MovingAI's .map")
    add_models(navigate)
    text = "of a .map: its .scen file, whose N-th line (default: 1) gives start and goal"
    add_option(navigate, "--scenario SCEN[:N]", str, text)
    add_option(navigate, "--cell M", float, "the side of a .map's cells in metres (default: 0.5)")
    text = "what unknown cells of the map count as (default: free)"
    add_option(navigate, "--unknown", str, text, choices=("free", "occupied"))
    add_option(navigate, "--episode ID", str, "of the exam: gives scene, start and goal")
    add_option(navigate, "--start X,Y[,YAW]", str, "metres and radians (default: the episode's)")
    add_option(navigate, "--goal X,Y[,YAW]", str, "metres and radians (default: the episode's)")
    add_robot(navigate)
    add_navigation_options(navigate)
    text = "simulated seconds to get there (default: 60; of a long --scenario, 4 for each metre)"
    add_option(navigate, "--timeout S", float, text)
    add_option(navigate, "--seed", 0, "for planners that draw at random (default: 0)")
    add_option(navigate, "--plot PNG", Path, "draw map, paths, speeds and what was driven")
    add_option(navigate, "--json JSON", Path, "write result, timings and paths")
    add_option(navigate, "--video MP4", Path, "film it from above, at real speed")


def _navigate(arguments: argparse.Namespace) -> int:
    with ExitStack() as files:
        if arguments.scene is not None:
            arguments.scene = files.enter_context(scene_file(arguments.scene, arguments))
        elif arguments.models or arguments.skip_missing:
            raise UserError("--models and --skip-missing are for --scene with a world")
        return _go(arguments)


def _go(arguments: argparse.Namespace) -> int:
    from proctor.robots.spec import load_robot
    from proctor.scenes.scene import Scene
    from proctor.worlds.mujoco.wheeled.navigator import EmbeddedNavigator

    robot = load_robot(arguments.robot)
    params = navigation_params(arguments, robot.radius_m)
    _check_outputs(arguments)
    task = _task(arguments)
    writers = _writers(arguments, task)
    notes = Scene.load(task.scene).missing_file_notes() if task.grid is None else []  # a map names no files
    console.say(*(f"note: {note}" for note in notes))
    scene = None
    if task.grid is not None:
        from proctor.scenes.scene_map import scene_of_map

        scene = scene_of_map(task.grid, task.scene.name, (task.start.x, task.start.y))
    with EmbeddedNavigator(
        task.scene,
        task.start,
        scene=scene,
        grid=task.grid,
        params=params,
        robot=robot,
        floor_z=task.floor_z,
        goals=[task.goal.xy],
    ) as navigator:
        with console.status("starting the planner (the first time, half a minute of compiling)"):
            navigator.wait_until_ready()
        drive = _drive(navigator, task)
    console.print(_summary(drive))
    for what, file, write in writers:
        with console.status(f"writing {file}"):
            try:
                write(drive)
            except OSError as error:
                raise UserError(f"cannot write {file}: {error.strerror or error}") from error
        console.say(f"{what}: {file}")
    if drive.arrived:
        return DONE
    errors.print("[red]not arrived:[/red]", end=" ")
    errors.say(f"{drive.result['reason']}: {drive.result['message']}")
    return 1


def _task(arguments: argparse.Namespace) -> _Task:
    """Return where to go; what the command line does not say, the episode does."""
    from proctor.navigation.skill.goal import MAX_TIMEOUT_S, NavigationGoal
    from proctor.scenes.scene import Scene

    start = place_of("--start", arguments.start)
    goal = place_of("--goal", arguments.goal)
    timeout_s = 60.0 if arguments.timeout is None else arguments.timeout
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise UserError(
            f"--timeout: expected seconds above 0, at most {MAX_TIMEOUT_S:.0f}, found {timeout_s}"
        )
    _check_map_options(arguments)
    if arguments.scenario is not None:
        first, last, length_m = _scenario(arguments)
        start, goal = start or first, goal or last
        if arguments.timeout is None:
            timeout_s = max(timeout_s, min(4 * length_m, MAX_TIMEOUT_S))
    at = None
    scene: Path = arguments.scene or arguments.map
    if scene is None:
        episode = episode_of(arguments)
        scene, at = Path(episode.scene_config_path), episode.start_position
        start = start or (at.x, at.y, episode.start_yaw)
        goal = goal or (episode.goal.x, episode.goal.y)
    elif arguments.episode is not None:
        raise UserError(
            "--episode is for --suite and --dataset; with --scene and --map give --start and --goal"
        )
    if start is None or goal is None:
        given = "--scene" if arguments.map is None else "--map"
        raise UserError(f"{given} needs both --start X,Y[,YAW] and --goal X,Y[,YAW]")
    if not scene.is_file():
        raise InvalidFile(scene, "no such file")
    x, y, yaw = (*start, 0.0)[:3]
    goal_yaw = wrap_angle(goal[2]) if len(goal) == 3 else None
    to = NavigationGoal((goal[0], goal[1], 0.0), goal_yaw, timeout_s)
    grid = None if arguments.map is None else _map(arguments, {"--start": (x, y), "--goal": to.xy})
    floor_z = Scene.load(scene).floor_near(at) if grid is None else 0.0
    return _Task(scene, floor_z, Pose2(x, y, yaw), to, grid)


def _check_map_options(arguments: argparse.Namespace) -> None:
    """Refuse options of maps, and of MovingAI's maps, where there is none."""
    if arguments.unknown is not None and arguments.map is None:
        raise UserError("--unknown is for --map")
    for option in ("scenario", "cell"):
        is_movingai = arguments.map is not None and arguments.map.suffix == ".map"
        if getattr(arguments, option) is not None and not is_movingai:
            raise UserError(f"--{option} is for --map with a .map file of MovingAI")
    if arguments.cell is None:
        from proctor.maps.movingai import CELL_M

        arguments.cell = CELL_M


def _scenario(arguments: argparse.Namespace) -> tuple[tuple[float, float], tuple[float, float], float]:
    """Return start, goal and the length of the shortest path between them, on a grid, of --scenario."""
    from proctor.maps.map_files import load_map
    from proctor.maps.movingai import load_scenario

    scenario = load_scenario(arguments.scenario)
    grid = load_map(arguments.map, cell_m=arguments.cell)
    start, goal = scenario.places(grid, arguments.map, arguments.cell)
    length_m = scenario.optimal_length * arguments.cell
    console.say(f"Scenario in line {scenario.line}: {length_m:.2f} m on the grid of its cells")
    return start, goal, length_m


def _map(arguments: argparse.Namespace, places: dict[str, tuple[float, float]]) -> GridMap:
    """Return the map that was given, if these places are on it."""
    from proctor.maps.map_files import load_map

    grid = load_map(arguments.map, unknown=arguments.unknown or "free", cell_m=arguments.cell)
    for option, (x, y) in places.items():
        if not grid.field.covers(x, y):
            (left, bottom), (rows, columns) = grid.origin_world, grid.occupied.shape
            right, top = left + columns * grid.resolution_m, bottom + rows * grid.resolution_m
            reach = f"x from {left:.2f} to {right:.2f} and y from {bottom:.2f} to {top:.2f}"
            raise UserError(f"{option}: {x:g},{y:g} is outside of the map {arguments.map}, which has {reach}")
    return grid


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before anything is driven."""
    taken: set[Path] = set()
    for name, suffix in SUFFIXES.items():
        file: Path | None = getattr(arguments, name)
        if file is None:
            continue
        if file.suffix.lower() != suffix:
            raise UserError(f"--{name}: expected a file name that ends with {suffix}, found '{file}'")
        if file.is_dir():
            raise UserError(f"--{name}: {file} is a folder, expected the name of a file")
        if file.resolve() in taken:
            raise UserError(f"--{name}: {file} is written already; give each file its own name")
        taken.add(file.resolve())
        try:
            with TemporaryFile(dir=file.parent):
                pass
        except OSError as error:
            raise UserError(f"--{name}: cannot write to {file.parent}: {error.strerror}") from None


def _writers(arguments: argparse.Namespace, task: _Task) -> list[tuple[str, Path, Callable[[Drive], None]]]:
    """Return what is to be written; the packages for it are there, or this fails."""
    writers: list[tuple[str, Path, Callable[[Drive], None]]] = []
    if arguments.json is not None:
        writers.append(("Result", arguments.json, lambda drive: _write_document(drive, arguments.json)))
    if arguments.plot is not None:
        from proctor.report.drive_plot import save_plot

        writers.append(("Plot", arguments.plot, lambda drive: save_plot(drive, arguments.plot)))
    if arguments.video is not None:
        from proctor.plots.plan import draw_plan
        from proctor.report.drive_video import save_video
        from proctor.scenes.scene import Scene

        def film(drive: Drive) -> None:
            plan = None
            if task.grid is None:
                plan = draw_plan(Scene.load(task.scene), width_px=1920, floor_z=task.floor_z)
            save_video(drive, arguments.video, backdrop=plan)

        writers.append(("Video", arguments.video, film))
    return writers


def _write_document(drive: Drive, file: Path) -> None:
    """Write a drive as JSON, one line for each key: paths are long."""
    encode = msgspec.json.encode
    lines = [b" " + encode(key) + b": " + encode(value) for key, value in drive.document().items()]
    write_atomically(file, b"{\n" + b",\n".join(lines) + b"\n}\n")


def _drive(navigator: EmbeddedNavigator, task: _Task) -> Drive:
    """Let the robot go, and show how far it is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[numbers]}"),
    )
    ticks, told = 0, ""
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        shown = bar.add_task("Starting the planner", total=100, numbers="")

        def show(feedback: dict[str, Any]) -> None:
            nonlocal ticks, told
            ticks += 1  # sixty in a simulated second; the numbers are shown ten times in it
            message = feedback["message"]
            if message != told and feedback["state"] != "FAILED" and not console.is_terminal:
                console.print(message, markup=False)
            if (message != told or ticks % 6 == 0) and feedback["distance_to_goal"] is not None:
                ahead_mps = math.hypot(*feedback["current_velocity"][:2])
                left_m = feedback["distance_to_goal"]
                numbers = f"{left_m:.2f} m to go in a straight line, {ahead_mps:.2f} m/s"
                bar.update(shown, description=message, completed=feedback["progress"], numbers=numbers)
            told = message

        return navigator.navigate(task.goal, on_tick=show)


def _length(metres: float) -> str:
    return f"{metres:.2f} m" if metres >= 1 else f"{100 * metres:.1f} cm"


def _summary(drive: Drive) -> Table:
    result, log = drive.result, drive.log
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    row = table.add_row
    row("status", "[green]succeeded[/green]" if drive.arrived else f"[red]failed[/red] ({result['reason']})")
    if result["final_distance"] is not None:
        row("distance to goal", f"{_length(result['final_distance'])} in a straight line")
    if "final_yaw_error" in result:
        row("heading error", f"{math.degrees(result['final_yaw_error']):.2f}°")
    row("time", f"{result['total_time']:.1f} s, of simulation")
    if drive.path is not None:
        row("path", f"{drive.path.length_m:.2f} m planned by {drive.planner}, {log.length_m:.2f} m driven")
    off_cm = 100 * abs(log.cross_track_m)
    if len(off_cm):
        row("cross-track error", f"{math.sqrt((off_cm**2).mean()):.1f} cm RMS, {off_cm.max():.1f} cm at most")
    spent = [f"{name} {1e3 * seconds:.1f} ms" for name, seconds in drive.timings_s.items()]
    row("wall time", ", ".join(spent) or "nothing was planned")
    row("replanned", f"{len(drive.replanned)} times")
    row("recoveries", str(drive.recoveries))
    return table
