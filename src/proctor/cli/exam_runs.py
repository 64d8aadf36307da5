"""What commands that run an exam share: flags, names of runs and their folders, and the bar of progress."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from proctor.cli.terminal import console, errors
from proctor.core.addresses import address_label, is_address
from proctor.core.errors import UserError
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from proctor.runs.job import RunJob
    from proctor.runs.plan import RunConfig, RunPlan
    from proctor.runs.run import RunReport

LONGEST_NAME = 60


def add_exam(command: argparse.ArgumentParser, *, suite: str | None = None) -> None:
    """Add the flags that say which episodes are done in which world; `suite` is the default."""
    exam = command.add_mutually_exclusive_group(required=suite is None)
    default = f" (default: {suite})" if suite else ""
    exam.add_argument("--suite", metavar="NAME", help=f"an exam that comes with Proctor{default}")
    exam.add_argument("--dataset", type=Path, metavar="PATH", help="an episode file or folder of your own")
    command.add_argument(
        "--scenes", type=Path, metavar="DIR", help="where the dataset's scenes are, if not beside it"
    )
    command.add_argument("--split", metavar="NAME", help="only this part, such as val_unseen")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--episodes", type=int, metavar="N", help="only N, from all scenes in turn")
    which.add_argument("--episode", metavar="ID", help="only this one")
    command.add_argument("--env", default="", metavar="NAME", help="the world (default: the exam's own)")
    command.add_argument(
        "--env-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="e.g. width=320, or of tabletop 'sensors=[]'",
    )
    command.add_argument("--seed", type=int, default=0, help="all randomness depends on it (default: 0)")


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


def run_plan(plan: RunPlan, told: set[str], label: str = "") -> RunReport:
    """Do a run, with a bar labelled by the agent if there is no label. Notes in `told` are not told again."""
    from proctor.runs.run import Progress as State
    from proctor.runs.run import run

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("SR {task.fields[rate]:>4}"),
        TimeRemainingColumn(),
    )
    label = label or plan.config.label
    bar = Progress(*columns, console=console)
    task = bar.add_task(escape(label), total=None, rate="")
    checking = console.status(f"{escape(label)}: checking the episodes")

    def show(state: State) -> None:
        checking.stop()
        console.say(*(f"note: {note}" for note in state.notes if note not in told))
        told.update(state.notes)
        bar.start()  # only now: a request that is refused shows no bar
        scored = [result for result in state.finished if result.is_scored]
        rate = f"{sum(r.success for r in scored) / len(scored):.0%}" if scored else ""
        bar.update(task, total=state.total, completed=len(state.finished), rate=rate)
        if not console.is_terminal and len(state.finished) % max(1, state.total // 10) == 0:
            console.print(f"{label}: {len(state.finished)} of {state.total} episodes", markup=False)

    try:
        checking.start()
        report = run(plan, show, check_policy=not is_address(plan.config.job.policy))
    finally:
        checking.stop()
        if bar.live.is_started:
            bar.stop()
    _tell_end(label, report, plan.out)
    return report


def _tell_end(label: str, report: RunReport, out: Path) -> None:
    """Print what a run has to say beyond its scores."""
    from proctor.runs.recorder import recording_notes
    from proctor.runs.recordings import RECORDINGS

    if report.done_before == report.total:
        console.say(f"{label}: all {report.done_before} episodes were done before; nothing to do")
    elif report.done_before:
        console.print(f"{label}: went on after {report.done_before} finished episodes", markup=False)
    errors.say(*(f"warning: {label}: {warning}" for warning in report.warnings))
    if report.recorded is not None:
        notes = recording_notes(report.recorded, unrecorded=report.unrecorded, folder=out / RECORDINGS)
        console.say(*(f"{label}: {note}" for note in notes))


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
