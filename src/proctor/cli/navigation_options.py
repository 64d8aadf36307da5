"""The flags that choose the planner, controller, checkers and recoveries of a navigation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.cli.options import find_modules_here, read_options
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.navigation.skill.params import NavigationParams


def add_navigation_options(command: argparse.ArgumentParser) -> None:
    """Add the flags that choose plug-ins, which `proctor list` shows."""
    for name, default, what in (
        ("planner", "grid", "grid, rrt, rrt_star, prm, rrt_connect or one of your own (default: grid)"),
        ("controller", "mpc", "what follows the trajectory (default: mpc)"),
        ("goal-checker", "at_rest", "what decides on arrival (default: at_rest)"),
        ("progress-checker", "movement", "what notices a robot that is stuck (default: movement)"),
    ):
        command.add_argument(f"--{name}", default=default, metavar="NAME", help=what)
        command.add_argument(
            f"--{name}-option", action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
        )
    command.add_argument(
        "--recovery",
        action="append",
        metavar="NAME",
        help="what to try where there is no way on; may be repeated (default: clear, wait, turn, back_out)",
    )
    command.add_argument(
        "--recovery-option",
        action="append",
        default=[],
        metavar="NAME.KEY=VALUE",
        help="such as wait.wait_s=2; may be repeated",
    )


def navigation_params(arguments: argparse.Namespace, radius_m: float) -> NavigationParams:
    """Return what the command line says about the navigation, checked."""
    from proctor.navigation.planner import planner_name
    from proctor.navigation.skill.params import NavigationParams

    find_modules_here()
    if not 0 <= arguments.seed < 2**32:
        raise UserError(f"--seed: expected a number from 0 to {2**32 - 1}, found {arguments.seed}")
    params = NavigationParams(
        planner=planner_name(arguments.planner),
        planner_options=read_options(arguments.planner_option),
        controller=arguments.controller,
        controller_options=read_options(arguments.controller_option),
        goal_checker=arguments.goal_checker,
        goal_checker_options=read_options(arguments.goal_checker_option),
        progress_checker=arguments.progress_checker,
        progress_checker_options=read_options(arguments.progress_checker_option),
        recovery_options=_recovery_options(arguments.recovery_option),
        seed=arguments.seed,
        radius_m=radius_m,
    )
    if arguments.recovery is not None:
        params = msgspec.structs.replace(params, recoveries=tuple(arguments.recovery))
    return params.checked()


def _recovery_options(pairs: list[str]) -> dict[str, dict[str, Any]]:
    options: dict[str, dict[str, Any]] = {}
    for key, value in read_options(pairs).items():
        name, dot, option = key.rpartition(".")
        if not dot:
            raise UserError(
                f"--recovery-option: expected NAME.KEY=VALUE such as wait.wait_s=2, found '{key}'"
            )
        options.setdefault(name, {})[option] = value
    return options
