"""Places and episodes, as commands that drive a robot take them."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING

from proctor.core.errors import UserError

if TYPE_CHECKING:
    from proctor.exams.vln.episode import Episode

FARTHEST_M = 1e4


def allow_negative_places(command: argparse.ArgumentParser) -> None:
    """Let `--start -1,2` be a place: argparse knows only single numbers below 0, and sees an option here."""
    command._negative_number_matcher = re.compile(r"-[\d.]")  # noqa: SLF001  (argparse offers no other way)


def episode_of(arguments: argparse.Namespace) -> Episode:
    """Return the episode that --suite or --dataset and --episode name, which has a scene."""
    from proctor.core.registry import suite_path
    from proctor.exams.datasets import episodes_of, load_dataset
    from proctor.exams.vln.episode import Episode

    if arguments.episode is None:
        raise UserError("--suite and --dataset need --episode ID, which gives scene, start and goal")
    dataset = load_dataset(suite_path(arguments.suite) if arguments.suite else arguments.dataset)
    episodes_of(dataset, Episode)
    episode: Episode = dataset.select(episode_id=arguments.episode)[0]
    if not episode.scene_config_path:
        raise UserError(f"episode '{arguments.episode}' has no scene to drive in")
    return episode


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
