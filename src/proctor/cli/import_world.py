"""`proctor import-world`: worlds of Gazebo and MuJoCo as scenes."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from proctor.cli.options import add_command, add_models, add_option
from proctor.cli.terminal import DONE, console
from proctor.core.errors import InvalidFile, UserError

if TYPE_CHECKING:
    from proctor.scenes.scene_config import SceneObject
    from proctor.scenes.world_import import ForeignWorld, Imported

WORLD_SUFFIXES = (".world", ".sdf", ".xml", ".mjcf")
NAMES_SHOWN = 5
PAGE = """\
turn a world of Gazebo (SDF) or MuJoCo (MJCF) into a scene
Turn a world of Gazebo (.world, .sdf) or a scene of MuJoCo (.xml) into a scene folder that all commands take.

examples:
  proctor import-world worlds/small_house.world --out my_house
  proctor import-world warehouse.sdf --models ~/gazebo_models --out warehouse
  proctor import-world kitchen.xml --out kitchen
  proctor look my_house/scene.json
  proctor navigate --scene my_house/scene.json --start 0,0 --goal 3,2

what it writes into the folder:
  scene.json    one object for each model: what is seen of it, and what is bumped into, scanned and mapped
  meshes/       its meshes, with their textures, as .glb files

Models of Gazebo are looked for in --models, in `models` beside the file and in the folder above it, in
GZ_SIM_RESOURCE_PATH and GAZEBO_MODEL_PATH, and in Fuel's cache (~/.gz/fuel). docs/other-worlds.md lists all
folders; files elsewhere are never read.
Everything stands still; what a scene cannot hold (joints, plugins, heightmaps) is listed at the end.
"""


def add_import_world(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "import-world", _import_world, PAGE)
    add_option(command, "file FILE", Path, "a world: .world, .sdf, .xml or .mjcf")
    add_option(command, "--out DIR", Path, "the scene's folder (default: the file's name, here)")
    add_models(command)
    default = "found from its ground planes, see docs/other-worlds.md"
    add_option(command, "--floor Z", float, f"the height of its floor, which becomes 0 (default: {default})")


def read_world(file: Path, arguments: argparse.Namespace) -> ForeignWorld:
    """Read a world of any format, by its root element, with --models and --skip-missing."""
    from proctor.scenes.sdf_world import read_sdf
    from proctor.scenes.xml_file import read_xml

    if file.suffix.lower() not in WORLD_SUFFIXES:
        raise InvalidFile(file, f"expected a world, a name that ends with {', '.join(WORLD_SUFFIXES)}")
    models = arguments.models
    for folder in models:
        if not folder.is_dir():
            raise UserError(f"--models: {folder} is not a folder")
    if read_xml(file).tag == "mujoco":
        if arguments.skip_missing:
            raise UserError("--skip-missing is for worlds of Gazebo: MuJoCo needs all files")
        from proctor.worlds.mujoco.mjcf_world import read_mjcf

        world = read_mjcf(file, models=models)
    else:
        world = read_sdf(file, models=models, skip_missing=arguments.skip_missing)
    if not any(model.visuals or model.collisions for model in world.models):
        problem = "holds nothing that could be seen or bumped into"
        raise InvalidFile(file, "; ".join([problem, *_left_out(world)]))
    return world


@contextmanager
def scene_file(file: Path, arguments: argparse.Namespace) -> Iterator[Path]:
    """Yield a scene file as it is, and a world as one that is imported for the time being."""
    if file.suffix.lower() not in WORLD_SUFFIXES:
        if arguments.models or arguments.skip_missing:
            raise UserError(f"--models and --skip-missing are for worlds ({', '.join(WORLD_SUFFIXES)})")
        yield file
        return
    from proctor.scenes.world_import import write_world

    with TemporaryDirectory(prefix="proctor-world-") as folder:
        world = read_world(file, arguments)
        console.say(*(_left_out(world) if arguments.skip_missing else ()))
        scene = write_world(world, Path(folder)).scene_path
        try:
            yield scene
        except InvalidFile as error:
            if Path(error.file) != scene:
                raise
            raise InvalidFile(file, error.problem, place=error.place) from None


def _import_world(arguments: argparse.Namespace) -> int:
    from proctor.scenes.world_import import write_world

    folder = arguments.out or Path(arguments.file.stem)
    if folder.is_file() or (folder / "scene.json").exists():
        raise UserError(f"--out: {folder} is taken; give a new folder, or remove it")
    if arguments.floor is not None and not abs(arguments.floor) <= 1e4:
        raise UserError(f"--floor: expected a height within ±10000, found {arguments.floor}")
    with console.status("reading"):
        world = read_world(arguments.file, arguments)
        imported = write_world(world, folder, floor_z=arguments.floor)
    _print(world, imported)
    return DONE


def _collision_kind(item: SceneObject) -> str:
    if item.rigid_body_type == "none":
        return "only seen"
    kind = "parts" if item.parts else "their surface" if item.collision == "surface" else "hulls"
    return f"collide as {kind}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _left_out(world: ForeignWorld) -> Iterator[str]:
    """Yield a line for each kind of what has no place in a scene."""
    for kind, found in sorted(world.left_out.items()):
        names = list(dict.fromkeys(found))
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        yield f"left out: {kind} ({', '.join(names[:NAMES_SHOWN])}{more})"


def _print(world: ForeignWorld, imported: Imported) -> None:
    scene, say = imported.scene, console.say
    kinds = Counter(map(_collision_kind, scene.objects))
    solid = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))
    objects, lights = _count(len(scene.objects), "object"), _count(len(scene.lights), "light")
    say(f"{objects} ({solid}) and {lights}: {imported.scene_path}")
    if imported.floor_z:
        say(f"note: the floor was at z = {imported.floor_z:g} and is now at 0")
    say(*_left_out(world))
    if imported.is_too_large:
        width_m, depth_m = imported.size_m
        size = f"{width_m:.6g} m x {depth_m:.6g} m"
        say(f"warning: it reaches over {size}, too much for a map: no robot can drive in it")
    say(f"Look at it: proctor look {shlex.quote(str(imported.scene_path))}")
