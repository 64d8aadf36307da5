"""Exams and scenes as files of an O3DE project: what `proctor export-o3de` writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec
import numpy as np

import o3de_sim
from o3de_sim.common.scene_builder import mesh_path, scene_folder
from o3de_sim.common.scene_file import check_scene
from o3de_sim.constants import DEFAULT_PORT, EXPORT_FOLDER
from proctor.core.errors import InvalidFile, UserError
from proctor.exams.datasets import Dataset, episodes_of
from proctor.exams.vln.episode import Episode
from proctor.exams.vln.files import document_of_walks
from proctor.o3de.robot_prefab import ROBOT_PREFAB, robot_prefab
from proctor.o3de.solid_scene import shown_scene, solid_scene
from proctor.o3de_export.gltf import (
    ROOT_SETTING,
    ExportFolder,
    files_that_turn,
    put_import_settings,
    write_gltf,
)
from proctor.robots.spec import RobotSpec, standard_robot
from proctor.scenes.frames import Frame, frame_of, placed_parts
from proctor.scenes.meshes import Surface
from proctor.scenes.part_surfaces import surfaces_of_parts
from proctor.scenes.scene import Scene
from proctor.scenes.scene_config import SceneObject

SCENE_FILE = "scene.json"
TEXTURES = f"{EXPORT_FOLDER}/textures"
SCRIPTS = "Editor/Scripts"  # in a project: on the path of the Editor's Python
BOOTSTRAP = f"{SCRIPTS}/bootstrap.py"
START_LINE = "import o3de_sim.editor.bootstrap"
EPISODES = "episodes.json"
README = f"{EXPORT_FOLDER}/README.md"
ROBOT_NOTES = "Assets/Models/robot/ROBOT.md"
NAMES = {EPISODES: "episodes", README: "what to do next", ROBOT_NOTES: "robot's notes", ROBOT_PREFAB: "robot"}
Tell = Callable[[int], None]


class ExportedScene(NamedTuple):
    """A scene in a project."""

    file: str  # its scene file, below the project's folder
    notes: list[str]  # what is other than it was


def put_scene(folder: ExportFolder, scene_path: Path, *, file_name: str = SCENE_FILE) -> ExportedScene:
    """Write a scene file, or a mesh that is a whole house, into a project.

    `file_name` is the new scene file's, where another scene of the same name has the usual one.
    """
    scene = Scene.load(scene_path)
    name = scene.config.scene_name
    turned = bool(files_that_turn(folder.root))
    notes: list[str] = []
    objects = []
    shown = shown_scene(scene)
    checked = check_scene(msgspec.to_builtins(shown.config), str(scene_path)).objects
    for index, (item, solid) in enumerate(zip(shown.objects, solid_scene(scene).objects, strict=True)):
        look = _look(item, scene)
        path = mesh_path(name, checked[index])
        # The walls of a house that is a mesh are often sheets, and seen from both sides.
        write_gltf(folder, path, look, textures=TEXTURES, double_sided=item.collision == "surface")
        put_import_settings(folder, path, solid=item.collision == "surface", turned=turned)
        if solid.parts is not item.parts:
            count = "a box" if len(solid.parts) == 1 else f"{len(solid.parts)} boxes"
            notes.append(f"'{item.name}' of {name} collides as {count} around its mesh, not as its hull")
        objects.append(msgspec.structs.replace(item, asset_path=PurePosixPath(path).name, parts=solid.parts))
    file = f"{scene_folder(name)}/{file_name}"
    folder.put(file, msgspec.json.encode(msgspec.structs.replace(scene.config, objects=objects)) + b"\n")
    return ExportedScene(file, notes)


def _look(item: SceneObject, scene: Scene) -> list[tuple[Surface, str | None]]:
    """Return what is seen of an object, in its own frame, with the names of the images that have one."""
    if item.asset_path is None:
        placed = _drawing_frame(item)
        parts = surfaces_of_parts(placed_parts(item, placed))
        return [(_unplaced(surface, placed), texture) for surface, texture in parts]
    mesh = scene.mesh(item)
    if item.collision == "surface":
        return [(surface, None) for surface in mesh.surfaces]
    surfaces = mesh.asset.drawn if item.parts else mesh.asset.surfaces
    return [(surface, None) for surface in surfaces]


def _drawing_frame(item: SceneObject) -> Frame:
    """Return the frame in which textures are measured: the world's of what stands, its own of what moves."""
    frame = frame_of(item)
    if item.rigid_body_type in ("dynamic", "kinematic"):
        return Frame(frame.size, np.eye(3), np.zeros(3))
    return frame


def _unplaced(surface: Surface, frame: Frame) -> Surface:
    """Return a surface in the frame of the object that was placed by a frame."""
    vertices = (surface.vertices - frame.translation) @ frame.rotation / frame.size
    # What is stretched more along one axis than another has normals along the axes only.
    return surface._replace(vertices=vertices, normals=surface.normals @ frame.rotation)


def put_editor_scripts(folder: ExportFolder) -> list[str]:
    """Write the agent into a project, and return what its owner must do by hand."""
    package = Path(o3de_sim.__file__).parent
    for file in sorted([*package.rglob("*.py"), package / "py.typed"]):
        folder.put(f"{SCRIPTS}/o3de_sim/{file.relative_to(package).as_posix()}", file.read_bytes())
    ours = (package / "editor" / "bootstrap.py").read_bytes()
    there = folder.root / BOOTSTRAP
    if there.is_file() and not _is_ours(found := there.read_bytes(), ours):
        is_called = any(line.strip() == START_LINE.encode() for line in found.splitlines())
        return [] if is_called else [f"{BOOTSTRAP} is your own and was left alone: add the line {START_LINE}"]
    folder.put(BOOTSTRAP, ours)
    return []


def _is_ours(found: bytes, ours: bytes) -> bool:
    """Tell whether a file is ours, of this version or another."""
    return found.splitlines()[:1] == ours.splitlines()[:1]


def robot_notes(robot: RobotSpec) -> str:
    """Return the notes on a robot, as Markdown."""
    notes = resources.files(__package__).joinpath("robot.md").read_text(encoding="utf-8")
    pitch_deg, body_m = robot.camera.pitch_deg, robot.height_m - robot.ground_clearance_m
    direction = "up" if pitch_deg > 0 else "down"
    return notes.format(
        robot=robot,
        camera_turn=90 - pitch_deg,
        pitch=f", {abs(pitch_deg):g}° {direction}" if pitch_deg else "",
        body_height=body_m,
        body_z=robot.ground_clearance_m + body_m / 2,
        port=DEFAULT_PORT,
    )


def readme(scene_files: Sequence[str]) -> str:
    """Return the text for a folder with these scene files."""
    text = resources.files(__package__).joinpath("folder.md").read_text(encoding="utf-8")
    return text.format(scenes="\n".join(f"- `{file}`" for file in scene_files))


class Row(NamedTuple):
    """Files of one kind that were written, or were there."""

    what: str
    where: str
    files: int
    size_bytes: int


class Export(NamedTuple):
    """What an export wrote."""

    rows: list[Row]
    changed: int  # how many files are new or other than before
    notes: list[str]  # what its owner should know or do


def export_suite(
    dataset: Dataset, project: Path, *, robot: RobotSpec | None = None, tell: Tell | None = None
) -> Export:
    """Write the scenes of an exam, its episodes, and what an O3DE project needs to run them.

    The project may also be a folder to copy into one. `tell` is called with the number of scenes done.
    """
    episodes = episodes_of(dataset, Episode)
    paths = scenes_of(episodes, dataset.path)
    with _writing(project) as folder:
        scenes = _put_scenes(folder, paths, tell)
        located = [
            msgspec.structs.replace(
                episode, scene_config_path=scenes[Path(str(episode.scene_config_path))].file
            )
            for episode in episodes
        ]
        text = msgspec.json.format(msgspec.json.encode(document_of_walks(located)), indent=1)
        folder.put(EPISODES, text + b"\n")
        return _finish(folder, scenes, robot or standard_robot())


def export_scenes(
    scene_paths: Sequence[Path], project: Path, *, robot: RobotSpec | None = None, tell: Tell | None = None
) -> Export:
    """Write scenes without episodes, as `export_suite` does."""
    with _writing(project) as folder:
        scenes = _put_scenes(folder, [path.resolve() for path in scene_paths], tell)
        return _finish(folder, scenes, robot or standard_robot())


def export_scene(scene_path: Path, project: Path) -> Path:
    """Write one scene and nothing else, and return its new scene file."""
    with _writing(project) as folder:
        return project / put_scene(folder, scene_path).file


def scenes_of(episodes: Sequence[Episode], file: Path) -> list[Path]:
    """Return the scene files of episodes, each once, in their order; InvalidFile if an episode has none."""
    for index, episode in enumerate(episodes):
        if episode.scene_config_path is None or not Path(episode.scene_config_path).is_file():
            problem = f"the scene '{episode.scene_id}' has no file to export"
            raise InvalidFile(file, problem, place=f"episodes[{index}]")
    return list(dict.fromkeys(Path(str(episode.scene_config_path)) for episode in episodes))


@contextmanager
def _writing(project: Path) -> Iterator[ExportFolder]:
    if project.exists() and not project.is_dir():
        raise UserError(f"{project} is a file; expected the folder of an O3DE project, or a new one")
    try:
        yield ExportFolder(project)
    except OSError as error:
        raise UserError(f"cannot write to {error.filename or project}: {error.strerror}") from error


def _put_scenes(folder: ExportFolder, paths: Sequence[Path], tell: Tell | None) -> dict[Path, ExportedScene]:
    """Write scenes; of those with one name, the files of all but the first get a mark of their content."""
    done: dict[Path, ExportedScene] = {}
    taken: set[str] = set()
    for path in paths:
        name, file_name = Scene.load(path).config.scene_name, SCENE_FILE
        if name in taken:
            file_name = f"scene-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}.json"
        taken.add(name)
        done[path] = put_scene(folder, path, file_name=file_name)
        if tell is not None:
            tell(len(done))
    return done


def _finish(folder: ExportFolder, scenes: dict[Path, ExportedScene], robot: RobotSpec) -> Export:
    notes = put_editor_scripts(folder)
    folder.put(ROBOT_NOTES, robot_notes(robot).encode())
    prefab = robot_prefab(robot)
    there = folder.root / ROBOT_PREFAB
    if there.is_file() and there.read_bytes() != prefab:
        notes.append(f"{ROBOT_PREFAB} is your own and was left alone")
    else:
        folder.put(ROBOT_PREFAB, prefab)
    folder.put(README, readme([scene.file for scene in scenes.values()]).encode())
    notes += _project_notes(folder.root)
    notes += [note for scene in scenes.values() for note in scene.notes]
    return Export(_rows(folder), folder.changed, notes)


def _rows(folder: ExportFolder) -> list[Row]:
    kinds: dict[tuple[str, str], list[int]] = {}
    for path, size in folder.sizes.items():
        kinds.setdefault(_kind(path), []).append(size)
    return [Row(what, where, len(sizes), sum(sizes)) for (what, where), sizes in kinds.items()]


def _kind(path: str) -> tuple[str, str]:
    if path.startswith(f"{TEXTURES}/"):
        return "textures", TEXTURES
    if path.startswith(f"{SCRIPTS}/"):
        return ("agent's start", path) if path == BOOTSTRAP else ("agent", f"{SCRIPTS}/o3de_sim")
    if path.endswith((".gltf", ".bin", ".assetinfo")):
        return "meshes", f"{EXPORT_FOLDER}/*/*.gltf, .bin, .assetinfo"
    if path in NAMES:
        return NAMES[path], path
    return "scenes", f"{EXPORT_FOLDER}/*/scene.json"


def _project_notes(root: Path) -> list[str]:
    """Return what is odd about the project itself."""
    if not (root / "project.json").is_file():
        return [f"{root} has no project.json: copy what is in it into the folder of your O3DE project"]
    return [
        f"{file.relative_to(root)} sets {ROOT_SETTING}, so each mesh has an .assetinfo that turns it back;"
        " export again if you change that"
        for file in files_that_turn(root)
    ]
