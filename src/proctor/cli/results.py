"""`proctor compare`, `results` and `rescore`: the numbers of finished runs, and result files of others."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.cli.exam_runs import print_scores
from proctor.cli.options import add_command, add_option
from proctor.cli.terminal import DONE, console
from proctor.core.errors import InvalidFile, UserError

if TYPE_CHECKING:
    from proctor.exams.names import AnyExam
    from proctor.report.tables import MeanRow
    from proctor.runs.folder import RunFolder

DIFFERENT = 1  # exit code
LISTED = 10
COMPARE_HELP = """\
tell how two runs of one exam differ, and where
Compare two runs of one exam: each metric's difference, and the episodes that flipped.

examples:
  proctor compare runs/houses-v1/forward runs/houses-v1/my_agent.Agent
  proctor compare runs/before runs/after --json > difference.json
  proctor compare runs/embedded/my_agent runs/ros2/my_agent   # one agent on two backends

Differences are B - A, over the episodes that both runs have finished. Of one agent on two backends also
told: how exactly each did its actions, and where the two ways through an episode part.
"""
RESULTS_HELP = """\
put runs and VLN-CE result files into one table
Print one table of means about runs of Proctor and result files of VLN-CE.

examples:
  proctor results runs/first                                     all runs in the folder
  proctor results runs/first/* runs/mine                         these runs
  proctor results runs/mine logs/stats_ckpt_45_val_unseen.json   beside what a VLN-CE run wrote

Means of one kind of exam stand in one table. What a file does not say is a dash.
"""
RESCORE_HELP = """\
compute the scores of a run again from its traces
Compute all scores of a run again from what was recorded of it, without a simulator.

examples:
  proctor rescore runs/houses-v1/oracle                      are the scores what the traces say?
  proctor rescore runs/mine --out runs/mine-rescored         a copy with metrics that were added since

Needs no simulator: scores are computed from the traces in the run's folder, and from the dataset.
exit codes: 0 all scores are as stored (new metrics aside), 1 some differ, 2 user error
"""


class _Entry(NamedTuple):
    path: Path
    name: str
    exam: type[AnyExam]
    row: MeanRow
    notes: list[str]


def add_results(commands: Any) -> None:
    """Add the commands."""
    compare = add_command(commands, "compare", _compare, COMPARE_HELP)
    add_option(compare, "a A", Path, "a run's folder, or its results.json")
    add_option(compare, "b B", Path, "the run to compare with it")
    add_option(compare, "--json", bool, "print JSON for scripts")
    results = add_command(commands, "results", _results, RESULTS_HELP)
    text = "a run's folder, a folder of such folders, or stats_ckpt_*.json"
    add_option(results, "paths PATH", Path, text, nargs="+")
    rescore = add_command(commands, "rescore", _rescore, RESCORE_HELP)
    add_option(rescore, "run DIR", Path, "a run's folder, or a folder of such folders")
    add_option(rescore, "--out DIR", Path, "write the rescored run to this new folder")


def _compare(arguments: argparse.Namespace) -> int:
    import msgspec

    from proctor.report import comparison_table as tables
    from proctor.runs.compare import compare, load_run

    comparison = compare(load_run(arguments.a), load_run(arguments.b))
    if arguments.json:
        console.say(msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode())
        return DONE
    console.say(tables.comparison_header(comparison))
    console.print(tables.comparison_table(comparison))
    if comparison.gap:
        if table := tables.execution_table(comparison.gap):
            console.print(table)
        console.say(f"{tables.gap_notes(comparison.gap)}\n")
    console.say(tables.comparison_notes(comparison))
    return DONE


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
    for exam in dict.fromkeys(entry.exam for entry in entries):
        table, names = mean_table({e.name: e.row for e in entries if e.exam is exam}, exam=exam)
        console.print(table)
        console.say(*names)
    notes = [f"{entry.path}: {note}" for entry in entries for note in entry.notes]
    notes += [f"left out: {why}" for why in left_out]
    console.say(*(f"note: {note}" for note in notes))
    if any(entry.row.is_privileged for entry in entries):
        console.say(PRIVILEGED_NOTE)
    return DONE


def _read(path: Path) -> tuple[list[_Entry], list[str]]:
    """Return the rows of a path, and why it or a part of it has none."""
    from proctor.runs.folder import JOURNAL, MANIFEST, RESULTS, RunFolder, find_runs

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
        return [_of_run(RunFolder.of_results(path)) if path.name == RESULTS else _of_others(path)], []
    else:
        return [], [f"{path}: expected a run's folder or a .json file"]
    entries, left_out = [], []
    for folder in folders:
        is_inside = path.is_dir() and folder.is_relative_to(path.resolve())  # else it is a link to elsewhere
        try:
            shown = path / folder.relative_to(path.resolve()) if is_inside else folder
            entries.append(_of_run(RunFolder.open(shown)))
        except UserError as error:
            left_out.append(str(error))
    return entries, left_out


def _of_run(run: RunFolder) -> _Entry:
    from proctor.exams.fault_words import loss_text
    from proctor.exams.results import distance_label
    from proctor.report.tables import MeanRow, usage_lines
    from proctor.runs.summary import latency_of

    if not run.episodes:
        raise UserError(f"{run.path} has no finished episode yet")
    results = run.results
    summary = results.summary
    means = {key: interval.mean for key, interval in summary.metrics.items()}
    measured = f"{summary.definition}, {distance_label(summary.distance)}"
    latency = latency_of(run.episodes)
    row = MeanRow(means, results.total_episodes - sum(summary.unscored.values()), run.is_privileged)
    lost = loss_text(summary.unscored, results.total_episodes)
    used = usage_lines(results)
    said = [f"{measured}; {latency}" if latency and not used else measured, *used]
    said += [*([lost] if lost else []), *([str(run.resources)] if run.resources else []), *run.notes]
    name = run.agent_name if run.path.is_dir() else str(run.path)
    return _Entry(run.path, name, run.exam, row, said)


def _of_others(path: Path) -> _Entry:
    from proctor.exams.names import all_exams
    from proctor.report.tables import MeanRow

    why_not = InvalidFile(path, "not a result file of any exam that is installed")
    for exam in all_exams():
        try:
            theirs = exam.read_foreign_results(path)
        except InvalidFile as error:
            why_not = error
        else:
            if theirs is not None:
                notes = ["as the file says; not measured here", *theirs.notes]
                return _Entry(path, str(path), exam, MeanRow(theirs.means, theirs.n), notes)
    raise why_not


def _with_unique_names(entries: Sequence[_Entry]) -> list[_Entry]:
    """Call runs of agents with the same name by their paths."""
    taken = Counter(entry.name for entry in entries)
    return [entry if taken[entry.name] == 1 else entry._replace(name=str(entry.path)) for entry in entries]


def _rescore(arguments: argparse.Namespace) -> int:
    from proctor.runs.folder import RunFolder, find_runs
    from proctor.runs.scoring import dataset_of, rescore

    folders = find_runs([arguments.run])
    if arguments.out is not None and len(folders) > 1:
        raise UserError(f"--out: {arguments.run} holds {len(folders)} runs; give one of them")
    is_different = False
    for folder in folders:
        run = RunFolder.open(folder)
        rescored = rescore(run, dataset_of(run), arguments.out)
        name = run.agent_name
        privileged = [name] if run.is_privileged else []
        title = f"{run.identity.get('dataset', '?')}, rescored"
        print_scores(run.exam, {name: rescored.results}, title, privileged=privileged)
        console.say(*_findings(name, len(run.episodes), rescored))
        is_different |= bool(rescored.differences)
    if arguments.out is not None:
        console.say(f"Results: {arguments.out}")
    return DIFFERENT if is_different else DONE


def _findings(name: str, episodes: int, rescored: Any) -> list[str]:
    lines = []
    if rescored.differences:
        lines.append(f"{name}: {len(rescored.differences)} scores are not what the traces say:")
        lines += [
            f"  {d.episode_id}: {d.metric} is {d.stored} in the run, {d.rescored} by its trace"
            for d in rescored.differences[:LISTED]
        ]
        if len(rescored.differences) > LISTED:
            lines.append(f"  and {len(rescored.differences) - LISTED} more")
    elif done := episodes - len(rescored.without_trace):
        lines.append(f"{name}: {done} episodes rescored, all scores as stored.")
    if rescored.new_metrics:
        lines.append(f"{name}: not measured by the run: {', '.join(rescored.new_metrics)}")
    if rescored.without_trace:
        count = len(rescored.without_trace)
        first = rescored.without_trace[0]
        lines.append(f"{name}: {count} episodes keep their scores, as no trace was kept; first '{first}'")
    return lines
