"""`proctor check-env`, `check-policy`, `check-exam`: whether a class of your own keeps its contract."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table

from proctor.cli.options import add_command, add_option, dataset_of, find_modules_here, read_options
from proctor.cli.terminal import DONE, console
from proctor.core.errors import UserError
from proctor.core.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from proctor.core.interfaces import Env
    from proctor.exams.datasets import Dataset
    from proctor.exams.names import AnyExam
    from proctor.runs.conformance import Check

ERRORS_FOUND = 1
WORLD = "the world (default: the exam's own)"
MARKS = {"ok": "[green]ok[/green]", "warning": "[yellow]warning[/yellow]", "error": "[red]error[/red]"}
EXIT_CODES = "exit codes: 0 no errors, 1 errors found, 2 it cannot be tried at all"
ENV_HELP = f"""\
try out whether an env keeps its contract
Try out whether an env keeps its contract.

Resets the env and does some actions in it, the same ones twice, and looks at all that it returns: types,
finite numbers, what the exam reads of info, the end at STOP and at the step limit, equal answers for equal
actions.

examples:
  proctor check-env embedded
  proctor check-env my_world:MyWorld --suite houses-v1 --env-option port=9000

{EXIT_CODES}
"""
POLICY_HELP = f"""\
try out whether a policy keeps its contract
Try out whether a policy keeps its contract.

Lets the policy take the first steps of an episode, twice, and looks at its answers: that they are actions,
that the same seed leads to the same ones, and that it changes nothing of what it is shown.

examples:
  proctor check-policy random
  proctor check-policy my_agent:Agent --suite houses-v1 --policy-option checkpoint=best.pt
  proctor check-policy ws://localhost:8080 --suite houses-v1

{EXIT_CODES}
"""
EXAM_HELP = f"""\
try out whether an exam keeps its contract
Try out whether an exam keeps its contract.

Looks at the attributes and metrics of an exam, reads episodes of it, lets the policy random take one, and
grades that, and an episode in which nothing happened, for every way in which an episode can end.

examples:
  proctor check-exam my_exam
  proctor check-exam my_exam --dataset my_episodes.json

{EXIT_CODES}
"""


def add_conformance(commands: Any) -> None:
    """Add the commands."""
    _add(commands, "env", _check_env, ENV_HELP)
    policy = _add(commands, "policy", _check_policy, POLICY_HELP)
    add_option(policy, "--env NAME", "", WORLD)
    text = "an option of the policy; may be given several times"
    add_option(policy, "--policy-option KEY=VALUE", [], text)
    exam = _add(commands, "exam", _check_exam, EXAM_HELP)
    add_option(exam, "--env NAME", "", WORLD)


def _add(
    commands: Any, kind: str, run: Callable[[argparse.Namespace], int], page: str
) -> argparse.ArgumentParser:
    parser = add_command(commands, f"check-{kind}", run, page)
    own = "" if kind == "exam" else ", module:Class or file.py:Class"
    add_option(parser, "name NAME", str, f"a name (proctor list){own}")
    episodes = parser.add_mutually_exclusive_group()
    add_option(episodes, "--suite NAME", str, "episodes to try it with (default: one that fits)")
    add_option(episodes, "--dataset PATH", Path, "an episode file or folder instead")
    add_option(parser, "--scenes DIR", Path, "the dataset's scenes, if not beside it")
    parser.add_argument("--env-option", action="append", default=[], metavar="KEY=VALUE")
    return parser


def _check_env(arguments: argparse.Namespace) -> int:
    from proctor.core.registry import load
    from proctor.exams.names import check_fit
    from proctor.runs.conformance import check_env

    find_modules_here()
    found = load("env", arguments.name)
    dataset = _dataset(arguments, "env", found.tasks)
    check_fit(dataset.exam, "env", arguments.name, found)
    env = _env(arguments, dataset.exam, arguments.name)
    return _print(f"env {arguments.name}", dataset, check_env(env, dataset.exam(), _some(dataset)))


def _check_policy(arguments: argparse.Namespace) -> int:
    from proctor.core.registry import build, load
    from proctor.exams.names import all_baselines, check_fit
    from proctor.runs.conformance import check_policy

    find_modules_here()
    found = load("policy", arguments.name, all_baselines())
    dataset = _dataset(arguments, "policy", found.tasks)
    exam = dataset.exam
    found = load("policy", arguments.name, exam.baselines)
    check_fit(exam, "policy", arguments.name, found)
    policy = build("policy", arguments.name, read_options(arguments.policy_option), exam.baselines)
    env = _env(arguments, exam, arguments.env or exam.envs[0])
    return _print(f"policy {arguments.name}", dataset, check_policy(policy, exam(), env, _some(dataset)))


def _check_exam(arguments: argparse.Namespace) -> int:
    from proctor.exams.names import exam_named
    from proctor.runs.conformance import check_exam

    find_modules_here()
    exam = exam_named(arguments.name)
    dataset = _dataset(arguments, "exam", (arguments.name,))
    if dataset.exam is not exam:
        raise UserError(f"{dataset.path} holds episodes of {dataset.exam.name}, not of {exam.name}")
    env = _env(arguments, exam, arguments.env or exam.envs[0])
    return _print(f"exam {arguments.name}", dataset, check_exam(exam, dataset, env))


def _env(arguments: argparse.Namespace, exam: type[AnyExam], name: str) -> Env:
    from proctor.core.registry import build

    options = {**read_options(arguments.env_option), **exam.env_options(exam.options_type(), 0)}
    env: Env = build("env", name, options)
    return env


def _dataset(arguments: argparse.Namespace, kind: str, tasks: Sequence[str]) -> Dataset:
    """Read the episodes that were named, or those of a suite of an exam for which the class is."""
    from proctor.core.registry import names, suite_path
    from proctor.exams.datasets import load_dataset
    from proctor.exams.names import exam_named, exams_of

    if arguments.dataset is not None or arguments.suite is not None:
        return dataset_of(arguments)
    exams = list(tasks) or exams_of(kind, arguments.name) or [exam_named("").name]
    examples = [exam_named(name).example_suite for name in exams]
    for suite in [*filter(None, examples), *names("suite")]:
        dataset = load_dataset(suite_path(suite))
        if dataset.exam.name in exams:
            return dataset
    raise UserError(f"there is no suite of {' or '.join(exams)} to try it with; give --suite or --dataset")


def _some(dataset: Dataset) -> list[Any]:
    return dataset.select(count=min(2, len(dataset.episodes)))


def _print(what: str, dataset: Dataset, checks: list[Check]) -> int:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column(plain(f"{what}, {dataset.path}"), overflow="fold")
    for check in checks:
        lines = [escape(plain(check.expected))]
        if check.found:
            lines.append(f"found: {escape(plain(check.found))}")
        if check.found and check.remedy:
            lines.append(f"[dim]remedy: {escape(plain(check.remedy))}[/dim]")
        table.add_row(MARKS[check.severity], "\n".join(lines))
    console.print(table)
    count = {mark: sum(check.severity == mark for check in checks) for mark in MARKS}
    console.print(f"{len(checks)} tried: {count['error']} errors, {count['warning']} warnings")
    return ERRORS_FOUND if count["error"] else DONE
