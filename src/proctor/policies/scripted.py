"""Policies that do not look: by chance, straight ahead, or as written down before."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from proctor.core.errors import AgentFault, UserError
from proctor.core.interfaces import Policy
from proctor.core.results import JOURNAL, read_journal
from proctor.core.types import Action, EpisodeInfo, Observation

CHANCES_SUMMED = (0.02, 0.70, 0.85)
"""STOP 2 %, FORWARD 68 %, LEFT 15 % and RIGHT 15 %, each added to those before it."""


class MockPolicy(Policy):
    """Acts by chance, the same way for the same seed and episode.

    Args:
        seed: Sets this policy's chance apart from that of others with the same episode seed.

    Raises:
        UserError: The seed is not a whole number from 0 up.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._entropy = [] if seed is None else [_whole_number("seed", seed)]
        self._rng = np.random.default_rng([*self._entropy, 0])

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin the episode's own sequence of actions."""
        self._rng = np.random.default_rng([*self._entropy, episode_info.seed])

    def act(self, observation: Observation) -> Action:
        """Draw an action."""
        return Action(bisect.bisect(CHANCES_SUMMED, self._rng.random()))


class ForwardPolicy(Policy):
    """Goes straight ahead, then stops.

    Args:
        steps: How many times it goes FORWARD. 37 steps, 9.25 m, are the usual baseline's.

    Raises:
        UserError: The number of steps is not a whole number from 0 up.
    """

    def __init__(self, steps: int = 37) -> None:
        self._steps = _whole_number("steps", steps)
        self._taken = 0

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin to count again."""
        self._taken = 0

    def act(self, observation: Observation) -> Action:
        """Go on, or stop after enough steps."""
        self._taken += 1
        return Action.FORWARD if self._taken <= self._steps else Action.STOP


class ReplayPolicy(Policy):
    """Repeats the actions of a finished run, or the episode's own `reference_actions`, then stops.

    Args:
        run: The run's directory; the reference actions are taken if it is missing.

    Raises:
        UserError: The directory does not hold a run.
    """

    privileged: ClassVar[bool] = True

    def __init__(self, run: str | None = None) -> None:
        self._run = run
        self._recorded = {} if run is None else _actions_of_run(Path(str(run)))
        self._actions: Iterator[int] = iter(())

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Look up the episode's actions.

        Raises:
            AgentFault: None were written down for this episode.
        """
        name = episode_info.episode_id
        actions: Iterable[int] | None
        if self._run is None:
            actions = getattr(episode_info.episode, "reference_actions", None)
            missing = f"episode '{name}' has no reference_actions"
        else:
            actions = self._recorded.get(name)
            missing = f"the run {self._run} has no episode '{name}'"
        if actions is None:
            raise AgentFault("nothing_to_replay", missing)
        self._actions = iter(actions)

    def act(self, observation: Observation) -> Action:
        """Repeat the next action."""
        return Action(next(self._actions, Action.STOP))


def _actions_of_run(folder: Path) -> dict[str, list[int]]:
    try:
        finished = read_journal(folder / JOURNAL)
    except OSError as error:
        raise UserError(f"{folder} is not the directory of a run: {error}") from None
    return {name: result.actions for name, result in finished.items()}


def _whole_number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{name}: expected a whole number from 0 up, found {value!r}")
    return value
