"""`proctor look`: pictures of a scene or a map, before anything is driven in it."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.cli.import_world import scene_file
from proctor.cli.options import add_command, add_option, allow_negative_places, place_of
from proctor.cli.terminal import DONE, console
from proctor.core.errors import UnknownName, UserError
from proctor.core.types import Pose2

if TYPE_CHECKING:
    from PIL import Image

    from proctor.maps.grid_map import GridMap
    from proctor.plots.plan import Plan
    from proctor.scenes.scene import Scene

MAP_SUFFIXES = (".yaml", ".yml", ".npz", ".map")
MAP_PX = 900
DIRECTIONS = 24
FREE, OCCUPIED, UNKNOWN, OUTSIDE = (250, 250, 247), (52, 56, 66), (205, 208, 212), (160, 165, 175)
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
  _plan.png     the scene from above, and from where the view is (not of a map)
  _map.png      where the robot cannot be: dark is occupied, grey is unknown or outside

Without --at the robot stands where there is the most room, and looks to where it can see the farthest.
"""


def add_look(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "look", _look, PAGE)
    allow_negative_places(command)
    text = "a scene file, a mesh, a world, a map, or the id of a suite's scene"
    add_option(command, "scene SCENE", str, text)
    add_option(command, "--at X,Y[,YAW]", str, "where the robot stands: metres and radians")
    add_option(command, "--out DIR", Path(), "where to write (default: here)")


def _look(arguments: argparse.Namespace) -> int:
    from proctor.plots.figure import save_png

    at = place_of("--at", arguments.at)
    given = _find(arguments.scene)
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out: {arguments.out} cannot be made: {error.strerror}") from None
    with scene_file(given) as path, console.status("drawing"):
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
    from proctor.scenes.scene import Scene

    if path.suffix.lower() in MAP_SUFFIXES:
        from proctor.maps.map_files import load_map
        from proctor.scenes.scene_map import scene_of_map

        grid = load_map(path)
        pose = _pose(grid, at)
        view = _view(Scene(scene_of_map(grid, path.stem, (pose.x, pose.y))), pose, 0.0)
        return {"view": view, "map": _map(grid, pose)}
    from proctor.plots.plan import draw_plan

    scene = Scene.load(path)
    floor_z, grid = scene.floor_near(), scene.map()
    pose = _pose(grid, at)
    plan = _marked(draw_plan(scene, width_px=MAP_PX, floor_z=floor_z), pose)
    return {"view": _view(scene, pose, floor_z), "plan": plan, "map": _map(grid, pose)}


def _pose(grid: GridMap, at: tuple[float, ...] | None) -> Pose2:
    """Return where to look from. Without a heading, it is that of the farthest obstacle in sight."""
    import numpy as np

    if at is not None and len(at) == 3:
        return Pose2(*at)
    x, y = at or _roomy_place(grid)
    distances = np.arange(0.1, 15.0, 0.1)
    sight_m = {}
    for yaw in np.arange(DIRECTIONS) * math.tau / DIRECTIONS:
        ray = np.array([x, y]) + distances[:, None] * (math.cos(yaw), math.sin(yaw))
        blocked = grid.clearances(ray) <= 0
        sight_m[float(yaw)] = float(distances[np.argmax(blocked)]) if blocked.any() else 0.0
    return Pose2(x, y, max(sight_m, key=lambda yaw: sight_m[yaw]))


def _roomy_place(grid: GridMap) -> tuple[float, float]:
    """Return the middle of the largest room, or a place a few metres before whatever stands in the open."""
    import numpy as np

    from proctor.scenes.surface_grid import touching_border

    inside = ~grid.occupied & ~grid.outside
    rooms = inside & ~touching_border(inside)  # a house stands in the middle of much free floor
    score = np.where(rooms, grid.clearance_m, -np.inf)
    if not rooms.any() and grid.occupied.any():
        cells = np.indices(inside.shape) - np.argwhere(grid.occupied).mean(axis=0)[:, None, None]
        away_m = np.hypot(*cells) * grid.resolution_m
        score = np.where(inside & (grid.clearance_m > 0.4), -np.abs(away_m - 3.0), -np.inf)
    row, column = np.unravel_index(np.argmax(score), score.shape)
    left, bottom = grid.origin_world
    return left + (float(column) + 0.5) * grid.resolution_m, bottom + (float(row) + 0.5) * grid.resolution_m


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


def _map(grid: GridMap, pose: Pose2) -> Image.Image:
    import numpy as np
    from PIL import Image

    from proctor.plots.plan import Plan

    shades = np.full((*grid.occupied.shape, 3), FREE, dtype=np.uint8)
    for cells, color in ((grid.occupied, OCCUPIED), (grid.unknown, UNKNOWN), (grid.outside, OUTSIDE)):
        shades[cells] = color
    rows, columns = grid.occupied.shape
    scale = math.ceil(MAP_PX / max(rows, columns))
    image = Image.fromarray(shades[::-1]).resize((columns * scale, rows * scale), Image.Resampling.NEAREST)
    return _marked(Plan(image, grid.origin_world, grid.resolution_m / scale), pose)


def _marked(plan: Plan, pose: Pose2) -> Image.Image:
    """Draw on a plan where the view is from, and what the camera takes in of it."""
    from matplotlib.patches import Wedge

    from proctor.plots.figure import image_of
    from proctor.plots.plan import plan_axes
    from proctor.plots.trajectory import RING
    from proctor.robots.spec import standard_robot

    camera = standard_robot().camera
    half = math.atan(math.tan(math.radians(camera.fov_deg) / 2) * camera.width / camera.height)
    angles = (math.degrees(pose.yaw - half), math.degrees(pose.yaw + half))
    reach_m = max(plan.image.size) / 14 * plan.metres_per_pixel
    axes = plan_axes(plan)
    axes.add_patch(Wedge((pose.x, pose.y), reach_m, *angles, color="#183ec8", alpha=0.25, zorder=5))
    axes.plot(pose.x, pose.y, **RING, markersize=11, markeredgewidth=4, zorder=6)
    return image_of(axes)
