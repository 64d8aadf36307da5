"""The policy `random`, which takes any exam that can draw an action."""

from __future__ import annotations

from typing import Any

import numpy as np

from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import EpisodeInfo, Observation
from proctor.exams.names import AnyExam, exam_named


class MockPolicy(Policy):
    """Acts by chance, the same for the same seed and episode.

    In navigation it mostly goes FORWARD; in pick-and-place it sends the joints to places within their limits.
    `seed` sets this policy's chance apart from that of others with the same episode seed.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._entropy = [] if seed is None else [whole_number("seed", seed)]
        self._rng = np.random.default_rng([*self._entropy, 0])
        self._exam: AnyExam | None = None
        self._steps = 0

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin the episode's own sequence of actions."""
        self._rng = np.random.default_rng([*self._entropy, episode_info.seed])
        self._exam, self._steps = exam_named(episode_info.task)(), 0

    def act(self, observation: Observation) -> Any:
        """Draw an action."""
        exam = self._exam or exam_named("")()
        action = exam.sample_action(self._rng, self._steps)
        self._steps += 1
        return action


def whole_number(name: str, value: object) -> int:
    """Return an option if it is a whole number from 0 up, else raise UserError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{name}: expected a whole number from 0 up, found {value!r}")
    return value
