"""What commands that run an exam share: flags, names of runs and their folders, progress and scores."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin

import msgspec
from msgspec.structs import replace
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from proctor.cli.options import add_dataset, add_option, add_scenes, read_options
from proctor.cli.terminal import Terminal, console, errors
from proctor.core.addresses import address_label, is_address
from proctor.core.errors import UserError
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from proctor.exams.datasets import Dataset
    from proctor.exams.names import AnyExam
    from proctor.exams.results import Results
    from proctor.runs.conditions import Conditions
    from proctor.runs.job import RunJob
    from proctor.runs.plan import RunConfig, RunPlan
    from proctor.runs.run import RunReport

LONGEST_NAME = 60


def add_exam(command: argparse.ArgumentParser, *, suite: str | None = None) -> None:
    """Add the flags that say which episodes are done in which world; `suite` is the default."""
    add_dataset(command, required=suite is None, note=f" (default: {suite})" if suite else "")
    add_scenes(command)
    add_option(command, "--split NAME", str, "only this part, such as val_unseen")
    which = command.add_mutually_exclusive_group()
    add_option(which, "--episodes N", int, "only N, from all scenes in turn")
    add_option(which, "--episode ID", str, "only this one")
    add_option(command, "--env NAME", "", "the world (default: the exam's own)")
    add_option(command, "--env-option KEY=VALUE", [], "e.g. width=320, or of tabletop 'sensors=[]'")
    add_option(command, "--seed", 0, "all randomness depends on it (default: 0)")


def add_conditions(command: argparse.ArgumentParser) -> None:
    """Add the flags for what agents are told and shown, and what their thinking costs."""
    group = command.add_argument_group("what the agent is told and shown (docs/probing.md)")
    text = (
        "what it is given beyond the instruction and colour pictures: none, or words with commas "
        "between, such as default, depth, scan, odometry, calibration, pose, map, goal"
    )
    add_option(group, "--inform WORDS", "default", text)
    text = (
        "no text, that of another episode of about the same length, left and right swapped, or other "
        "words for the same path (default: original)"
    )
    choices = ("original", "blank", "shuffled", "mirrored", "paraphrased")
    add_option(group, "--instructions", "original", text, choices=choices)
    text = "grey, noise, or the first of the episode throughout (default: original)"
    add_option(group, "--pictures", "original", text, choices=("original", "blank", "noise", "frozen"))
    group = command.add_argument_group("thinking time (default: the world waits for the agent)")
    text = (
        "let simulated time go on while the agent thinks: as long as it takes, or as many seconds for "
        "every action"
    )
    add_option(group, "--charge-latency measured|SECONDS", "", text)
    text = "the robot keeps its last command meanwhile, or stops (default: stop)"
    add_option(group, "--while-thinking", str, text, choices=("hold", "stop"))


def read_conditions(arguments: argparse.Namespace) -> Conditions:
    """Return the conditions that were given."""
    from proctor.exams.offers import read_inform
    from proctor.runs.conditions import Conditions

    if arguments.while_thinking and not arguments.charge_latency:
        raise UserError(
            "--while-thinking is about time that --charge-latency charges; add it, or leave this out"
        )
    return Conditions(
        inform=read_inform(arguments.inform),
        instructions=arguments.instructions,
        pictures=arguments.pictures,
        charge_latency=arguments.charge_latency,
        while_thinking=arguments.while_thinking or "stop",
    )


class _Flag(NamedTuple):
    name: str  # as it is typed: `--hide-goal`
    field: str
    help: str
    metavar: str
    is_switch: bool


def add_exam_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all exams that are installed, in a group for each."""
    from proctor.exams.names import all_exams

    taken: set[str] = set()
    for exam in all_exams():
        flags = [flag for flag in _flags(exam) if flag.name not in taken]
        taken.update(flag.name for flag in flags)
        if not flags:
            continue
        group = parser.add_argument_group(f"{exam.title or exam.name} only")
        for flag in flags:
            if flag.is_switch:
                group.add_argument(flag.name, action="store_true", default=None, help=flag.help)
            else:
                group.add_argument(flag.name, metavar=flag.metavar, help=flag.help)


def exam_options(arguments: argparse.Namespace, exam: type[AnyExam]) -> dict[str, Any]:
    """Return the options that were given for an exam."""
    from proctor.exams.names import all_exams
    from proctor.runs.job import read_exam_options

    own = {flag.name: flag for flag in _flags(exam)}
    for other in all_exams():
        for flag in _flags(other):
            if flag.name not in own and _given(arguments, flag.name) is not None:
                raise UserError(
                    f"{flag.name} is for {other.name}, and these episodes are of {exam.name}; leave it out"
                )
    given = {flag.field: _given(arguments, flag.name) for flag in own.values()}
    given = {field: value for field, value in given.items() if value is not None}
    for flag in own.values():  # one by one, so that the message can name the flag
        if flag.field in given:
            _check_value(exam, flag, given[flag.field])
    checked = read_exam_options(exam, given)
    return {field: getattr(checked, field) for field in given}


def _check_value(exam: type[AnyExam], flag: _Flag, value: Any) -> None:
    types = {field.name: field.type for field in msgspec.structs.fields(exam.options_type)}
    try:
        msgspec.convert(value, types[flag.field], strict=False)
    except msgspec.ValidationError as error:
        raise UserError(f"{flag.name}: {error}, found '{value}'") from None


def _given(arguments: argparse.Namespace, flag: str) -> Any:
    return getattr(arguments, flag.removeprefix("--").replace("-", "_"), None)


def _flags(exam: type[AnyExam]) -> Iterator[_Flag]:
    for field in msgspec.structs.fields(exam.options_type):
        kind, meta = field.type, msgspec.Meta()
        if get_origin(kind) is Annotated and isinstance(get_args(kind)[1], msgspec.Meta):
            kind, meta = get_args(kind)[:2]
        extra = meta.extra or {}
        yield _Flag(
            name=extra.get("flag", f"--{field.encode_name.replace('_', '-')}"),
            field=field.name,
            help=meta.description or "",
            metavar=extra.get("metavar", field.name.upper()),
            is_switch=kind is bool,
        )


def run_job(arguments: argparse.Namespace, policy: str, **more: Any) -> RunJob:
    """Return what processes must know: the world by the flags of `add_exam`, the rest as given."""
    from proctor.runs.job import RunJob

    options = read_options(arguments.env_option)
    return RunJob(policy=policy, env=arguments.env, env_options=options, seed=arguments.seed, **more)


def run_config(arguments: argparse.Namespace, job: RunJob, **more: Any) -> RunConfig:
    """Return what to run: the episodes by the flags of `add_exam`, the rest as given."""
    from proctor.runs.plan import RunConfig

    return RunConfig(
        job=job,
        suite=arguments.suite,
        dataset=arguments.dataset,
        scenes=arguments.scenes,
        split=arguments.split,
        episodes=arguments.episodes,
        episode=arguments.episode,
        **more,
    )


def load_exam(arguments: argparse.Namespace, job: RunJob, **more: Any) -> tuple[RunConfig, Dataset]:
    """Return what to run, as `run_config` does but with the options of its exam, and its dataset."""
    from proctor.runs.plan import load_run_dataset

    config = run_config(arguments, job, **more)
    dataset = load_run_dataset(config)
    job = replace(job, exam_options=exam_options(arguments, dataset.exam))
    return replace(config, job=job), dataset


def exam_title(arguments: argparse.Namespace) -> str:
    """Return what to call the episodes of a run in its table and its folder."""
    dataset = arguments.dataset
    stem = dataset.name.removesuffix(".gz").removesuffix(".json") if dataset else ""
    title: str = arguments.suite or (dataset.parent.name if stem == "episodes" else "") or stem
    return f"{title}-{arguments.split}" if arguments.split else title


def reach_agents(plans: Mapping[str, RunPlan]) -> None:
    """Find out whether all served agents are there, before the first one begins."""
    from proctor.runs.run import check_agents

    for plan in plans.values():
        policy = plan.config.job.policy
        if is_address(policy):
            looking = f"looking for the agent at {escape(policy)}"
            if not console.is_terminal:
                console.print(looking)
            with console.status(looking):
                check_agents(plan)


def run_plan(plan: RunPlan, told: set[str], label: str = "", *, join: bool = False) -> RunReport:
    """Do a run, with a bar labelled by the agent if there is no label. Notes in `told` are not told again.

    With `join`, help other processes with it, which may be about to begin it.
    """
    from proctor.runs.joining import await_run
    from proctor.runs.ledger import Progress as State
    from proctor.runs.plan import plan_run
    from proctor.runs.run import run

    if join:
        await_run(plan.out, console.say)
        plan = plan_run(plan.config, plan.out, plan.dataset)
    columns = (
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("SR {task.fields[rate]:>4}"),
        TimeRemainingColumn(),
    )
    label = label or plan.config.label
    bar = Progress(*columns, console=console)
    task = bar.add_task(label, total=None, rate="")
    checking = console.status(Text(f"{label}: checking the episodes"))
    tenths: set[int] = set()  # of the run, that were told

    def show(state: State) -> None:
        checking.stop()
        console.say(*(f"note: {note}" for note in state.notes if note not in told))
        told.update(state.notes)
        bar.start()  # only now: a request that is refused shows no bar
        scored = [result for result in state.finished if result.is_scored]
        rate = f"{sum(r.success for r in scored) / len(scored):.0%}" if scored else ""
        done = len(state.finished) + state.elsewhere
        bar.update(task, total=state.total, completed=done, rate=rate)
        tenth = 10 * done // max(1, state.total)
        if not console.is_terminal and tenth not in tenths:
            console.print(f"{label}: {done} of {state.total} episodes", markup=False)
        tenths.add(tenth)

    try:
        checking.start()
        report = run(plan, show, check_policy=not is_address(plan.config.job.policy), join=join)
    finally:
        checking.stop()
        if bar.live.is_started:
            bar.stop()
    _tell_end(label, report, plan.out)
    return report


def _tell_end(label: str, report: RunReport, out: Path) -> None:
    """Print what a run has to say beyond its scores."""
    from proctor.runs.recordings import RECORDINGS, recording_notes

    if report.done_before == report.total:
        console.say(f"{label}: all {report.done_before} episodes were done before; nothing to do")
    elif report.done_before:
        console.print(f"{label}: went on after {report.done_before} finished episodes", markup=False)
    errors.say(*(f"warning: {label}: {warning}" for warning in report.warnings))
    missing = report.total - report.results.total_episodes
    if missing and not (report.stopped or report.over_budget):
        errors.say(f"warning: {label}: {missing} episodes have no result yet; the same command goes on")
    if report.recorded is not None:
        notes = recording_notes(report.recorded, unrecorded=report.unrecorded, folder=out / RECORDINGS)
        console.say(*(f"{label}: {note}" for note in notes))


def print_scores(
    exam: type[AnyExam],
    runs: Mapping[str, Results],
    title: str,
    *,
    privileged: Collection[str] = (),
    to: Terminal = console,
) -> None:
    """Print the table of scores, and what a reader must know to read it."""
    from proctor.report.tables import score_notes, score_table

    to.print(score_table(exam, runs, title=title, privileged=privileged))
    to.say(score_notes(exam, runs, privileged=privileged))


def names_of(policies: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Return the given name of each policy; an empty one where none was given."""
    unique = list(dict.fromkeys(policies))
    if given and len(given) != len(unique):
        raise UserError(f"--name: expected {len(unique)}, one for each policy, found {len(given)}")
    for name in given:
        if not folder_label(name) or plain(name) != name or len(name) > LONGEST_NAME:
            raise UserError(
                f"--name: expected 1 to {LONGEST_NAME} printable characters, a letter or digit among them, "
                f"found {name!r:.80}"
            )
    if len(set(given)) != len(given):
        raise UserError(f"--name: expected different names, found {' '.join(given)}")
    return dict(zip(unique, given or [""] * len(unique), strict=True))


def folder_of(policy: str, name: str) -> str:
    """Return the name of an agent's folder."""
    if name:
        return folder_label(name)
    if is_address(policy):
        return address_label(policy)
    file, _, class_ = policy.partition(":")
    if file.endswith(".py"):
        policy = f"{Path(file).stem}:{class_}".rstrip(":")
    return policy.replace(":", ".").replace("/", "_")


def folder_label(name: str) -> str:
    """Return a name for a folder; empty if nothing of the name can be in one."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._-")
