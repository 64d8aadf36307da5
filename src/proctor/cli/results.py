"""`proctor results`: runs and result files of others in one table."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.cli.terminal import DONE, console
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.exams.results import EpisodeResult
    from proctor.report.tables import MeanRow

EXAMPLES = """\
examples:
  proctor results runs/first                                     all runs in the folder
  proctor results runs/first/* runs/mine                         these runs
  proctor results runs/mine logs/stats_ckpt_45_val_unseen.json   beside what a VLN-CE run wrote

Means of one kind of exam stand in one table. What a file does not say is a dash.
"""


class _Entry(NamedTuple):
    path: Path
    name: str
    task: str
    row: MeanRow
    notes: list[str]


def add_results(commands: Any) -> None:
    """Add the command."""
    results = commands.add_parser(
        "results",
        help="put runs and VLN-CE result files into one table",
        description="Print one table of means about runs of Proctor and result files of VLN-CE.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    results.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="a run's folder, a folder of such folders, or stats_ckpt_*.json",
    )
    results.set_defaults(command=_results)


def _results(arguments: argparse.Namespace) -> int:
    from proctor.report.tables import PRIVILEGED_NOTE, mean_table

    entries: list[_Entry] = []
    left_out: list[str] = []
    for path in dict.fromkeys(arguments.paths):
        found, why_not = _read(path)
        entries += found
        left_out += why_not
    if not entries:
        raise UserError("; ".join(left_out))
    entries = _with_unique_names(entries)
    for task in dict.fromkeys(entry.task for entry in entries):
        table, names = mean_table({e.name: e.row for e in entries if e.task == task}, task=task)
        console.print(table)
        for line in names:
            console.print(line, markup=False, soft_wrap=True)
    notes = [f"{entry.path}: {note}" for entry in entries for note in entry.notes]
    for note in [*notes, *(f"left out: {why}" for why in left_out)]:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    if any(entry.row.is_privileged for entry in entries):
        console.print(PRIVILEGED_NOTE, markup=False, soft_wrap=True)
    return DONE


def _read(path: Path) -> tuple[list[_Entry], list[str]]:
    """Return the rows of a path, and why it or a part of it has none."""
    from proctor.exams.results import JOURNAL, MANIFEST, RESULTS
    from proctor.report.run_record import find_runs

    if not path.exists():
        raise UserError(f"{path}: no such file or folder; expected a run, as `proctor run --out` makes it")
    if path.is_dir():
        try:
            folders = find_runs([path])
        except UserError as error:
            return [], [str(error)]
    elif path.name == RESULTS and all(path.with_name(name).is_file() for name in (MANIFEST, JOURNAL)):
        folders = [path.parent]
    elif path.suffix == ".json":
        return [_of_results(path) if path.name == RESULTS else _of_others(path)], []
    else:
        return [], [f"{path}: expected a run's folder or a .json file"]
    entries, left_out = [], []
    for folder in folders:
        is_inside = path.is_dir() and folder.is_relative_to(path.resolve())  # else it is a link to elsewhere
        try:
            entries.append(_of_folder(path / folder.relative_to(path.resolve()) if is_inside else folder))
        except UserError as error:
            left_out.append(str(error))
    return entries, left_out


def _of_folder(folder: Path) -> _Entry:
    from proctor.runs.folder import agent_name, read_run_folder

    run = read_run_folder(folder)
    if not run.episodes:
        raise UserError(f"{folder} has no finished episode yet")
    name = agent_name(run.identity, folder.name)
    return _entry(folder, name, run.episodes, run.notes, privileged=bool(run.identity.get("privileged")))


def _of_results(path: Path) -> _Entry:
    from proctor.runs.folder import read_results

    return _entry(path, str(path), read_results(path).episodes, [], privileged=False)


def _entry(
    path: Path, name: str, episodes: Sequence[EpisodeResult], notes: Sequence[str], *, privileged: bool
) -> _Entry:
    """Summarise episodes, as reports and comparisons do."""
    from proctor.exams.distance_labels import distance_label
    from proctor.exams.fault_words import loss_text
    from proctor.report.tables import MeanRow
    from proctor.runs.latency import latency_of
    from proctor.runs.summary import summarise

    results = summarise(episodes)
    summary = results.summary
    means = {key: interval.mean for key, interval in summary.metrics.items()}
    measured = f"{summary.definition}, {distance_label(summary.distance)}"
    latency = latency_of(episodes)
    row = MeanRow(means, results.total_episodes - sum(summary.unscored.values()), privileged)
    lost = loss_text(summary.unscored, results.total_episodes)
    said = [f"{measured}; {latency}" if latency else measured, *([lost] if lost else []), *notes]
    return _Entry(path, name, results.task, row, said)


def _of_others(path: Path) -> _Entry:
    from proctor.exams.vln.foreign_results import read_vlnce_results
    from proctor.report.tables import MeanRow

    theirs = read_vlnce_results(path)
    notes = ["as the file says; not measured here"]
    rate = theirs.means.get("collision_rate")
    if rate is not None:
        notes.append(f"{rate:.3f} bumps per step (its 'collisions' is a rate, not a count)")
    return _Entry(path, str(path), "vln", MeanRow(theirs.means, theirs.n), notes)


def _with_unique_names(entries: Sequence[_Entry]) -> list[_Entry]:
    """Call runs of agents with the same name by their paths."""
    taken = Counter(entry.name for entry in entries)
    return [entry if taken[entry.name] == 1 else entry._replace(name=str(entry.path)) for entry in entries]
