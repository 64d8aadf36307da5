"""Commands and their help pages; options of policies and envs, as commands take them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proctor.core.errors import UserError


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], page: str
) -> argparse.ArgumentParser:
    """Add a command. Its page begins with a line for the list of commands and one that describes it."""
    summary, description, epilog = page.split("\n", 2)
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog.lstrip("\n"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(command=run)
    return parser


def find_modules_here() -> None:
    """Let `module:Class` name a module of the current folder, as `python -m` does."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def read_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a dict; values are JSON where they can be, else text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise UserError(f"expected KEY=VALUE, found '{pair}'")
        try:
            options[key] = json.loads(text)
        except json.JSONDecodeError:
            options[key] = text
    return options


def add_robot_option(parser: argparse.ArgumentParser) -> None:
    """Add --robot."""
    parser.add_argument(
        "--robot",
        default="standard",
        metavar="NAME",
        help="a base that `proctor list` shows, or the path of a spec file (default: standard)",
    )
