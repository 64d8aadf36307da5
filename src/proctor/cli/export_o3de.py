"""`proctor export-o3de`: scenes and exams as files of an O3DE project."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from proctor.cli.options import add_command
from proctor.cli.terminal import DONE, console

if TYPE_CHECKING:
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


def add_export_o3de(commands: Any) -> None:
    """Add the command."""
    export = add_command(commands, "export-o3de", _export, EXPORT_O3DE_HELP)
    what = export.add_mutually_exclusive_group(required=True)
    what.add_argument("--suite", metavar="NAME", help="an exam that comes with Proctor (proctor list)")
    what.add_argument("--dataset", type=Path, metavar="PATH", help="an episode file or folder of your own")
    what.add_argument(
        "--scene", type=Path, nargs="+", metavar="FILE", help="scene files, or meshes that are whole houses"
    )
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="the project's folder")
    export.add_argument(
        "--scenes", type=Path, metavar="DIR", help="where the dataset's scenes are, if not beside it"
    )


def _export(arguments: argparse.Namespace) -> int:
    from proctor.core.registry import suite_path
    from proctor.exams.datasets import episodes_of, load_dataset
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
            path = arguments.dataset if arguments.suite is None else suite_path(arguments.suite)
            dataset = load_dataset(path, scenes=arguments.scenes)
            task = bar.add_task("scenes", total=len(scenes_of(episodes_of(dataset, Episode), dataset.path)))
            exported = export_suite(
                dataset, arguments.out, tell=lambda done: bar.update(task, completed=done)
            )
    _print(exported, arguments.out, with_episodes=arguments.scene is None)
    return DONE


def _print(exported: Export, out: Path, *, with_episodes: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("What")
    table.add_column("Files", justify="right")
    table.add_column("MB", justify="right")
    table.add_column(f"Where in {escape(str(out))}", overflow="fold")
    for row in exported.rows:
        table.add_row(row.what, str(row.files), f"{row.size_bytes / 1e6:.2f}", escape(row.where))
    console.print(table)
    total, size_mb = (
        sum(row.files for row in exported.rows),
        sum(row.size_bytes for row in exported.rows) / 1e6,
    )
    console.print(f"{total} files, {size_mb:.1f} MB; {exported.changed} are new or changed.")
    for note in exported.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    console.print(f"What to do next: {out / 'Assets/Proctor/README.md'}", markup=False, soft_wrap=True)
    if with_episodes:
        command = f"proctor run --dataset {shlex.quote(str(out / 'episodes.json'))} --policy oracle"
        console.print(f"Try the scenes without O3DE: {command}", markup=False, soft_wrap=True)
