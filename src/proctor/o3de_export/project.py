"""Exams and scenes as files of an O3DE project: what `proctor export-o3de` writes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from o3de_sim.constants import EXPORT_FOLDER
from proctor.core.errors import InvalidFile, UserError
from proctor.exams.datasets import Dataset, document_of_walks
from proctor.exams.vln.episode import Episode
from proctor.o3de_export.editor_scripts import BOOTSTRAP, SCRIPTS, put_editor_scripts
from proctor.o3de_export.folder import ExportFolder
from proctor.o3de_export.import_settings import ROOT_SETTING, files_that_turn
from proctor.o3de_export.readme import readme
from proctor.o3de_export.robot_notes import robot_notes
from proctor.o3de_export.robot_prefab import robot_prefab
from proctor.o3de_export.scene import SCENE_FILE, TEXTURES, ExportedScene, put_scene
from proctor.robots.wheeled import WheeledRobot
from proctor.scenes.scene_config import load_scene

EPISODES = "episodes.json"
README = f"{EXPORT_FOLDER}/README.md"
ROBOT_NOTES = "Assets/Models/robot/ROBOT.md"
ROBOT_PREFAB = "Assets/Models/robot/robot.prefab"
NAMES = {
    EPISODES: "episodes",
    README: "what to do next",
    ROBOT_NOTES: "robot's notes",
    ROBOT_PREFAB: "robot",
}


Tell = Callable[[int], None]


class Row(NamedTuple):
    """Files of one kind that were written, or were there."""

    what: str
    where: str
    files: int
    size_bytes: int


class Export(NamedTuple):
    """What an export wrote."""

    rows: list[Row]
    changed: int
    """How many files are new or other than before."""
    notes: list[str]
    """What its owner should know or do."""


def export_suite(
    dataset: Dataset, project: Path, *, robot: WheeledRobot | None = None, tell: Tell | None = None
) -> Export:
    """Write the scenes of an exam, its episodes, and what an O3DE project needs to run them.

    Args:
        dataset: The exam.
        project: The folder of an O3DE project, or one to be copied into it.
        robot: The robot of the exam, of which the project needs its own.
        tell: Called with the number of scenes done.

    Raises:
        UserError: The episodes are of another task, have no scenes, or the folder cannot be written to.
    """
    episodes = dataset.of(Episode)
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
        return _finish(folder, scenes, robot or WheeledRobot())


def export_scenes(
    scene_paths: Sequence[Path],
    project: Path,
    *,
    robot: WheeledRobot | None = None,
    tell: Tell | None = None,
) -> Export:
    """Write scenes without episodes, as `export_suite` does.

    Raises:
        UserError: A scene is wrong, or the folder cannot be written to.
    """
    with _writing(project) as folder:
        scenes = _put_scenes(folder, [path.resolve() for path in scene_paths], tell)
        return _finish(folder, scenes, robot or WheeledRobot())


def export_scene(scene_path: Path, project: Path) -> Path:
    """Write one scene and nothing else, and return its new scene file.

    Raises:
        UserError: The scene is wrong, or the folder cannot be written to.
    """
    with _writing(project) as folder:
        return project / put_scene(folder, scene_path).file


def scenes_of(episodes: Sequence[Episode], file: Path) -> list[Path]:
    """Return the scene files of episodes, each once, in their order.

    Raises:
        InvalidFile: An episode has none.
    """
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
        name, file_name = load_scene(path).scene_name, SCENE_FILE
        if name in taken:
            file_name = f"scene-{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}.json"
        taken.add(name)
        done[path] = put_scene(folder, path, file_name=file_name)
        if tell is not None:
            tell(len(done))
    return done


def _finish(folder: ExportFolder, scenes: dict[Path, ExportedScene], robot: WheeledRobot) -> Export:
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
