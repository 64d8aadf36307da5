"""`proctor run`: let policies take an exam."""

from __future__ import annotations

import argparse
import inspect
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from proctor.cli import exam_runs
from proctor.cli.dry_run import dry_run
from proctor.cli.options import add_command, add_option, find_modules_here, read_options
from proctor.cli.terminal import (
    DONE,
    OVER_BUDGET,
    TOO_MANY_FAULTS,
    UNAVAILABLE,
    command_text,
    console,
    errors,
)
from proctor.core.addresses import is_chat
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.runs.job import RunJob
    from proctor.runs.plan import RunPlan
    from proctor.runs.recorder import RecordingConfig
    from proctor.runs.run import RunReport

RUN_HELP = """\
let one or more policies take an exam
Let one or more policies take an exam, and print their scores.

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
  proctor run --suite houses-v1 --policy chat+http://localhost:8000/v1 --policy-option model=qwen3-vl
  proctor run --suite houses-v1 --policy chat+http://HOST/v1 --policy-option model=NAME --budget-tokens 90000
  proctor run --suite houses-v1 --policy my_agent:Agent --inform default,pose,map --out runs/with_a_map
  proctor run --suite houses-v1 --policy my_agent:Agent --instructions mirrored --out runs/mirrored
  proctor run --suite houses-v1 --policy oracle --env ros2 --episodes 3
  proctor run --suite houses-v1 --policy my_agent:Agent --workers 8 --save-frames --dry-run
  proctor run --suite houses-v1 --policy oracle --out /shared/oracle --join    help from another machine
  proctor run --suite houses-v1 --policy oracle --executor ray --executor-option address=auto
  proctor run --suite houses-v1 --policy oracle --out /shared/oracle --executor slurm --workers 40
  proctor run --dataset my_tables.json --policy hold random my_agent:Agent --level 2
  proctor run --suite houses-v1 --policy my_agent:Agent --charge-latency measured --while-thinking hold

An agent at ws:// or wss:// is served elsewhere, for instance with `proctor serve-policy`; several addresses
with commas between are the same agent, shared out among the workers. If it wants a token, put it into the
environment variable PROCTOR_AGENT_TOKEN.

A chat model behind an HTTP API is asked at chat+http:// (/chat/completions), chat+responses+https://
(OpenAI's Responses) or chat+anthropic+https:// (Anthropic's messages); its key is taken from the environment
variable PROCTOR_CHAT_KEY.

The same command on the same folder goes on where it stopped; a finished run is not done again.
exit codes: 0 done, 1 too many episodes that are not scored (evaluator faults), 2 user error,
  3 stopped because the agent is unavailable (the same command goes on),
  4 stopped because the budget is spent (the same command with a larger one goes on), 130 interrupted
"""


def add_run(commands: Any, *, with_exam_options: bool) -> None:
    """Add the command."""
    run = add_command(commands, "run", _run, RUN_HELP)
    exam_runs.add_exam(run)
    text = (
        "a name (proctor list), module:Class, file.py:Class, or the address of a served agent: "
        "ws://host:port, or of a chat model: chat+http://host:port/v1; modules are looked for here, too"
    )
    add_option(run, "--policy NAME", str, text, nargs="+", required=True)
    text = "what to call the agent in tables, reports and its folder; as many as there are policies"
    add_option(run, "--name NAME", str, text, nargs="+", default=[])
    add_option(run, "--workers N", int, "processes (default: 1; with ray, all that the cluster has room for)")
    add_option(run, "--executor NAME", "", "where episodes are done (default: here, by --workers)")
    add_option(run, "--join", bool, "help a run in the same folder that others are doing (docs/cluster.md)")
    text = "seconds without a sign of life after which others take a process for dead (default: 60)"
    add_option(run, "--lease S", 60.0, text)
    text = "an option of the executor, e.g. address=HOST:6379; may be given several times"
    add_option(run, "--executor-option KEY=VALUE", [], text)
    add_option(run, "--out DIR", Path, "the run's folder (default: runs/EXAM/POLICY)")
    text = "check all, measure a few episodes, tell how long the run will take, and write nothing"
    add_option(run, "--dry-run", bool, text)
    text = "an option of the policy, e.g. model=qwen3-vl; may be given several times"
    add_option(run, "--policy-option KEY=VALUE", [], text)
    exam_runs.add_conditions(run)
    _add_recording(run)
    ros2 = run.add_argument_group("env ros2 only")
    add_option(ros2, "--attach", bool, "use a robot that is there; else one is simulated for the run")
    if with_exam_options:
        exam_runs.add_exam_options(run)
    _add_limits(run)
    run.set_defaults(goes_on=True)


def _add_recording(run: argparse.ArgumentParser) -> None:
    text = (
        "record pose, action, collision and latency of each step; full: also depth, scan, joints and "
        "all else that the agent's sensors said, without loss (colour: --save-frames)"
    )
    add_option(run, "--save-steps", str, text, nargs="?", const="brief", choices=("brief", "full"))
    add_option(run, "--save-frames", bool, "record what the agent saw, too, as JPEG files")
    text = "let recorders write a file about each episode, e.g. video; several with commas between"
    add_option(run, "--record NAMES", "", text)
    text = "for all but the steps; when it is spent, steps are still recorded (default: 1000)"
    add_option(run, "--frames-budget-mb MB", 1000.0, text)


def _add_limits(run: argparse.ArgumentParser) -> None:
    text = "exit with 1 above this share of episodes that are not scored (default: 0)"
    add_option(run, "--max-fault-rate SHARE", 0.0, text)
    text = "stop, with exit code 3, when the agent was unavailable N times in a row (default: 3)"
    add_option(run, "--max-unavailable N", 3, text)
    text = "seconds before the next attempt then, doubled each time up to a minute (default: 5)"
    add_option(run, "--unavailable-pause S", 5.0, text)
    text = "begin no episode by which the attempts in the run's folder might cost more; exit code 4 then"
    add_option(run, "--budget-usd USD", float, text)
    add_option(run, "--budget-tokens N", int, "the same for tokens, input and output together")
    add_option(run, "--no-wire", bool, "do not keep what is exchanged with a chat model (RUN/wire)")


def _run(arguments: argparse.Namespace) -> int:
    title = exam_runs.exam_title(arguments)
    out: Path = arguments.out or Path("runs") / title
    if not 0 <= arguments.max_fault_rate <= 1:
        raise UserError(f"--max-fault-rate: expected a share from 0 to 1, found {arguments.max_fault_rate}")
    find_modules_here()
    plans = _plans(arguments, out)
    exam_runs.reach_agents(plans)
    if arguments.dry_run:
        rate = arguments.max_fault_rate
        return dry_run(plans, title, out=out, max_fault_rate=rate, join=arguments.join)
    told: set[str] = set()
    reports = {label: exam_runs.run_plan(plan, told, join=arguments.join) for label, plan in plans.items()}
    finished = {label: report.results for label, report in reports.items()}
    privileged = [label for label, plan in plans.items() if plan.config.job.privileged]
    first = next(iter(plans.values()))
    exam, where = first.dataset.exam, f"{title} on {first.config.job.env}"
    exam_runs.print_scores(exam, finished, where, privileged=privileged)
    console.say(*(f"{label}: {report.resources}" for label, report in reports.items() if report.resources))
    console.say(f"Results: {out}. To look at them: proctor report {shlex.quote(str(out))}")
    is_stopped = _say_unavailable(reports, arguments.words)
    is_over_budget = _say_over_budget(reports)
    if is_stopped or is_over_budget:
        return UNAVAILABLE if is_stopped else OVER_BUDGET
    worst = max(report.unscored / report.total for report in reports.values())
    return TOO_MANY_FAULTS if worst > arguments.max_fault_rate else DONE


def _say_unavailable(reports: Mapping[str, RunReport], words: Sequence[str]) -> bool:
    """Tell which runs have stopped because the agent is unavailable, and how they go on; whether any has."""
    stopped = {label: report for label, report in reports.items() if report.stopped}
    for label, report in stopped.items():
        errors.say(f"stopped: {label}: the agent is unavailable: {report.stopped}", _done_text(report))
    if stopped:
        errors.say(f"When the agent answers again, go on with: {command_text(words)}")
    return bool(stopped)


def _say_over_budget(reports: Mapping[str, RunReport]) -> bool:
    """Tell which runs have stopped because their budget is spent, and how they go on; whether any has."""
    stopped = {label: report for label, report in reports.items() if report.over_budget}
    for label, report in stopped.items():
        why = f"the budget does not allow another episode: {report.over_budget}."
        errors.say(f"stopped: {label}: {why}", _done_text(report))
    if stopped:
        errors.say("To go on, give the same command a larger budget.")
    return bool(stopped)


def _done_text(report: RunReport) -> str:
    return f"{report.total - report.unscored} of {report.total} episodes are done and kept."


def _plans(arguments: argparse.Namespace, out: Path) -> dict[str, RunPlan]:
    """Return a plan for each policy, all of them known to fit the exam. The dataset is read once."""
    from proctor.core.registry import load
    from proctor.exams.names import all_baselines
    from proctor.runs.attempts import Patience
    from proctor.runs.budget import RunBudget
    from proctor.runs.plan import load_run_dataset, plan_run

    patience = Patience(max_unavailable=arguments.max_unavailable, pause_s=arguments.unavailable_pause)
    alone = len(arguments.policy) == 1 and arguments.out is not None
    names = exam_runs.names_of(arguments.policy, arguments.name)
    model = read_options(arguments.policy_option).get("model")
    if len(names) == 1 and is_chat(arguments.policy[0]) and not arguments.name and isinstance(model, str):
        names = exam_runs.names_of(arguments.policy, [model[: exam_runs.LONGEST_NAME]])
    configs = [
        exam_runs.run_config(
            arguments,
            _job(arguments, policy),
            name=name,
            workers=arguments.workers,
            executor=arguments.executor,
            executor_options=read_options(arguments.executor_option),
            lease_s=arguments.lease,
            recording=_recording(arguments),
            patience=patience,
            budget=RunBudget(usd=arguments.budget_usd, tokens=arguments.budget_tokens),
        )
        for policy, name in names.items()
    ]
    dataset = load_run_dataset(configs[0])
    for policy in arguments.policy:
        class_ = load("policy", policy, all_baselines())  # a misspelt name must not cost time
        if arguments.no_wire and "wire" not in inspect.signature(class_).parameters:
            raise UserError(f"--no-wire: the policy '{policy}' keeps no transcripts; leave --no-wire out")
    _check_options(arguments)
    options = exam_runs.exam_options(arguments, dataset.exam)
    configs = [replace(config, job=replace(config.job, exam_options=options)) for config in configs]
    folders = [
        out if alone else out / exam_runs.folder_of(config.job.policy, config.name) for config in configs
    ]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"two of these policies would write to {folder}; give them names with --name")
    return {
        config.label: plan_run(config, folder, dataset)
        for config, folder in zip(configs, folders, strict=True)
    }


def _job(arguments: argparse.Namespace, policy: str) -> RunJob:
    options = read_options(arguments.policy_option)
    if arguments.no_wire:
        options["wire"] = False
    conditions = exam_runs.read_conditions(arguments)
    job = exam_runs.run_job(arguments, policy, policy_options=options, conditions=conditions)
    return replace(job, env_options={**job.env_options, "attach": True}) if arguments.attach else job


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that mean nothing in this env."""
    if arguments.attach and arguments.env != "ros2":
        raise UserError("--attach is for --env ros2; the other worlds have their own robots")
    is_elsewhere = arguments.executor not in ("", "in-process", "workers")
    given = {
        "--workers": (arguments.workers or 1) > 1,
        "--join": arguments.join,
        "--executor": is_elsewhere,
    }
    for flag, is_given in given.items():
        if arguments.attach and is_given:
            raise UserError(f"--attach: one robot can do one episode at a time; leave {flag} out")
        if arguments.env == "o3de" and is_given:
            raise UserError(f"--env o3de: one engine can do one episode at a time; leave {flag} out")
    if arguments.budget_usd is not None or arguments.budget_tokens is not None:
        if arguments.join:
            raise UserError("--join: a run with a budget cannot be shared; leave --join out")
        if arguments.executor == "slurm":
            raise UserError(
                "--executor slurm: a run with a budget cannot be shared; leave --executor out, or "
                "--budget-usd and --budget-tokens"
            )
    if arguments.join and arguments.executor == "slurm":
        raise UserError(
            "--join: the jobs of --executor slurm join the run by themselves; leave --join out, or leave "
            "--executor out to help here"
        )


def _recording(arguments: argparse.Namespace) -> RecordingConfig | None:
    from proctor.core.registry import load
    from proctor.runs.recorder import RecordingConfig

    budget_mb = arguments.frames_budget_mb
    if not 0 <= budget_mb < math.inf:
        raise UserError(f"--frames-budget-mb: expected megabytes from 0 up, found {budget_mb}")
    recorders = tuple(dict.fromkeys(name for name in arguments.record.split(",") if name))
    for name in recorders:
        load("recorder", name)  # a misspelt name must not cost time
    if not (arguments.save_steps or arguments.save_frames or recorders):
        return None
    return RecordingConfig(
        recorders=recorders,
        frames=arguments.save_frames,
        sensors=arguments.save_steps == "full",
        frames_budget_bytes=round(budget_mb * 1e6),
    )
