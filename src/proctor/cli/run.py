"""`proctor run`: let policies take an exam."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from proctor.cli.agent_names import folder_of, names_of
from proctor.cli.options import find_modules_here, read_options
from proctor.cli.terminal import DONE, TOO_MANY_FAULTS, UNAVAILABLE, console, errors
from proctor.core.addresses import is_address
from proctor.core.errors import UserError
from proctor.runs.recordings import RECORDINGS

if TYPE_CHECKING:
    from proctor.runs.job import Job
    from proctor.runs.recorder import RecordingConfig
    from proctor.runs.run import RunConfig, RunReport

LEVELS = range(4)
RUN_EXAMPLES = """\
examples:
  proctor run --suite houses-v1 --policy oracle
  proctor run --suite houses-v1 --policy random forward oracle --episodes 10 --workers 2
  proctor run --dataset my_episodes.json --policy my_agent:Agent --out runs/my_agent
  proctor run --suite houses-v1 --policy my_agent:Agent --name "mine, 2nd try" --out runs/second
  proctor run --suite houses-v1 --policy ./agents/my_agent.py:Agent
  proctor run --suite houses-v1 --policy replay --policy-option run=runs/oracle
  proctor run --suite houses-v1 --policy my_agent:Agent --save-frames
  proctor run --suite houses-v1 --policy ws://localhost:8080 --policy-option action_timeout_s=5
  proctor run --suite houses-v1 --policy ws://gpu1:8080,ws://gpu2:8080 --workers 2
  proctor run --suite houses-v1 --policy oracle --env ros2 --episodes 3
  proctor run --dataset my_tables.json --policy hold random my_agent:Agent --level 2

An agent at ws:// or wss:// is served elsewhere, for instance with `proctor serve-policy`; several addresses
with commas between are the same agent, shared out among the workers. If it wants a token, put it into the
environment variable PROCTOR_AGENT_TOKEN.

The same command on the same folder goes on where it stopped; a finished run is not done again.
exit codes: 0 done, 1 too many episodes that are not scored (evaluator faults), 2 user error,
  3 stopped because the agent is unavailable (the same command goes on), 130 interrupted
"""


def add_run(commands: Any) -> None:
    """Add the command."""
    run = commands.add_parser(
        "run",
        help="let one or more policies take an exam",
        description="Let one or more policies take an exam, and print their scores.",
        epilog=RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    exam = run.add_mutually_exclusive_group(required=True)
    exam.add_argument("--suite", metavar="NAME", help="an exam that comes with Proctor")
    exam.add_argument("--dataset", type=Path, metavar="PATH", help="an episode file or folder of your own")
    run.add_argument(
        "--policy",
        nargs="+",
        required=True,
        metavar="NAME",
        help="a name (proctor list), module:Class, file.py:Class, or the address of a served agent: "
        "ws://host:port; modules are looked for in this folder, too",
    )
    run.add_argument(
        "--name",
        nargs="+",
        default=[],
        metavar="NAME",
        help="what to call the agent in tables, reports and its folder; as many as there are policies",
    )
    run.add_argument(
        "--env", default="", metavar="NAME", help="the world (default: the task's, embedded or tabletop)"
    )
    run.add_argument(
        "--scenes", type=Path, metavar="DIR", help="where the dataset's scenes are, if not beside it"
    )
    run.add_argument("--split", metavar="NAME", help="only this part, such as val_unseen")
    which = run.add_mutually_exclusive_group()
    which.add_argument("--episodes", type=int, metavar="N", help="only N, from all scenes in turn")
    which.add_argument("--episode", metavar="ID", help="only this one")
    run.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    run.add_argument("--seed", type=int, default=0, help="all randomness depends on it (default: 0)")
    run.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: runs/EXAM/POLICY)")
    run.add_argument(
        "--success-threshold",
        type=float,
        metavar="M",
        help="metres from the goal, where an episode does not say it (default: 0.2); navigation only",
    )
    run.add_argument(
        "--env-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="e.g. width=320, or of tabletop 'sensors=[]'",
    )
    run.add_argument("--policy-option", action="append", default=[], metavar="KEY=VALUE")
    _add_recording(run)
    _add_special(run)
    _add_limits(run)
    run.set_defaults(command=_run, goes_on=True)


def _add_limits(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--max-fault-rate",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="exit with 1 above this share of episodes that are not scored (default: 0)",
    )
    run.add_argument(
        "--max-unavailable",
        type=int,
        default=3,
        metavar="N",
        help="stop, with exit code 3, when the agent was unavailable N times in a row (default: 3)",
    )
    run.add_argument(
        "--unavailable-pause",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds before the next attempt then, doubled each time up to a minute (default: 5)",
    )


def _add_recording(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--save-steps",
        nargs="?",
        const="brief",
        choices=("brief", "full"),
        help="record pose, action, collision and latency of each step; full: also depth, scan, joints and "
        "all else that the agent's sensors said, without loss (colour: --save-frames)",
    )
    run.add_argument(
        "--save-frames", action="store_true", help="record what the agent saw, too, as JPEG files"
    )
    run.add_argument(
        "--frames-budget-mb",
        type=float,
        default=1000.0,
        metavar="MB",
        help="for all frames and sensors; when it is spent, steps are still recorded (default: 1000)",
    )


def _add_special(run: argparse.ArgumentParser) -> None:
    ros2 = run.add_argument_group("env ros2 only")
    ros2.add_argument(
        "--attach", action="store_true", help="use a robot that is there; else one is simulated for the run"
    )
    only = run.add_argument_group("pick-and-place only")
    only.add_argument(
        "--level",
        type=int,
        metavar="N",
        help="what looks other than stored: 1 materials, 2 also the cameras, 3 also the light",
    )
    only.add_argument(
        "--object-info",
        action="store_true",
        help="show the agent where object and target are, in every observation; for debugging",
    )
    only.add_argument(
        "--hide-goal",
        action="store_true",
        help="tell the agent no coordinates of things and places: it has to see them",
    )


def _run(arguments: argparse.Namespace) -> int:
    from proctor.core.registry import load
    from proctor.report.tables import score_notes, score_table

    dataset = arguments.dataset
    stem = dataset.name.removesuffix(".gz").removesuffix(".json") if dataset else ""
    exam = arguments.suite or (dataset.parent.name if stem == "episodes" else "") or stem
    if arguments.split:
        exam += f"-{arguments.split}"
    out: Path = arguments.out or Path("runs") / exam
    if not 0 <= arguments.max_fault_rate <= 1:
        raise UserError(f"--max-fault-rate: expected a share from 0 to 1, found {arguments.max_fault_rate}")
    find_modules_here()
    for policy in arguments.policy:
        load("policy", policy)  # a misspelt name must not cost the time of those before it
    alone = len(arguments.policy) == 1 and arguments.out is not None
    planned = {
        config.label: (config, out if alone else out / folder_of(config.job.policy, config.name))
        for config in _configs(arguments)
    }
    _reach(planned)
    told: set[str] = set()
    reports = {label: _run_one(config, folder, told) for label, (config, folder) in planned.items()}
    finished = {label: report.results for label, report in reports.items()}
    privileged = [name for name, (config, _) in planned.items() if config.job.privileged]
    title = f"{exam} on {next(iter(planned.values()))[0].job.env}"
    console.print(score_table(finished, title=title, privileged=privileged))
    console.print(score_notes(finished, privileged=privileged), soft_wrap=True, markup=False)
    shown = shlex.quote(str(out))
    console.print(f"Results: {out}. To look at them: proctor report {shown}", soft_wrap=True, markup=False)
    if any(report.stopped for report in reports.values()):
        _say_how_to_go_on(reports, arguments.words)
        return UNAVAILABLE
    worst = max(sum(r.summary.unscored.values()) / r.total_episodes for r in finished.values())
    return TOO_MANY_FAULTS if worst > arguments.max_fault_rate else DONE


def _say_how_to_go_on(reports: Mapping[str, RunReport], words: Sequence[str]) -> None:
    """Tell which runs have stopped because their agent is unavailable, and the command that goes on."""
    for policy, report in reports.items():
        if report.stopped:
            done = sum(result.is_scored for result in report.results.episodes)
            text = f"{policy}: the agent is unavailable: {report.stopped}\n"
            text += f"{done} of {report.total} episodes are done and kept."
            errors.print(f"stopped: {text}", markup=False, soft_wrap=True)
    shown = [re.sub(r"(^|=)token=.*", r"\1token=...", word, flags=re.DOTALL) for word in words]
    again = f"When the agent answers again, go on with: proctor {shlex.join(shown)}"
    errors.print(again, markup=False, soft_wrap=True)


def _configs(arguments: argparse.Namespace) -> list[RunConfig]:
    """Return a run for each policy, all of them known to fit the task."""
    from proctor.runs.attempts import Patience
    from proctor.runs.run import RunConfig, load_exam
    from proctor.runs.tasks import fitted

    patience = Patience(max_unavailable=arguments.max_unavailable, pause_s=arguments.unavailable_pause)
    configs = [
        RunConfig(
            job=_job(arguments, policy),
            name=name,
            suite=arguments.suite,
            dataset=arguments.dataset,
            scenes=arguments.scenes,
            split=arguments.split,
            episodes=arguments.episodes,
            episode=arguments.episode,
            workers=arguments.workers,
            recording=_recording(arguments),
            patience=patience,
        )
        for policy, name in names_of(arguments.policy, arguments.name).items()
    ]
    task = load_exam(configs[0]).task
    _check_options(arguments, task)
    return [replace(config, job=fitted(config.job, task)) for config in configs]


def _job(arguments: argparse.Namespace, policy: str) -> Job:
    from proctor.runs.job import Job

    options = read_options(arguments.env_option)
    if arguments.level:  # 0 is as stored, and is the same run as one that names no level
        options |= {"level": arguments.level, "level_seed": arguments.seed}
    if arguments.object_info:
        options["object_info"] = True
    if arguments.attach:
        options["attach"] = True
    threshold_m = arguments.success_threshold
    own_m = options.get("success_threshold")
    if threshold_m is None and isinstance(own_m, int | float):  # said to the env
        threshold_m = own_m
    return Job(
        env=arguments.env,
        policy=policy,
        env_options=options,
        policy_options=read_options(arguments.policy_option),
        seed=arguments.seed,
        hide_goal=arguments.hide_goal,
        **({} if threshold_m is None else {"success_threshold_m": threshold_m}),
    )


def _check_options(arguments: argparse.Namespace, task: str) -> None:
    """Refuse options that mean nothing, or nothing in this task."""
    if arguments.level is not None and arguments.level not in LEVELS:
        raise UserError(f"--level: expected {LEVELS[0]} to {LEVELS[-1]}, found {arguments.level}")
    if arguments.attach and arguments.env != "ros2":
        raise UserError("--attach is for --env ros2; the other worlds have their own robots")
    if arguments.attach and arguments.workers > 1:
        raise UserError("--attach: one robot can do one episode at a time; leave --workers out")
    if arguments.env == "o3de" and arguments.workers > 1:
        raise UserError("--env o3de: one engine can do one episode at a time; leave --workers out")
    only_for = {
        "vln": {"--success-threshold": arguments.success_threshold is not None},
        "pick_and_place": {
            "--level": arguments.level is not None,
            "--object-info": arguments.object_info,
            "--hide-goal": arguments.hide_goal,
        },
    }
    for other, options in only_for.items():
        for option, is_given in options.items():
            if is_given and other != task:
                raise UserError(f"{option} is for {other}, and these episodes are of {task}; leave it out")


def _reach(planned: dict[str, tuple[RunConfig, Path]]) -> None:
    """Find out whether all served agents are there, before the first one begins."""
    from proctor.runs.run import check_agents

    folders = [folder for _, folder in planned.values()]
    for config, folder in planned.values():
        policy = config.job.policy
        if folders.count(folder) > 1:
            raise UserError(f"two of these policies would write to {folder}; give them names with --name")
        if is_address(policy):
            looking = f"looking for the agent at {escape(policy)}"
            if not console.is_terminal:
                console.print(looking)
            with console.status(looking):
                check_agents(config, folder)


def _run_one(config: RunConfig, out: Path, told: set[str]) -> RunReport:
    """Run one policy. Notes that have been told are not told again."""
    from proctor.runs.run import Progress as State
    from proctor.runs.run import run

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("SR {task.fields[rate]:>4}"),
        TimeRemainingColumn(),
    )
    label = config.label
    bar = Progress(*columns, console=console)
    task = bar.add_task(escape(label), total=None, rate="")
    checking = console.status(f"{escape(label)}: checking the episodes")

    def show(state: State) -> None:
        checking.stop()
        for note in state.notes:
            if note not in told:
                console.print(f"note: {note}", markup=False, soft_wrap=True)
        told.update(state.notes)
        bar.start()  # only now: a request that is refused shows no bar
        scored = [result for result in state.finished if result.is_scored]
        rate = f"{sum(r.success for r in scored) / len(scored):.0%}" if scored else ""
        bar.update(task, total=state.total, completed=len(state.finished), rate=rate)
        if not console.is_terminal and len(state.finished) % max(1, state.total // 10) == 0:
            console.print(f"{label}: {len(state.finished)} of {state.total} episodes", markup=False)

    try:
        checking.start()
        report = run(config, out, show, check_policy=not is_address(config.job.policy))
    finally:
        checking.stop()
        if bar.live.is_started:
            bar.stop()
    _tell_end(label, report, out)
    return report


def _tell_end(label: str, report: RunReport, out: Path) -> None:
    """Print what a run has to say beyond its scores."""
    from proctor.runs.recorder import recording_notes

    if report.done_before == report.total:
        text = f"{label}: all {report.done_before} episodes were done before; nothing to do"
        console.print(text, markup=False)
    elif report.done_before:
        console.print(f"{label}: went on after {report.done_before} finished episodes", markup=False)
    for warning in report.warnings:
        errors.print(f"warning: {label}: {warning}", markup=False, soft_wrap=True)
    if report.recorded is not None:
        for line in recording_notes(report.recorded, unrecorded=report.unrecorded, folder=out / RECORDINGS):
            console.print(f"{label}: {line}", markup=False, soft_wrap=True)


def _recording(arguments: argparse.Namespace) -> RecordingConfig | None:
    from proctor.runs.recorder import RecordingConfig

    budget_mb = arguments.frames_budget_mb
    if not 0 <= budget_mb < math.inf:
        raise UserError(f"--frames-budget-mb: expected megabytes from 0 up, found {budget_mb}")
    if not (arguments.save_steps or arguments.save_frames):
        return None
    return RecordingConfig(
        frames=arguments.save_frames,
        sensors=arguments.save_steps == "full",
        frames_budget_bytes=round(budget_mb * 1e6),
    )
