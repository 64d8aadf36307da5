"""`proctor probe`: does an agent listen, does it look?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from proctor.cli import exam_runs
from proctor.cli.options import add_command, add_option, find_modules_here, read_options
from proctor.cli.terminal import DONE, UNAVAILABLE, command_text, console, errors
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.runs.job import RunJob
    from proctor.runs.plan import RunPlan

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
    exam_runs.add_exam(probe, suite=DEFAULT_SUITE)
    add_option(probe, "--policy NAME", str, "the agent, as in proctor run", required=True)
    text = (
        "only these, and plain: names as below, such as words-blank or mirrored; words or pictures: "
        "all of that kind (default: all)"
    )
    add_option(probe, "--arms ARM", str, text, nargs="+", default=[])
    add_option(probe, "--workers N", 1, "processes (default: 1)")
    add_option(probe, "--inform WORDS", "default", "what all arms are given, as in proctor run")
    add_option(probe, "--out DIR", Path, "folder of the arms (default: runs/EXAM-probe/POLICY)")
    add_option(probe, "--json FILE", Path, "write all numbers as JSON, too")
    add_option(probe, "--policy-option KEY=VALUE", [], "an option of the policy, as in proctor run")
    if with_exam_options:
        exam_runs.add_exam_options(probe)
    probe.set_defaults(goes_on=True)


def _probe(arguments: argparse.Namespace) -> int:
    from proctor.report.comparison_table import probe_table
    from proctor.runs.compare import load_run
    from proctor.runs.probe import probe_of

    find_modules_here()
    if arguments.dataset is None:
        arguments.suite = arguments.suite or DEFAULT_SUITE
    plans = _plans(arguments)
    exam_runs.reach_agents(plans)
    told: set[str] = set()
    for arm, plan in plans.items():
        report = exam_runs.run_plan(plan, told, label=arm)
        if report.stopped:
            errors.say(f"stopped in the arm {arm}: the agent is unavailable: {report.stopped}")
            errors.say(f"When it answers again, go on with: {command_text(arguments.words)}")
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
    from proctor.runs.plan import plan_run
    from proctor.runs.probe import arm_conditions, chosen_arms

    arms = chosen_arms(arguments.arms)
    config, dataset = exam_runs.load_exam(arguments, _job(arguments), workers=arguments.workers)
    title = exam_runs.exam_title(arguments)
    out = arguments.out or Path("runs") / f"{title}-probe" / exam_runs.folder_of(arguments.policy, "")
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


def _job(arguments: argparse.Namespace) -> RunJob:
    from proctor.exams.offers import read_inform
    from proctor.runs.conditions import Conditions

    conditions = Conditions(inform=read_inform(arguments.inform))
    options = read_options(arguments.policy_option)
    return exam_runs.run_job(arguments, arguments.policy, policy_options=options, conditions=conditions)
