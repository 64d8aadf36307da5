"""`proctor look`: pictures of a scene or a map, before anything is driven in it."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.import_world import scene_file
from proctor.cli.options import add_command, add_models, add_option, allow_negative_places, place_of
from proctor.cli.terminal import DONE, console
from proctor.core.errors import UnknownName, UserError
from proctor.core.types import Pose2

if TYPE_CHECKING:
    from PIL import Image

    from proctor.maps.grid_map import GridMap
    from proctor.scenes.scene import Scene

MAP_SUFFIXES = (".yaml", ".yml", ".npz", ".map")
PLAN_PX = 1400
DIRECTIONS = 24
SIGHT_M = 40.0
DOOR_HALVES_M = (0.0, 0.3, 0.75)
"""Gaps twice as wide as these are closed to find rooms: none, those of doors, those of wide doors."""
PAGE = """\
draw a scene or a map: a view, the plan and the occupancy map
Draw what the robot's camera sees at a place, the plan of the scene and its occupancy map, as PNG files.

examples:
  proctor look my_house/scene.json
  proctor look house.glb --at 2,1.5,1.57 --out pictures
  proctor look house_64959                   (a scene of a suite)
  proctor look worlds/small_house.world      (as proctor import-world reads it)
  proctor look my_map.yaml

what it writes, with the name of the scene before it:
  _view.png     the picture of the robot's camera
  _plan.png     the scene from above with the names of rooms and objects (not of a map)
  _map.png      what is free, occupied, unknown and outside, and what is too near for the robot

Plan and map have axes in metres, in which --start, --goal and --at are given, and show where the view is
from.
Without --at the robot stands in the largest room and looks to where it can see the farthest; where there
are no rooms it stands a few metres before the objects and looks at them.
"""


def add_look(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "look", _look, PAGE)
    allow_negative_places(command)
    text = "a scene file, a mesh, a world, a map, or the id of a suite's scene"
    add_option(command, "scene SCENE", str, text)
    add_option(command, "--at X,Y[,YAW]", str, "where the robot stands: metres and radians")
    add_option(command, "--out DIR", Path(), "where to write (default: here)")
    add_models(command)


def _look(arguments: argparse.Namespace) -> int:
    from proctor.plots.figure import save_png

    at = place_of("--at", arguments.at)
    given = _find(arguments.scene)
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {arguments.out} cannot be made: {error.strerror}") from None
    with scene_file(given, arguments) as path, console.status("drawing"):
        pictures = _pictures(path, at)
    name = given.resolve().parent.name if given.name == "scene.json" else given.stem
    for what, image in pictures.items():
        file = arguments.out / f"{name}_{what}.png"
        save_png(image, file)
        console.say(f"{what}: {file} ({image.width} x {image.height})")
    return DONE


def _find(given: str) -> Path:
    """Return the file that is meant: a path, or a scene of a suite by its id."""
    from proctor.core.registry import names, suite_path
    from proctor.scenes.mesh_files import find_scene

    path = Path(given)
    if path.is_file():
        return path
    if path.suffix or "/" in given:
        raise UserError(f"{given}: no such file")
    suites = map(suite_path, names("suite"))
    folders = {(suite if suite.is_dir() else suite.parent) / "scenes" for suite in suites}
    found = [
        scene for folder in folders if folder.is_dir() if (scene := find_scene(folder, given)) is not None
    ]
    if not found:
        ids = [scene.stem for folder in folders if folder.is_dir() for scene in folder.glob("*.json")]
        raise UnknownName("scene", given, ids, hint="or give the path of a file")
    return found[0]


def _pictures(path: Path, at: tuple[float, ...] | None) -> dict[str, Image.Image]:
    """Return the pictures of a scene or a map, by what they show."""
    from proctor.plots.floor import draw_place, map_plan
    from proctor.robots.spec import standard_robot
    from proctor.scenes.scene import Scene

    robot = standard_robot()

    def drawn_map() -> Image.Image:
        plan, legend = map_plan(grid, robot.radius_m)
        return draw_place(plan, pose, robot, legend=legend)

    if path.suffix.lower() in MAP_SUFFIXES:
        from proctor.maps.map_files import load_map
        from proctor.scenes.scene_map import scene_of_map

        grid = load_map(path)
        pose = _pose(grid, at)
        view = _view(Scene(scene_of_map(grid, path.stem, (pose.x, pose.y))), pose, 0.0)
        return {"view": view, "map": drawn_map()}
    from proctor.plots.plan import draw_plan, object_names

    scene = Scene.load(path)
    floor_z, grid = scene.floor_near(), scene.map()
    pose = _pose(grid, at)
    plan = draw_plan(scene, width_px=PLAN_PX, floor_z=floor_z, names=False)
    drawn_plan = draw_place(plan, pose, robot, objects=object_names(scene, floor_z))
    return {"view": _view(scene, pose, floor_z), "plan": drawn_plan, "map": drawn_map()}


def _pose(grid: GridMap, at: tuple[float, ...] | None) -> Pose2:
    """Return where to look from. Without a heading, it is that of the farthest obstacle in sight."""
    import numpy as np

    at = at or _roomy_place(grid)
    if len(at) == 3:
        return Pose2(*at)
    distances = np.arange(0.1, SIGHT_M, 0.1)
    sight_m = {}
    for yaw in np.arange(DIRECTIONS) * math.tau / DIRECTIONS:
        ray = np.array(at) + distances[:, None] * (math.cos(yaw), math.sin(yaw))
        blocked = grid.clearances(ray) <= 0
        sight_m[float(yaw)] = float(distances[np.argmax(blocked)]) if blocked.any() else 0.0
    return Pose2(at[0], at[1], max(sight_m, key=lambda yaw: sight_m[yaw]))


def _roomy_place(grid: GridMap) -> tuple[float, ...]:
    """Return the middle of the largest room, or a pose a few metres before whatever stands in the open."""
    import numpy as np
    from scipy.ndimage import label

    from proctor.kernels.clearance import clearances

    free, solid = ~grid.occupied & ~grid.outside, grid.occupied & ~grid.outside
    cell_m, open_air = grid.resolution_m, grid.outside.copy()
    room_m = clearances(solid, cell_m)
    if not grid.ends:
        open_air[[0, -1]] = open_air[:, [0, -1]] = True
    indoors = np.zeros_like(free)
    for half_m in DOOR_HALVES_M:
        parts, _ = label(~solid & (room_m > half_m))
        indoors |= free & (parts > 0) & ~np.isin(parts, parts[open_air])
    middle = np.argwhere(solid).mean(axis=0) if solid.any() else np.array(free.shape) / 2
    if indoors.any():
        regions, _ = label(free)
        largest = regions == np.argmax(np.bincount(regions[indoors]))
        score = np.where(indoors & largest, grid.clearance_m, -np.inf)
    else:
        away_m = np.hypot(*(np.indices(free.shape) - middle[:, None, None])) * cell_m
        score = np.where(free & (grid.clearance_m > 0.4), -np.abs(away_m - 3.0), -np.inf)
    row, column = (int(index) for index in np.unravel_index(np.argmax(score), free.shape))
    x, y = (grid.origin_world[i] + (index + 0.5) * cell_m for i, index in enumerate((column, row)))
    return (x, y) if indoors.any() else (x, y, math.atan2(middle[0] - row, middle[1] - column))


def _view(scene: Scene, pose: Pose2, floor_z: float) -> Image.Image:
    from PIL import Image

    from proctor.robots.spec import Camera, standard_robot
    from proctor.worlds.mujoco.wheeled.camera import RgbdCamera
    from proctor.worlds.mujoco.wheeled.world import World

    world = World(scene, standard_robot(camera=Camera(width=1280, height=960)), floor_z=floor_z)
    world.reset(pose)
    camera = RgbdCamera(world)
    rgb, _ = camera.render()
    camera.close()
    return Image.fromarray(rgb)
