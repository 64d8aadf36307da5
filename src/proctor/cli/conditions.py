"""Flags of commands that run episodes: what agents are told and shown, and what their thinking costs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.runs.conditions import Conditions

INSTRUCTIONS = ("original", "blank", "shuffled", "mirrored", "paraphrased")
PICTURES = ("original", "blank", "noise", "frozen")


def add_conditions(command: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = command.add_argument_group("what the agent is told and shown (docs/probing.md)")
    group.add_argument(
        "--inform",
        default="default",
        metavar="WORDS",
        help="what it is given beyond the instruction and colour pictures: none, or words with commas "
        "between, such as default, depth, scan, odometry, calibration, pose, map, goal",
    )
    group.add_argument(
        "--instructions",
        choices=INSTRUCTIONS,
        default=INSTRUCTIONS[0],
        help="no text, that of another episode of about the same length, left and right swapped, or other "
        "words for the same path (default: original)",
    )
    group.add_argument(
        "--pictures",
        choices=PICTURES,
        default=PICTURES[0],
        help="grey, noise, or the first of the episode throughout (default: original)",
    )
    _add_thinking(command)


def _add_thinking(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("thinking time (default: the world waits for the agent)")
    group.add_argument(
        "--charge-latency",
        default="",
        metavar="measured|SECONDS",
        help="let simulated time go on while the agent thinks: as long as it takes, or as many seconds for "
        "every action",
    )
    group.add_argument(
        "--while-thinking",
        choices=("hold", "stop"),
        help="the robot keeps its last command meanwhile, or stops (default: stop)",
    )


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
