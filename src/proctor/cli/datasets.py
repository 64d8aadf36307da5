"""`proctor check-dataset`, `convert`, `predictions`, `score`: files of others, and for others."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.cli.terminal import DONE, console
from proctor.core.errors import InvalidFile, UserError
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from proctor.exams.datasets import Dataset
    from proctor.exams.findings import Finding, Findings

ERRORS_FOUND = 1
LISTED = 20
"""How many episodes of a finding are listed unless all are asked for."""
MARKS = {"error": "[red]error[/red]", "warning": "[yellow]warning[/yellow]", "note": "[dim]note[/dim]"}
FORMATS = ("native", "r2r-ce", "rxr-ce")
CHECK_EXAMPLES = """\
examples:
  proctor check-dataset R2R_VLNCE_v1-3/val_unseen --scenes mp3d
  proctor check-dataset episodes.json.gz --fix corrected.json.gz --drop level-change no-gt

exit codes: 0 no errors (with --fix: none in the copy), 1 errors found, 2 not a dataset at all
"""


CONVERT_EXAMPLES = """\
examples:
  proctor convert R2R_VLNCE_v1-3/val_unseen val_unseen.json
  proctor convert my_episodes.json my_episodes_r2r.json.gz --to r2r-ce
"""
SCORE_EXAMPLES = """\
examples:
  proctor score predictions.json --dataset R2R_VLNCE_v1-3/val_unseen
  proctor score predictions.json --dataset R2R_VLNCE_v1-3/val_unseen --scenes mp3d --out runs/theirs
"""


def add_datasets(commands: Any) -> None:
    """Add the commands."""
    check = commands.add_parser(
        "check-dataset",
        help="tell everything that is odd about a dataset",
        description="Tell everything that is odd about a dataset: native, a suite, R2R-CE or RxR-CE.",
        epilog=CHECK_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    check.add_argument("path", type=Path, metavar="PATH", help="an episode file or folder")
    _add_scenes(check)
    check.add_argument("--fix", type=Path, metavar="OUT", help="write a corrected copy to this new file")
    check.add_argument(
        "--drop", nargs="+", default=[], metavar="FILTER", help="with --fix: leave these out, too"
    )
    check.add_argument(
        "--all", action="store_true", help=f"list every episode of a finding, not only the first {LISTED}"
    )
    check.set_defaults(command=_check)
    convert = commands.add_parser(
        "convert",
        help="turn R2R-CE or RxR-CE episodes into native ones, or back",
        description="Write the episodes of a dataset in another format. Existing files are not overwritten.",
        epilog=CONVERT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    convert.add_argument("source", type=Path, metavar="IN", help="an episode file or folder")
    convert.add_argument("out", type=Path, metavar="OUT", help="a new file, .json or .json.gz")
    convert.add_argument("--to", choices=FORMATS, default="native", help="(default: native)")
    _add_scenes(convert)
    convert.set_defaults(command=_convert)
    predictions = commands.add_parser(
        "predictions",
        help="write a run as a VLN-CE predictions file",
        description="Write the paths of a run in the format of VLN-CE's leaderboards (R2R) or of RxR's.",
        epilog="examples:\n  proctor predictions runs/r2r --out predictions.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    predictions.add_argument("run", type=Path, metavar="RUN_DIR")
    predictions.add_argument("--out", type=Path, required=True, metavar="FILE")
    predictions.add_argument("--dataset", type=Path, metavar="PATH", help="(default: where the run found it)")
    predictions.add_argument("--format", choices=("r2r", "rxr"), help="(default: that of the dataset)")
    predictions.set_defaults(command=_predictions)
    score = commands.add_parser(
        "score",
        help="score a VLN-CE predictions file",
        description="Measure the paths of a predictions file against the episodes they are of.",
        epilog=SCORE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    score.add_argument("predictions", type=Path, metavar="PREDICTIONS")
    score.add_argument("--dataset", type=Path, required=True, metavar="PATH", help="the episodes they are of")
    _add_scenes(score)
    score.add_argument("--out", type=Path, metavar="DIR", help="write a run folder, for report and compare")
    score.set_defaults(command=_score)


def _add_scenes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scenes", type=Path, metavar="DIR", help="the dataset's scenes, such as GLB files")


def _check(arguments: argparse.Namespace) -> int:
    from proctor.exams.doctor import examine, write_fixed
    from proctor.exams.pick_place.dataset_warnings import make_up

    if arguments.drop and arguments.fix is None:
        raise UserError("--drop leaves episodes out of the copy that --fix writes; give --fix OUT as well")
    patient = examine(arguments.path, scenes=arguments.scenes)
    console.print(f"{patient.file}: {len(patient.records)} episodes, {patient.format}", markup=False)
    for line in make_up(patient.picks):
        console.print(plain(line), markup=False, highlight=False)
    _print_findings(patient.findings, len(patient.records), listed=None if arguments.all else LISTED)
    errors = patient.findings.count("error")
    if arguments.fix is not None and patient.incurable:
        console.print(f"No copy is written: {patient.incurable}.", markup=False)
    elif arguments.fix is not None:
        fixed = write_fixed(patient, arguments.fix, drop=arguments.drop)
        errors = examine(fixed.file, scenes=arguments.scenes).findings.count("error")
        text = f"Wrote {fixed.file}: {fixed.kept} episodes, {fixed.changes} changes, {fixed.dropped} dropped"
        console.print(f"{text}; what and why: {fixed.report}", markup=False, soft_wrap=True)
        if errors:
            console.print(f"The copy still has {errors} kinds of errors.", markup=False)
    return ERRORS_FOUND if errors else DONE


def _print_findings(findings: Findings, episodes: int, *, listed: int | None) -> None:
    from proctor.exams.findings import FILTERS

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("N", justify="right")
    table.add_column("What", overflow="fold")
    for item in sorted(findings.items, key=lambda item: list(MARKS).index(item.severity)):
        places = _listed(item, listed)
        remedy = f" ({item.remedy} by --fix)" if item.remedy else ""
        text, where = escape(plain(item.text)), escape(plain(places))
        what = f"[bold]{item.kind}[/bold]: {text}{remedy}\n[dim]{where}[/dim]"
        table.add_row(MARKS[item.severity], str(item.count), what)
    console.print(table if findings.items else "Nothing is odd.")
    found = {name: indices for name, indices in findings.filters.items() if indices}
    if found:
        console.print(f"A filter would drop, of {episodes} episodes:")
        for name in FILTERS:
            if name in found:
                console.print(f"  {name:<18}{len(found[name]):>6}  {FILTERS[name]}", highlight=False)


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
    from proctor.exams.datasets import load_dataset, save_dataset
    from proctor.exams.vln.episode import Episode
    from proctor.exams.vln.gt import gt_file
    from proctor.exams.vln.vlnce_writer import save_vlnce, writing_notes

    out: Path = arguments.out
    for file in (out, gt_file(out)):  # a gt that lies there already would be taken for the new file's
        if file is not None and file.exists():
            raise UserError(f"{file} exists already; give a new name")
    dataset = load_dataset(arguments.source, scenes=arguments.scenes)
    if arguments.to != "native":
        dataset.of(Episode)  # refuses other tasks, for which there is no such format
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        episodes, notes = _relative_to(out.resolve().parent, dataset), list(dataset.notes)
        if arguments.to == "native":
            save_dataset(episodes, out)
            written = [out]
        else:
            gt = save_vlnce(episodes, out, arguments.to)
            written = [out, gt] if gt else [out]
            notes += writing_notes(episodes, arguments.to)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error
    _print_notes(notes)
    files = " and ".join(map(str, written))
    console.print(f"{len(dataset.episodes)} episodes: {files}", markup=False, soft_wrap=True)
    return DONE


def _relative_to(folder: Path, dataset: Dataset) -> list[Any]:
    """Return the episodes with scene paths that hold from this folder."""
    from proctor.exams.vln.episode import Episode

    return [
        msgspec.structs.replace(episode, scene_config_path=os.path.relpath(episode.scene_config_path, folder))
        if isinstance(episode, Episode) and episode.scene_config_path
        else episode
        for episode in dataset.episodes
    ]


def _predictions(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import load_dataset
    from proctor.exams.results import MANIFEST
    from proctor.exams.vln.episode import Episode
    from proctor.exams.vln.predictions import write_predictions
    from proctor.runs.folder import read_run_folder
    from proctor.runs.scoring import NO_PREDICTION

    if arguments.out.exists():
        raise UserError(f"{arguments.out} exists already; give a new name")
    if not (arguments.run / MANIFEST).is_file():
        raise InvalidFile(arguments.run, f"not a run folder: there is no {MANIFEST}")
    run = read_run_folder(arguments.run)
    _print_notes(run.warnings)
    results = {result.episode_id: result for result in run.episodes}
    path, ids, format_ = arguments.dataset, {}, arguments.format
    if path is None:
        source = (run.manifest.get("source") or {}).get("dataset")
        path = Path(source) if source else None
    if format_ != "r2r" and path is not None:
        dataset = load_dataset(path)
        format_ = format_ or ("rxr" if dataset.format == "rxr-ce" else "r2r")
        ids = {e.episode_id: e.origin.instruction_id or "" for e in dataset.of(Episode) if e.origin}
    lost = [key for key, result in results.items() if not result.is_scored]
    unpredicted = [key for key, r in results.items() if r.error is not None and r.error.kind == NO_PREDICTION]
    written = [result for key, result in results.items() if key not in {*lost, *unpredicted}]
    if not written:
        why = (
            f"none of the {len(results)} episodes is scored and predicted"
            if results
            else "no episode is finished"
        )
        raise UserError(f"{arguments.run}: {why}, so there is nothing to predict")
    try:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_predictions(
            written,
            arguments.out,
            format_=format_ or "r2r",
            instruction_ids=ids,
        )
    except OSError as error:
        raise UserError(f"cannot write to {arguments.out}: {error.strerror}") from error
    if lost:
        _print_notes([f"{len(lost)} episodes that are not scored are not in it, first '{lost[0]}'"])
    if unpredicted:
        why = "had no prediction when they were scored and are not in it"
        _print_notes([f"{len(unpredicted)} episodes {why}, first '{unpredicted[0]}'"])
    text = f"{len(written)} episodes in the format of {(format_ or 'r2r').upper()}: {arguments.out}"
    console.print(text, markup=False, soft_wrap=True)
    return DONE


def _score(arguments: argparse.Namespace) -> int:
    from proctor.exams.datasets import load_dataset
    from proctor.exams.distance_labels import distance_label
    from proctor.report.tables import score_notes, score_table
    from proctor.runs.scoring import score_predictions

    dataset = load_dataset(arguments.dataset, scenes=arguments.scenes)
    score = score_predictions(arguments.predictions, dataset, arguments.out)
    name = arguments.predictions.name
    title = f"{name} on {dataset.path.name}, {distance_label(score.results.summary.distance)}"
    console.print(score_table({name: score.results}, title=escape(title)))
    console.print(score_notes({name: score.results}), soft_wrap=True, markup=False)
    _print_notes(score.notes)
    if arguments.out is not None:
        console.print(f"Results: {arguments.out}", soft_wrap=True, markup=False)
    return DONE


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
