"""Flags of `proctor run` for agents whose use costs money, and what to say when the budget is spent."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from proctor.cli.terminal import errors
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.runs.budget import RunBudget
    from proctor.runs.run import RunReport


def add_spending(run: argparse.ArgumentParser) -> None:
    """Add the flags."""
    run.add_argument(
        "--budget-usd",
        type=float,
        metavar="USD",
        help="begin no episode by which the attempts in the run's folder might cost more; exit code 4 then",
    )
    run.add_argument(
        "--budget-tokens", type=int, metavar="N", help="the same for tokens, input and output together"
    )
    run.add_argument(
        "--no-wire", action="store_true", help="do not keep what is exchanged with a chat model (RUN/wire)"
    )


def budget_of(arguments: argparse.Namespace) -> RunBudget:
    """Return the budget that was given; it is checked with the policy, when the run is planned."""
    from proctor.runs.budget import RunBudget

    return RunBudget(usd=arguments.budget_usd, tokens=arguments.budget_tokens)


def check_wire(arguments: argparse.Namespace, policy: str, class_: type) -> None:
    """Raise a UserError if transcripts are not wanted of a policy that keeps none."""
    if arguments.no_wire and "wire" not in inspect.signature(class_).parameters:
        raise UserError(f"--no-wire: the policy '{policy}' keeps no transcripts; leave --no-wire out")


def say_over_budget(reports: Mapping[str, RunReport]) -> bool:
    """Tell which runs have stopped because their budget is spent, and how they go on; whether any has."""
    stopped = {label: report for label, report in reports.items() if report.over_budget}
    for label, report in stopped.items():
        done = sum(result.is_scored for result in report.results.episodes)
        errors.say(f"stopped: {label}: the budget does not allow another episode: {report.over_budget}.")
        errors.say(f"{done} of {report.total} episodes are done and kept.")
    if stopped:
        errors.say("To go on, give the same command a larger budget.")
    return bool(stopped)
