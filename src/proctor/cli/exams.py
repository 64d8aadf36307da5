"""`proctor list`, `generate` and `doctor`: what there is, more of it, and what is missing."""

from __future__ import annotations

import argparse
import importlib.util
import platform
import secrets
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from proctor import __version__
from proctor.cli.options import add_command, add_option
from proctor.cli.terminal import DONE, USER_ERROR, console
from proctor.core.errors import ROS_PACKAGES, MissingDependency, UnknownName, UserError, install_command

GENERATE_HELP = """\
make houses or tabletops, and episodes, of your own
Write a new exam: furnished houses with instructions, or tabletops with objects.

examples:
  proctor generate --houses 100 --seed 1 --out train               houses to train in
  proctor generate --houses 10 --episodes-per-house 6 --out exam   an exam that nobody can guess
  proctor generate --tabletops 100 --seed 1 --out tables           pick-and-place
"""
LIST_HELP = """\
show the names of suites, robots, envs, policies and metrics
Print the names that other commands take: suites, robots, envs, policies and metrics.

examples:
  proctor list
"""
DOCTOR_HELP = """\
tell what this machine has, and how to get the rest
Check what this machine has of what Proctor can use, and say how to install the rest.

examples:
  proctor doctor
"""


def add_exams(commands: Any) -> None:
    """Add the commands."""
    add_command(commands, "list", _list, LIST_HELP)
    generate = add_command(commands, "generate", _generate, GENERATE_HELP)
    add_option(generate, "--out DIR", Path, "a new folder", required=True)
    generate.add_argument("--houses", type=int, default=4, metavar="N")
    generate.add_argument("--episodes-per-house", type=int, default=4, metavar="N")
    add_option(generate, "--rooms N", int, "in each house, halls included (default: as it comes)")
    add_option(generate, "--tabletops N", int, "instead of houses: N pick-and-place episodes")
    text = "same seed, same exam (default: one that nobody can guess, as a secret exam needs)"
    add_option(generate, "--seed", int, text)
    add_option(generate, "--suite NAME", str, "build a suite that comes with Proctor once more")
    add_command(commands, "doctor", _doctor, DOCTOR_HELP)


def _list(arguments: argparse.Namespace) -> int:
    from proctor.core.registry import PLURAL, names
    from proctor.exams.names import all_exams, exams_of
    from proctor.exams.step_metrics import metrics_of

    exams = list(all_exams())
    for kind, plural in PLURAL.items():
        rows = [(name, target, exams_of(kind, name)) for name, target in names(kind).items()]
        if kind == "policy":
            rows += [(name, target, [exam.name]) for exam in exams for name, target in exam.baselines.items()]
        with_exam = kind in ("env", "policy")
        table = Table(box=None, show_header=False)
        for name, target, fits in rows:
            table.add_row(
                f" {name}", *([" ".join(fits) or "any exam"] if with_exam else []), f"[dim]{target}[/dim]"
            )
        console.print(f" [bold]{plural}[/bold]")
        console.print(table)
    for exam in exams:
        table = Table(box=None, show_header=False)
        for metric in metrics_of(exam):
            table.add_row(f" {metric.name}", f"[dim]{escape(metric.definition)}[/dim]")
        console.print(f" [bold]metrics of {exam.name}[/bold]")
        console.print(table)
    return DONE


def _generate(arguments: argparse.Namespace) -> int:
    from proctor.suites.builder import GUESSABLE_SEEDS

    out: Path = arguments.out
    is_drawn = arguments.seed is None and arguments.suite is None
    if is_drawn:
        arguments.seed = GUESSABLE_SEEDS.stop + secrets.randbits(128)
    plan = _tabletops(arguments) or _houses(arguments)
    if arguments.suite is None and arguments.seed in GUESSABLE_SEEDS:
        note = "note: this seed can be guessed, and with it the whole exam; for a secret one leave --seed out"
        console.say(note)
    columns = (TextColumn(plan.what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    try:
        if out.exists():
            raise UserError(f"{out} exists already; give --out a new folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when it is whole: what an interrupt leaves behind is no half of an exam.
        with TemporaryDirectory(dir=out.parent) as unfinished, Progress(*columns, console=console) as bar:
            task = bar.add_task(plan.what, total=plan.total)
            suite = Path(unfinished) / "suite"
            plan.build(suite, lambda done: bar.update(task, completed=done))
            suite.rename(out)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error
    if is_drawn:
        console.say(f"Its seed is {arguments.seed}. It makes the same exam again: keep it to yourself.")
    console.say(f"Try it: proctor run --dataset {out} --policy {plan.policy}")
    return DONE


class _Plan(NamedTuple):
    what: str
    total: int
    build: Callable[[Path, Callable[[int], None]], object]
    policy: str  # who can do what is built


def _houses(arguments: argparse.Namespace) -> _Plan:
    from proctor.suites.builder import RECIPES, build_suite, check_recipe, recipe_of
    from proctor.suites.tabletop_builder import TABLETOP_RECIPES

    if arguments.suite is not None and arguments.rooms is not None:
        raise UserError("--rooms is for houses of your own; those of a suite have the rooms they have")
    if arguments.suite is None:
        recipe = recipe_of(arguments.houses, arguments.episodes_per_house, arguments.seed, arguments.rooms)
    elif arguments.suite in RECIPES:
        recipe = RECIPES[arguments.suite]
    else:
        raise UnknownName("suite", arguments.suite, [*RECIPES, *TABLETOP_RECIPES])
    check_recipe(recipe)
    total = sum(split.houses for split in recipe.splits)
    return _Plan("houses", total, lambda folder, tell: build_suite(folder, recipe, tell), "oracle")


def _tabletops(arguments: argparse.Namespace) -> _Plan | None:
    """Return how to build tabletops, if that was asked for."""
    from proctor.suites.tabletop_builder import TABLETOP_RECIPES, build_tabletop, training_recipe

    if arguments.suite in TABLETOP_RECIPES:
        recipe = TABLETOP_RECIPES[arguments.suite]
    elif arguments.tabletops is not None and arguments.suite is None:
        if arguments.tabletops < 1 or arguments.seed < 0:
            raise UserError("--tabletops: expected at least 1, and a seed from 0 up")
        recipe = training_recipe(arguments.tabletops, arguments.seed)
    else:
        return None
    total = sum(split.episodes for split in recipe.splits)
    return _Plan("tabletops", total, lambda folder, tell: build_tabletop(folder, recipe, tell), "expert")


class _MachineFinding(NamedTuple):
    state: Literal["ok", "missing", "optional"]
    what: str
    found: str
    remedy: str = ""


def _doctor(arguments: argparse.Namespace) -> int:
    table = Table(box=None)
    for heading in ("", "What", "Found", "How to get it"):
        table.add_column(heading, overflow="fold")
    findings = _examine_machine()
    marks = {"ok": "[green]ok[/green]", "missing": "[red]missing[/red]", "optional": "[dim]optional[/dim]"}
    for finding in findings:
        table.add_row(marks[finding.state], *map(escape, (finding.what, finding.found, finding.remedy)))
    console.print(table)
    return USER_ERROR if any(finding.state == "missing" for finding in findings) else DONE


def _examine_machine() -> list[_MachineFinding]:
    """Look for everything Proctor can use."""
    findings = [
        _MachineFinding("ok", "Proctor", __version__),
        _MachineFinding("ok", "Python", platform.python_version()),
        *map(_package, ("mujoco", "numpy", "scipy", "trimesh")),
        _rendering(),
    ]
    for module, what, remedy in (
        ("gymnasium", "Gymnasium adapter", install_command("gym")),
        ("collada", "COLLADA (.dae) meshes", "pip install pycollada"),
    ):
        is_there = importlib.util.find_spec(module) is not None
        state = ("ok", what, "installed") if is_there else ("optional", what, "no", remedy)
        findings.append(_MachineFinding(*state))
    return [*findings, _ros()]


def _package(name: str) -> _MachineFinding:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return _MachineFinding("ok", name, version(name))
    except PackageNotFoundError:
        remedy = f"{install_command('sim')} (to serve agents it is not needed)"
        return _MachineFinding("missing", name, "no", remedy)


def _rendering() -> _MachineFinding:
    try:
        from proctor.worlds.mujoco.render.gl import renderer_name

        return _MachineFinding("ok", "Rendering", renderer_name())
    except MissingDependency as error:
        return _MachineFinding("missing", "Rendering", "no", str(error))


def _ros() -> _MachineFinding:
    if importlib.util.find_spec("rclpy") is None:
        remedy = "source /opt/ros/DISTRO/setup.bash, or `make ros` and .venv-ros/bin/proctor"
        return _MachineFinding("optional", "ROS 2 (rclpy)", "no", remedy)
    lacking = [name for name in ROS_PACKAGES if importlib.util.find_spec(name) is None]
    if lacking:
        remedy = "cd ros2_ws && colcon build && source install/setup.bash"
        return _MachineFinding("optional", "ROS 2 messages", f"no {', '.join(lacking)}", remedy)
    return _MachineFinding("ok", "ROS 2", "yes")
