"""What commands that drive a robot share: the episode to drive in, and the plug-ins of `navigate_to`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.cli.options import add_option, dataset_of, find_modules_here, read_options
from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.exams.vln.episode import Episode
    from proctor.navigation.skill.params import NavigationParams


def episode_of(arguments: argparse.Namespace) -> Episode:
    """Return the episode that --suite or --dataset and --episode name, which has a scene."""
    from proctor.exams.datasets import episodes_of
    from proctor.exams.vln.episode import Episode

    if arguments.episode is None:
        raise UserError("--suite and --dataset need --episode ID, which gives scene, start and goal")
    dataset = dataset_of(arguments)
    episodes_of(dataset, Episode)
    episode: Episode = dataset.select(episode_id=arguments.episode)[0]
    if not episode.scene_config_path:
        raise UserError(f"episode '{arguments.episode}' has no scene to drive in")
    return episode


def add_navigation_options(command: argparse.ArgumentParser) -> None:
    """Add the flags that choose plug-ins, which `proctor list` shows."""
    for name, default, what in (
        ("planner", "grid", "grid, rrt, rrt_star, prm, rrt_connect or one of your own (default: grid)"),
        ("controller", "mpc", "what follows the trajectory (default: mpc)"),
        ("goal-checker", "at_rest", "what decides on arrival (default: at_rest)"),
        ("progress-checker", "movement", "what notices a robot that is stuck (default: movement)"),
    ):
        add_option(command, f"--{name} NAME", default, what)
        add_option(command, f"--{name}-option KEY=VALUE", [], "may be repeated")
    text = "what to try where there is no way on; may be repeated (default: clear, wait, turn, back_out)"
    add_option(command, "--recovery NAME", str, text, action="append")
    text = "such as wait.wait_s=2; may be repeated"
    add_option(command, "--recovery-option NAME.KEY=VALUE", [], text)


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
