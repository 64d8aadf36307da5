"""`proctor check-dataset`, `convert`, `predictions`, `score`: files of others, and for others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.cli.exam_runs import print_scores
from proctor.cli.options import add_command, add_option
from proctor.cli.terminal import DONE, console
from proctor.core.errors import InvalidFile, UnknownName, UserError
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from proctor.exams.checked_dataset import CheckedDataset
    from proctor.exams.datasets import Dataset
    from proctor.exams.episode_files import Writer
    from proctor.exams.findings import Finding

ERRORS_FOUND = 1
LISTED = 20  # how many episodes of a finding are listed unless all are asked for
MARKS = {"error": "[red]error[/red]", "warning": "[yellow]warning[/yellow]", "note": "[dim]note[/dim]"}
NATIVE = "native"
CHECK_DATASET_HELP = """\
tell everything that is odd about a dataset
Tell everything that is odd about a dataset, in any format that Proctor reads.

examples:
  proctor check-dataset R2R_VLNCE_v1-3/val_unseen --scenes mp3d
  proctor check-dataset episodes.json.gz --fix corrected.json.gz --drop level-change no-gt

exit codes: 0 no errors (with --fix: none in the copy), 1 errors found, 2 not a dataset at all
"""


CONVERT_HELP = """\
turn episodes of other formats into native ones, or back
Write the episodes of a dataset in another format. Existing files are not overwritten.

examples:
  proctor convert R2R_VLNCE_v1-3/val_unseen val_unseen.json
  proctor convert my_episodes.json theirs.json.gz --to FORMAT
"""
SCORE_HELP = """\
score a VLN-CE predictions file
Measure the paths of a predictions file against the episodes they are of.

examples:
  proctor score predictions.json --dataset R2R_VLNCE_v1-3/val_unseen
  proctor score predictions.json --dataset R2R_VLNCE_v1-3/val_unseen --scenes mp3d --out runs/theirs
"""
PREDICTIONS_HELP = """\
write a run as a VLN-CE predictions file
Write the paths of a run in the format of VLN-CE's leaderboards (R2R) or of RxR's.

examples:
  proctor predictions runs/r2r --out predictions.json
"""


def add_datasets(commands: Any) -> None:
    """Add the commands."""
    check = add_command(commands, "check-dataset", _check, CHECK_DATASET_HELP)
    add_option(check, "path PATH", Path, "an episode file or folder")
    _add_scenes(check)
    add_option(check, "--fix OUT", Path, "write a corrected copy to this new file")
    add_option(check, "--drop FILTER", str, "with --fix: leave these out, too", nargs="+", default=[])
    add_option(check, "--all", bool, f"list every episode of a finding, not only the first {LISTED}")
    convert = add_command(commands, "convert", _convert, CONVERT_HELP)
    add_option(convert, "source IN", Path, "an episode file or folder")
    add_option(convert, "out OUT", Path, "a new file, .json or .json.gz")
    add_option(convert, "--to FORMAT", NATIVE, f"(default: {NATIVE})")
    _add_scenes(convert)
    predictions = add_command(commands, "predictions", _predictions, PREDICTIONS_HELP)
    predictions.add_argument("run", type=Path, metavar="RUN_DIR")
    predictions.add_argument("--out", type=Path, required=True, metavar="FILE")
    add_option(predictions, "--dataset PATH", Path, "(default: where the run found it)")
    text = "r2r or rxr, for navigation (default: that of the dataset)"
    add_option(predictions, "--format FORMAT", str, text)
    score = add_command(commands, "score", _score, SCORE_HELP)
    score.add_argument("predictions", type=Path, metavar="PREDICTIONS")
    add_option(score, "--dataset PATH", Path, "the episodes they are of", required=True)
    _add_scenes(score)
    add_option(score, "--out DIR", Path, "write a run folder, for report and compare")


def _add_scenes(parser: argparse.ArgumentParser) -> None:
    add_option(parser, "--scenes DIR", Path, "the dataset's scenes, such as GLB files")


def _check(arguments: argparse.Namespace) -> int:
    from proctor.exams.checked_dataset import examine, write_fixed

    if arguments.drop and arguments.fix is None:
        raise UserError("--drop leaves episodes out of the copy that --fix writes; give --fix OUT as well")
    checked = examine(arguments.path, scenes=arguments.scenes)
    console.print(f"{checked.file}: {len(checked.records)} episodes, {checked.format}", markup=False)
    for line in checked.exam.composition(list(checked.episodes.values())):
        console.print(plain(line), markup=False, highlight=False)
    _print_findings(checked, listed=None if arguments.all else LISTED)
    errors = checked.findings.count("error")
    if arguments.fix is not None and checked.unreadable:
        console.print(f"No copy is written: {checked.unreadable}.", markup=False)
    elif arguments.fix is not None:
        fixed = write_fixed(checked, arguments.fix, drop=arguments.drop)
        errors = examine(fixed.file, scenes=arguments.scenes).findings.count("error")
        text = f"Wrote {fixed.file}: {fixed.kept} episodes, {fixed.changes} changes, {fixed.dropped} dropped"
        console.say(f"{text}; what and why: {fixed.report}")
        if errors:
            console.print(f"The copy still has {errors} kinds of errors.", markup=False)
    return ERRORS_FOUND if errors else DONE


def _print_findings(checked: CheckedDataset, *, listed: int | None) -> None:
    findings = checked.findings
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("N", justify="right")
    table.add_column("What", overflow="fold")
    for item in sorted(findings.items, key=lambda item: list(MARKS).index(item.severity)):
        places = _listed(item, listed)
        remedy = f" ({item.remedy} by --fix)" if item.remedy else ""
        text, where = escape(plain(item.text)), escape(plain(places))
        what = f"[bold]{escape(item.kind)}[/bold]: {text}{remedy}\n[dim]{where}[/dim]"
        table.add_row(MARKS[item.severity], str(item.count), what)
    console.print(table if findings.items else "Nothing is odd.")
    found = {name: indices for name, indices in findings.filters.items() if indices}
    if found:
        console.print(f"A filter would drop, of {len(checked.records)} episodes:")
        for name, meaning in checked.exam.filters.items():
            if name in found:
                console.print(f"  {name:<18}{len(found[name]):>6}  {meaning}", highlight=False)


def _listed(finding: Finding, most: int | None) -> str:
    """Return which episodes a finding concerns, by their ids, or else where in the files it was found."""
    names = finding.places
    if len(finding.ids) == len(finding.places):
        # A place within an episode is told as well, and where an id is itself what is wrong.
        is_told = finding.kind in ("duplicate-id", "id-type")
        pairs = zip(finding.ids, finding.places, strict=True)
        names = [f"{id_} ({place})" if is_told or "." in place else id_ for id_, place in pairs]
    rest = 0 if most is None else max(0, len(names) - most)
    shown = ", ".join(names[: len(names) - rest])
    return f"{shown} and {rest} more (--all lists them)" if rest else shown


def _convert(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import load_dataset

    out: Path = arguments.out
    dataset = load_dataset(arguments.source, scenes=arguments.scenes)
    # A file beside the new one that lies there already would be taken for its own.
    for file in (out, *dataset.exam.companions(out)):
        if file.exists():
            raise UserError(f"{file} exists already; give a new name")
    write = _writer(dataset, arguments.to)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        written = write(dataset.episodes, out)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error
    _print_notes([*dataset.notes, *written.notes])
    files = " and ".join(map(str, written.files))
    console.say(f"{len(dataset.episodes)} episodes: {files}")
    return DONE


def _writer(dataset: Dataset, format_: str) -> Writer:
    from proctor.exams.datasets import write_native
    from proctor.exams.names import all_exams

    if format_ == NATIVE:
        return write_native
    if format_ in dataset.exam.formats:
        return dataset.exam.formats[format_]
    exams = [exam for exam in all_exams() if format_ in exam.formats]
    if not exams:
        raise UnknownName(
            "format", format_, [NATIVE, *(name for exam in all_exams() for name in exam.formats)]
        )
    tasks = " or ".join(exam.name for exam in exams)
    raise UserError(f"{dataset.path}: expected episodes of the task {tasks}, found {dataset.task}")


def _predictions(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import load_dataset
    from proctor.exams.foreign_files import NO_PREDICTION
    from proctor.runs.folder import MANIFEST, RunFolder
    from proctor.runs.scoring import prediction_files

    if arguments.out.exists():
        raise UserError(f"{arguments.out} exists already; give a new name")
    if not (arguments.run / MANIFEST).is_file():
        raise InvalidFile(arguments.run, f"not a run folder: there is no {MANIFEST}")
    run = RunFolder.open(arguments.run)
    _print_notes(run.warnings)
    files = prediction_files(run.exam, arguments.run)
    if arguments.format is not None and arguments.format not in files.formats:
        raise UnknownName("format", arguments.format, files.formats)

    def dataset() -> Dataset | None:
        path = arguments.dataset or (run.manifest.get("source") or {}).get("dataset")
        return load_dataset(Path(path)) if path else None

    lost = [result.episode_id for result in run.episodes if not result.is_scored]
    unpredicted = [r.episode_id for r in run.episodes if r.error and r.error.kind == NO_PREDICTION]
    written = [result for result in run.episodes if result.episode_id not in {*lost, *unpredicted}]
    if not written:
        count = len(run.episodes)
        why = f"none of the {count} episodes is scored and predicted" if count else "no episode is finished"
        raise UserError(f"{arguments.run}: {why}, so there is nothing to predict")
    try:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        format_ = files.write(written, arguments.out, arguments.format, dataset)
    except OSError as error:
        raise UserError(f"cannot write to {arguments.out}: {error.strerror}") from error
    if lost:
        _print_notes([f"{len(lost)} episodes that are not scored are not in it, first '{lost[0]}'"])
    if unpredicted:
        why = "had no prediction when they were scored and are not in it"
        _print_notes([f"{len(unpredicted)} episodes {why}, first '{unpredicted[0]}'"])
    console.say(f"{len(written)} episodes in the format of {format_.upper()}: {arguments.out}")
    return DONE


def _score(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import load_dataset
    from proctor.exams.results import distance_label
    from proctor.runs.scoring import score_predictions

    dataset = load_dataset(arguments.dataset, scenes=arguments.scenes)
    score = score_predictions(arguments.predictions, dataset, arguments.out)
    name = arguments.predictions.name
    title = f"{name} on {dataset.path.name}, {distance_label(score.results.summary.distance)}"
    print_scores(dataset.exam, {name: score.results}, escape(title))
    _print_notes(score.notes)
    if arguments.out is not None:
        console.say(f"Results: {arguments.out}")
    return DONE


def _print_notes(notes: list[str]) -> None:
    console.say(*(f"note: {note}" for note in notes))
