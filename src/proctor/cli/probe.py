"""`proctor probe`: does an agent listen, does it look?"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from proctor.cli.exam_options import add_exam_options, exam_options
from proctor.cli.exam_runs import add_exam, exam_title, folder_of, reach_agents, run_config, run_plan
from proctor.cli.options import add_command, find_modules_here, read_options
from proctor.cli.terminal import DONE, UNAVAILABLE, console, errors
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.runs.plan import RunConfig, RunPlan

PROBE_HELP = """\
tell how much of an agent's score depends on words and on pictures
Run the same episodes with changed instructions and changed pictures, and compare them with the plain ones.

examples:
  proctor probe --policy blind
  proctor probe --policy my_agent:Agent --episodes 60 --workers 2
  proctor probe --policy ws://localhost:8080 --arms mirrored pictures-blank --json probe.json
  proctor probe --policy my_agent:Agent --dataset my_episodes.json --arms pictures

arms, each a run of its own in a folder below --out:
  plain              as in proctor run
  words-blank        no instruction
  words-shuffled     the instruction of another episode of about the same length
  words-mirrored     left and right swapped
  words-paraphrased  other words for the same path: an agent that understands does not notice
  pictures-blank     grey pictures
  pictures-noise     noise
  pictures-frozen    the first picture of the episode throughout

All arms have the same episodes, so that differences are taken episode by episode. Runs that are done are
not done again: the same command goes on where it stopped.
exit codes: 0 done, 2 user error, 3 stopped because the agent is unavailable, 130 interrupted
"""
DEFAULT_SUITE = "houses-v1"


def add_probe(commands: Any, *, with_exam_options: bool) -> None:
    """Add the command."""
    probe = add_command(commands, "probe", _probe, PROBE_HELP)
    add_exam(probe, suite=DEFAULT_SUITE)
    probe.add_argument("--policy", required=True, metavar="NAME", help="the agent, as in proctor run")
    probe.add_argument(
        "--arms",
        nargs="+",
        default=[],
        metavar="ARM",
        help="only these, and plain: names as below, such as words-blank or mirrored; words or pictures: "
        "all of that kind (default: all)",
    )
    probe.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    probe.add_argument(
        "--inform", default="default", metavar="WORDS", help="what all arms are given, as in proctor run"
    )
    probe.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the arms (default: runs/EXAM-probe/POLICY)"
    )
    probe.add_argument("--json", type=Path, metavar="FILE", help="write all numbers as JSON, too")
    probe.add_argument(
        "--policy-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the policy, as in proctor run",
    )
    if with_exam_options:
        add_exam_options(probe)
    probe.set_defaults(goes_on=True)


def _probe(arguments: argparse.Namespace) -> int:
    from proctor.report.probe_table import probe_table
    from proctor.runs.compare import load_run
    from proctor.runs.probe import probe_of

    find_modules_here()
    if arguments.dataset is None:
        arguments.suite = arguments.suite or DEFAULT_SUITE
    plans = _plans(arguments)
    reach_agents(plans)
    told: set[str] = set()
    for arm, plan in plans.items():
        report = run_plan(plan, told, label=arm)
        if report.stopped:
            errors.say(f"stopped in the arm {arm}: the agent is unavailable: {report.stopped}")
            errors.say(f"When it answers again, go on with: proctor {shlex.join(arguments.words)}")
            return UNAVAILABLE
    runs = {arm: load_run(plan.out) for arm, plan in plans.items()}
    probe = probe_of(runs, {arm: plan.config.job.conditions for arm, plan in plans.items()})
    first = probe.arms["plain"]
    console.print(probe_table(probe))
    console.say(
        f"{probe.agent}: change from plain in {first.pairs} episodes, in pairs; bootstrap by scene.",
        *(f"! {arm}: {warning}" for arm, found in probe.arms.items() for warning in found.warnings),
        "",
        *probe.sentences.values(),
    )
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        encoded = msgspec.json.format(msgspec.json.encode(probe), indent=1)
        arguments.json.write_bytes(encoded + b"\n")
    return DONE


def _plans(arguments: argparse.Namespace) -> dict[str, RunPlan]:
    """Return a plan for each arm, all of them before the first one begins."""
    from proctor.runs.plan import load_run_dataset, plan_run
    from proctor.runs.probe import arm_conditions, chosen_arms

    arms = chosen_arms(arguments.arms)
    config = _config(arguments)
    dataset = load_run_dataset(config)
    config = replace(config, job=replace(config.job, exam_options=exam_options(arguments, dataset.exam)))
    out = arguments.out or Path("runs") / f"{exam_title(arguments)}-probe" / folder_of(arguments.policy, "")
    plans: dict[str, RunPlan] = {}
    for arm in arms:
        job = replace(config.job, conditions=arm_conditions(arm, config.job.conditions))
        try:
            plans[arm] = plan_run(replace(config, job=job), out / arm, dataset)
        except UserError as error:
            if arm not in ("words-paraphrased", "words-shuffled") or _is_named(arm, arguments.arms):
                raise
            console.say(f"note: left out: {str(error).partition(chr(10))[0].rstrip(':')}")
    return plans


def _is_named(arm: str, words: Sequence[str]) -> bool:
    """Tell whether an arm was asked for, and not only its group."""
    return any(word in (arm, arm.partition("-")[2]) for word in words)


def _config(arguments: argparse.Namespace) -> RunConfig:
    from proctor.exams.offers import read_inform
    from proctor.runs.conditions import Conditions
    from proctor.runs.job import RunJob

    job = RunJob(
        env=arguments.env,
        policy=arguments.policy,
        env_options=read_options(arguments.env_option),
        policy_options=read_options(arguments.policy_option),
        seed=arguments.seed,
        conditions=Conditions(inform=read_inform(arguments.inform)),
    )
    return run_config(arguments, job, workers=arguments.workers)
