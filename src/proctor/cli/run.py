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

from proctor.cli.conditions import add_conditions, read_conditions
from proctor.cli.exam_options import add_exam_options, exam_options
from proctor.cli.exam_runs import (
    LONGEST_NAME,
    add_exam,
    exam_title,
    folder_of,
    names_of,
    reach_agents,
    run_config,
    run_plan,
)
from proctor.cli.options import add_command, find_modules_here, read_options
from proctor.cli.spending import add_spending, budget_of, check_wire, say_over_budget
from proctor.cli.terminal import DONE, OVER_BUDGET, TOO_MANY_FAULTS, UNAVAILABLE, console, errors
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
    add_exam(run)
    run.add_argument(
        "--policy",
        nargs="+",
        required=True,
        metavar="NAME",
        help="a name (proctor list), module:Class, file.py:Class, or the address of a served agent: "
        "ws://host:port, or of a chat model: chat+http://host:port/v1; modules are looked for here, too",
    )
    run.add_argument(
        "--name",
        nargs="+",
        default=[],
        metavar="NAME",
        help="what to call the agent in tables, reports and its folder; as many as there are policies",
    )
    run.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    run.add_argument(
        "--executor", default="", metavar="NAME", help="how episodes are done (default: by --workers)"
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (default: runs/EXAM/POLICY)")
    run.add_argument(
        "--policy-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the policy, e.g. model=qwen3-vl; may be given several times",
    )
    add_conditions(run)
    _add_recording(run)
    ros2 = run.add_argument_group("env ros2 only")
    ros2.add_argument(
        "--attach", action="store_true", help="use a robot that is there; else one is simulated for the run"
    )
    if with_exam_options:
        add_exam_options(run)
    _add_limits(run)
    run.set_defaults(goes_on=True)


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
    add_spending(run)


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


def _run(arguments: argparse.Namespace) -> int:
    from proctor.report.tables import score_notes, score_table

    title = exam_title(arguments)
    out: Path = arguments.out or Path("runs") / title
    if not 0 <= arguments.max_fault_rate <= 1:
        raise UserError(f"--max-fault-rate: expected a share from 0 to 1, found {arguments.max_fault_rate}")
    find_modules_here()
    plans = _plans(arguments, out)
    reach_agents(plans)
    told: set[str] = set()
    reports = {label: run_plan(plan, told) for label, plan in plans.items()}
    finished = {label: report.results for label, report in reports.items()}
    privileged = [label for label, plan in plans.items() if plan.config.job.privileged]
    first = next(iter(plans.values()))
    table = score_table(
        first.dataset.exam, finished, title=f"{title} on {first.config.job.env}", privileged=privileged
    )
    console.print(table)
    console.say(score_notes(first.dataset.exam, finished, privileged=privileged))
    console.say(f"Results: {out}. To look at them: proctor report {shlex.quote(str(out))}")
    if any(report.stopped for report in reports.values()):
        _say_how_to_go_on(reports, arguments.words)
    is_over_budget = say_over_budget(reports)
    if any(report.stopped for report in reports.values()):
        return UNAVAILABLE
    if is_over_budget:
        return OVER_BUDGET
    worst = max(sum(r.summary.unscored.values()) / r.total_episodes for r in finished.values())
    return TOO_MANY_FAULTS if worst > arguments.max_fault_rate else DONE


def _say_how_to_go_on(reports: Mapping[str, RunReport], words: Sequence[str]) -> None:
    """Tell which runs have stopped because their agent is unavailable, and the command that goes on."""
    for policy, report in reports.items():
        if report.stopped:
            done = sum(result.is_scored for result in report.results.episodes)
            errors.say(f"stopped: {policy}: the agent is unavailable: {report.stopped}")
            errors.say(f"{done} of {report.total} episodes are done and kept.")
    shown = [re.sub(r"(^|=)token=.*", r"\1token=...", word, flags=re.DOTALL) for word in words]
    errors.say(f"When the agent answers again, go on with: proctor {shlex.join(shown)}")


def _plans(arguments: argparse.Namespace, out: Path) -> dict[str, RunPlan]:
    """Return a plan for each policy, all of them known to fit the exam. The dataset is read once."""
    from proctor.core.registry import load
    from proctor.exams.names import all_baselines
    from proctor.runs.attempts import Patience
    from proctor.runs.plan import load_run_dataset, plan_run

    patience = Patience(max_unavailable=arguments.max_unavailable, pause_s=arguments.unavailable_pause)
    alone = len(arguments.policy) == 1 and arguments.out is not None
    names = names_of(arguments.policy, arguments.name)
    model = read_options(arguments.policy_option).get("model")
    if len(names) == 1 and is_chat(arguments.policy[0]) and not arguments.name and isinstance(model, str):
        names = names_of(arguments.policy, [model[:LONGEST_NAME]])
    configs = [
        run_config(
            arguments,
            _job(arguments, policy),
            name=name,
            workers=arguments.workers,
            executor=arguments.executor,
            recording=_recording(arguments),
            patience=patience,
            budget=budget_of(arguments),
        )
        for policy, name in names.items()
    ]
    dataset = load_run_dataset(configs[0])
    for policy in arguments.policy:
        class_ = load("policy", policy, all_baselines())  # a misspelt name must not cost time
        check_wire(arguments, policy, class_)
    _check_options(arguments)
    options = exam_options(arguments, dataset.exam)
    configs = [replace(config, job=replace(config.job, exam_options=options)) for config in configs]
    folders = [out if alone else out / folder_of(config.job.policy, config.name) for config in configs]
    for folder in folders:
        if folders.count(folder) > 1:
            raise UserError(f"two of these policies would write to {folder}; give them names with --name")
    return {
        config.label: plan_run(config, folder, dataset)
        for config, folder in zip(configs, folders, strict=True)
    }


def _job(arguments: argparse.Namespace, policy: str) -> RunJob:
    from proctor.runs.job import RunJob

    options = read_options(arguments.env_option)
    if arguments.attach:
        options["attach"] = True
    policy_options = read_options(arguments.policy_option)
    if arguments.no_wire:
        policy_options["wire"] = False
    return RunJob(
        env=arguments.env,
        policy=policy,
        env_options=options,
        policy_options=policy_options,
        seed=arguments.seed,
        conditions=read_conditions(arguments),
    )


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that mean nothing in this env."""
    if arguments.attach and arguments.env != "ros2":
        raise UserError("--attach is for --env ros2; the other worlds have their own robots")
    if arguments.attach and arguments.workers > 1:
        raise UserError("--attach: one robot can do one episode at a time; leave --workers out")
    if arguments.env == "o3de" and arguments.workers > 1:
        raise UserError("--env o3de: one engine can do one episode at a time; leave --workers out")


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
