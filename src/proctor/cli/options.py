"""Commands and their help pages, and the options that several commands share."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.exams.datasets import Dataset

FARTHEST_M = 1e7


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


def allow_negative_places(command: argparse.ArgumentParser) -> None:
    """Let `--start -1,2` be a place: argparse knows only single numbers below 0, and sees an option here."""
    command._negative_number_matcher = re.compile(r"-[\d.]")  # noqa: SLF001  (argparse offers no other way)


def add_option(parser: Any, words: str, default: Any, text: str, /, **more: Any) -> None:
    """Add an option to a parser or a group of it: "--flag METAVAR", its default value and its help text.

    The option has the type of its default. A type instead of a value means that there is no default, `bool`
    that it is a switch, and `[]` that it may be repeated. `more` is passed on to `add_argument`.
    """
    flag, _, metavar = words.partition(" ")
    given: dict[str, Any] = {"metavar": metavar or None}
    if default is bool:
        given = {"action": "store_true"}
    elif default == []:
        given |= {"action": "append", "default": []}
    elif isinstance(default, type):
        given |= {"type": default}
    else:
        given |= {"type": type(default), "default": default}
    parser.add_argument(flag, help=text, **(given | more))


def add_dataset(parser: argparse.ArgumentParser, *, required: bool, note: str = "") -> Any:
    """Add --suite and --dataset, of which one can be given; return their group."""
    group = parser.add_mutually_exclusive_group(required=required)
    add_option(group, "--suite NAME", str, f"an exam that comes with Proctor{note}")
    add_option(group, "--dataset PATH", Path, "an episode file or folder of your own")
    return group


def add_scenes(parser: argparse.ArgumentParser) -> None:
    """Add --scenes."""
    add_option(parser, "--scenes DIR", Path, "where the dataset's scenes are, if not beside it")


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add --robot."""
    text = "a base that `proctor list` shows, or the path of a spec file (default: standard)"
    add_option(parser, "--robot NAME", "standard", text)


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add --models and --skip-missing, for worlds of other simulators."""
    text = "of a world: a folder of models; may be given several times"
    add_option(parser, "--models DIR", Path, text, action="append", default=[])
    add_option(parser, "--skip-missing", bool, "of a world of Gazebo: leave out models that are not found")


def add_ros_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --ros-args, which takes all words after it."""
    rest = argparse.REMAINDER
    add_option(parser, "--ros-args ...", str, "for ROS 2; comes last", nargs=rest, default=[])


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


def dataset_of(arguments: argparse.Namespace) -> Dataset:
    """Read the episodes that --suite or --dataset names, with --scenes where the command has it."""
    from proctor.core.registry import suite_path
    from proctor.exams.datasets import load_dataset

    path = arguments.dataset if arguments.suite is None else suite_path(arguments.suite)
    return load_dataset(path, scenes=getattr(arguments, "scenes", None))


def place_of(option: str, text: str | None) -> tuple[float, ...] | None:
    """Return two or three numbers, or None if there is no text."""
    if text is None:
        return None
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) not in (2, 3):
        raise UserError(f"{option}: expected X,Y or X,Y,YAW such as 1.5,-2,1.57, found '{text}'")
    if not all(math.isfinite(number) and abs(number) <= FARTHEST_M for number in numbers):
        raise UserError(f"{option}: expected finite numbers within ±{FARTHEST_M:.0f}, found '{text}'")
    return numbers
