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

from proctor.cli.options import add_command, add_option
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

Models of Gazebo are looked for in --models, in `models` beside the file and in the folder above it, and in
GZ_SIM_RESOURCE_PATH and GAZEBO_MODEL_PATH. Files elsewhere are never read. Everything stands still; what a
scene cannot hold (joints, plugins, heightmaps) is listed at the end.
"""


def add_import_world(commands: Any) -> None:
    """Add the command."""
    command = add_command(commands, "import-world", _import_world, PAGE)
    add_option(command, "file FILE", Path, "a world: .world, .sdf, .xml or .mjcf")
    add_option(command, "--out DIR", Path, "the scene's folder (default: the file's name, here)")
    text = "a folder of models; may be given several times"
    add_option(command, "--models DIR", Path, text, action="append", default=[])
    text = "the height of its floor, which becomes 0 (default: that of its highest ground plane, or 0)"
    add_option(command, "--floor Z", float, text)


def read_world(file: Path, models: list[Path]) -> ForeignWorld:
    """Read a world of any format, by its root element."""
    from proctor.scenes.sdf_world import read_sdf
    from proctor.scenes.xml_file import read_xml

    if file.suffix.lower() not in WORLD_SUFFIXES:
        raise InvalidFile(file, f"expected a world, a name that ends with {', '.join(WORLD_SUFFIXES)}")
    for folder in models:
        if not folder.is_dir():
            raise UserError(f"--models: {folder} is not a folder")
    if read_xml(file).tag == "mujoco":
        from proctor.worlds.mujoco.mjcf_world import read_mjcf

        return read_mjcf(file, models=models)
    return read_sdf(file, models=models)


@contextmanager
def scene_file(file: Path) -> Iterator[Path]:
    """Yield a scene file as it is, and a world as one that is imported for the time being."""
    if file.suffix.lower() not in WORLD_SUFFIXES:
        yield file
        return
    from proctor.scenes.world_import import write_world

    with TemporaryDirectory(prefix="proctor-world-") as folder:
        yield write_world(read_world(file, []), Path(folder)).scene_path


def _import_world(arguments: argparse.Namespace) -> int:
    from proctor.scenes.world_import import write_world

    folder = arguments.out or Path(arguments.file.stem)
    if folder.is_file() or (folder / "scene.json").exists():
        raise UserError(f"--out: {folder} is taken; give a new folder, or remove it")
    if arguments.floor is not None and not abs(arguments.floor) <= 1e4:
        raise UserError(f"--floor: expected a height within ±10000, found {arguments.floor}")
    with console.status("reading"):
        world = read_world(arguments.file, arguments.models)
        imported = write_world(world, folder, floor_z=arguments.floor)
    _print(world, imported)
    return DONE


def _collision_kind(item: SceneObject) -> str:
    if item.rigid_body_type == "none":
        return "only seen"
    kind = "parts" if item.parts else "their surface" if item.collision == "surface" else "hulls"
    return f"collide as {kind}"


def _print(world: ForeignWorld, imported: Imported) -> None:
    scene, say = imported.scene, console.say
    kinds = Counter(map(_collision_kind, scene.objects))
    solid = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    say(f"{len(scene.objects)} objects ({solid}) and {len(scene.lights)} lights: {imported.scene_path}")
    if imported.floor_z:
        say(f"note: the floor was at z = {imported.floor_z:g} and is now at 0")
    for kind, names in sorted(world.left_out.items()):
        some = ", ".join(dict.fromkeys(names[:NAMES_SHOWN]))
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        say(f"left out: {kind} ({some}{more})")
    say(f"Look at it: proctor look {shlex.quote(str(imported.scene_path))}")
