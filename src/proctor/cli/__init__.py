"""The `proctor` command: what it offers, and how it ends.

Exit codes: 0 done, 1 more unscored episodes than allowed (`run`), errors found (`check-dataset`) or ended
without arriving (`navigate`), 2 user error, 3 stopped as the agent is unavailable (`run`), 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NoReturn

from proctor import __version__
from proctor.cli.conformance import add_conformance
from proctor.cli.datasets import add_datasets
from proctor.cli.exams import add_exams
from proctor.cli.import_world import add_import_world
from proctor.cli.look import add_look
from proctor.cli.mcp import add_mcp
from proctor.cli.navigate import add_navigate
from proctor.cli.o3de import add_export_o3de, add_o3de_standin
from proctor.cli.play import add_play
from proctor.cli.probe import add_probe
from proctor.cli.report import add_report
from proctor.cli.results import add_results
from proctor.cli.run import add_run
from proctor.cli.serve import add_serve
from proctor.cli.sim_host import add_sim_host
from proctor.cli.skill_server import add_skill_server
from proctor.cli.teleop import add_teleop
from proctor.cli.terminal import (
    DONE,
    INTERRUPTED,
    TOO_MANY_FAULTS,
    USER_ERROR,
    errors,
    interrupted_by_sigterm,
    say_error,
)
from proctor.cli.work import add_work
from proctor.core.errors import ProctorError, UserError, did_you_mean, missing_extra

FLAGS: set[str] = set()
"""All flags of all commands, for hints: argparse reports a misspelt one without its command's own list."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = _parser(words).parse_args(words)
    arguments.words = words
    try:
        with interrupted_by_sigterm() if "goes_on" in arguments else nullcontext():
            code = _run(arguments)
    except UserError as error:
        say_error(error)
        return USER_ERROR
    except ProctorError as error:
        errors.print("[red]failed:[/red]", end=" ")
        errors.say(str(error))
        return TOO_MANY_FAULTS
    except KeyboardInterrupt:
        goes_on = "; the same command goes on from what is finished" if "goes_on" in arguments else ""
        errors.print(f"interrupted{goes_on}")
        return INTERRUPTED
    return code


def _run(arguments: argparse.Namespace) -> int:
    try:
        code: int = arguments.command(arguments)
    except ModuleNotFoundError as error:  # a light install has all commands, but cannot do all of them
        missing = missing_extra("This command", error)
        if missing is None:
            raise
        raise missing from None
    return code


def _help(arguments: argparse.Namespace) -> int:
    _parser([]).print_help()
    return DONE


class _Parser(argparse.ArgumentParser):
    """argparse, with a hint where a flag is nearly right."""

    def error(self, message: str) -> NoReturn:
        for word in sys.argv[1:]:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in FLAGS:
                message += did_you_mean(flag, FLAGS)
        super().error(message)


def _parser(words: Sequence[str] = ("run",)) -> argparse.ArgumentParser:
    parser = _Parser(prog="proctor", description="Exams for embodied agents.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"proctor {__version__}")
    parser.set_defaults(command=_help)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_run(commands, with_exam_options="run" in words[:1])  # to load exams takes time
    add_work(commands)
    add_probe(commands, with_exam_options="probe" in words[:1])
    add_mcp(commands, with_exam_options="mcp" in words[:1])
    add_play(commands, with_exam_options="play" in words[:1])
    add_serve(commands)
    add_report(commands)
    add_results(commands)
    add_navigate(commands)
    add_look(commands)
    add_import_world(commands)
    add_sim_host(commands)
    add_o3de_standin(commands)
    add_teleop(commands)
    add_skill_server(commands)
    add_export_o3de(commands)
    add_exams(commands)
    add_datasets(commands)
    add_conformance(commands)
    for command in commands.choices.values():
        FLAGS.update(command._option_string_actions)  # noqa: SLF001  (argparse offers no other way)
    return parser
