"""Policies that do not look: by chance, straight ahead, not at all, or as written down before."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from proctor.core.actions import JointPosition
from proctor.core.errors import AgentFault, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo, Observation
from proctor.exams.results import JOURNAL, read_journal
from proctor.robots.stretch import CONTROLS, qpos_of_controls

CHANCES_SUMMED = (0.02, 0.70, 0.85)
"""STOP 2 %, FORWARD 68 %, LEFT 15 % and RIGHT 15 %, each added to those before it."""
NEAR_BASE = ((-0.2, 0.2), (-0.2, 0.2), (-0.5, 0.5))
"""How far chance sends a base from its start: x, y in metres and heading."""
LEG_STEPS = 10
"""How long an arm that moves by chance keeps its target: it gets nowhere if that changes in every step."""


class MockPolicy(Policy):
    """Acts by chance, the same way for the same seed and episode.

    In navigation it mostly goes FORWARD; in pick-and-place it sends the joints to places within their limits.

    Args:
        seed: Sets this policy's chance apart from that of others with the same episode seed.

    Raises:
        UserError: The seed is not a whole number from 0 up.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._entropy = [] if seed is None else [_whole_number("seed", seed)]
        self._rng = np.random.default_rng([*self._entropy, 0])
        self._task, self._steps = "vln", 0
        self._target = JointPosition(())

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin the episode's own sequence of actions."""
        self._rng = np.random.default_rng([*self._entropy, episode_info.seed])
        self._task, self._steps = episode_info.task, 0

    def act(self, observation: Observation) -> Action | JointPosition:
        """Draw an action."""
        if self._task == "vln":
            return Action(bisect.bisect(CHANCES_SUMMED, self._rng.random()))
        if self._steps % LEG_STEPS == 0:
            self._target = _random_target(self._rng)
        self._steps += 1
        return self._target


class HoldPolicy(Policy):
    """Keeps all joints where they are at the start: what an exam gives for nothing."""

    tasks = ("pick_and_place",)

    def __init__(self) -> None:
        self._target: JointPosition | None = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Forget where the joints were."""
        self._target = None

    def act(self, observation: Observation) -> JointPosition:
        """Stay."""
        if self._target is None:
            self._target = _as_it_is(observation)
        return self._target


class ForwardPolicy(Policy):
    """Goes straight ahead, then stops. Of navigation only.

    Args:
        steps: How many times it goes FORWARD. 37 steps, 9.25 m, are the usual baseline's.

    Raises:
        UserError: The number of steps is not a whole number from 0 up.
    """

    tasks = ("vln",)

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

    In pick-and-place, where nothing means stop, it keeps to the last action.

    Args:
        run: The run's directory; the reference actions are taken if it is missing.

    Raises:
        UserError: The directory does not hold a run.
    """

    privileged: ClassVar[bool] = True

    def __init__(self, run: str | None = None) -> None:
        self._run = run
        self._recorded = {} if run is None else _actions_of_run(Path(str(run)))
        self._actions: Iterator[Any] = iter(())
        self._task = "vln"
        self._last: Any = None

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Look up the episode's actions.

        Raises:
            AgentFault: None were written down for this episode.
        """
        name = episode_info.episode_id
        actions: Iterable[Any] | None
        if self._run is None:
            actions = getattr(episode_info.episode, "reference_actions", None)
            missing = f"episode '{name}' has no actions to repeat; give a run: --policy-option run=DIR"
        else:
            actions = self._recorded.get(name)
            missing = f"the run {self._run} has no episode '{name}'"
        if actions is None:
            raise AgentFault("nothing_to_replay", missing)
        self._actions = iter(actions)
        self._task, self._last = episode_info.task, None

    def act(self, observation: Observation) -> Any:
        """Repeat the next action, as it was written down."""
        if self._task == "vln":
            return Action(next(self._actions, Action.STOP))
        if self._last is None:
            self._last = _as_it_is(observation)
        self._last = next(self._actions, self._last)
        return self._last


def _random_target(rng: np.random.Generator) -> JointPosition:
    limits = [*NEAR_BASE, *((control.low, control.high) for control in CONTROLS[len(NEAR_BASE) :])]
    return JointPosition(qpos_of_controls(tuple(float(rng.uniform(low, high)) for low, high in limits)))


def _as_it_is(observation: Observation) -> JointPosition:
    return JointPosition(tuple(float(joint) for joint in observation["qpos"]))


def _actions_of_run(folder: Path) -> dict[str, list[Any]]:
    try:
        finished = read_journal(folder / JOURNAL)
    except OSError as error:
        raise UserError(f"{folder} is not the directory of a run: {error}") from None
    return {name: result.actions for name, result in finished.items()}


def _whole_number(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{name}: expected a whole number from 0 up, found {value!r}")
    return value
