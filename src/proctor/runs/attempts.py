"""Which episode is next for which worker, also while the agent is unavailable."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.core.errors import UserError
from proctor.exams.results import EpisodeResult
from proctor.runs.budget import RunBudget, Spending

LONGEST_PAUSE_S = 60.0
MOST_SECONDS = 3600.0


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a run waits for an agent that is unavailable."""

    max_unavailable: int = 3  # after so many attempts in a row at which it was not there, the run stops
    pause_s: float = 5.0  # before the second attempt; each further pause is twice as long, up to a minute

    def check(self) -> None:
        """Raise a UserError if a number is out of range."""
        if self.max_unavailable < 1:
            raise UserError(f"max_unavailable: expected a number from 1 up, found {self.max_unavailable}")
        if not 0 <= self.pause_s <= MOST_SECONDS:  # nor NaN
            found = f"found {self.pause_s:g}"
            raise UserError(f"unavailable_pause: expected seconds from 0 to {MOST_SECONDS:g}, {found}")

    def pause_after_s(self, failures: int) -> float:
        """Return how long to wait after so many attempts in a row."""
        return min(self.pause_s * 2.0 ** min(failures - 1, 20), max(self.pause_s, LONGEST_PAUSE_S))


class Attempts:
    """The episodes that are left to do. One for which the agent was unavailable comes again, at the end.

    A worker, also the only one, gets the episodes of one scene as long as there are any, since to build a
    scene takes time. Attempts that were under way at the same time, in several workers, count as one: what is
    counted are the pauses that did not help.
    """

    def __init__(
        self,
        episodes: Sequence[Any],
        patience: Patience | None = None,
        spending: Spending | None = None,
    ) -> None:
        self._waiting: dict[str, deque[Any]] = {}
        for episode in episodes:
            self._waiting.setdefault(episode.scene_id, deque()).append(episode)
        self._again: deque[Any] = deque()
        self._scene_of_worker: dict[int, str] = {}
        self._patience = patience or Patience()
        self.spending = spending or Spending(RunBudget())
        self._begun_s: dict[str, float] = {}
        self._failed_at_s = self._next_at_s = -math.inf
        self.failures = 0  # how many attempts in a row found no agent
        self.problem = ""  # what the last of them found

    @property
    def is_stopped(self) -> bool:
        """Whether the run has waited for the agent as long as it should."""
        return self.failures >= self._patience.max_unavailable

    @property
    def is_over_budget(self) -> bool:
        """Whether an episode is left that the budget does not allow, even when all others have ended."""
        is_left = bool(self._waiting or self._again)
        return is_left and not self.is_stopped and not self.spending.allows_next(0)

    def wait_s(self) -> float | None:
        """Return how long it is until the next episode may begin; None if none is left, or none may.

        The budget may allow one when an episode that is under way has ended.
        """
        if not (self._waiting or self._again) or self.is_stopped:
            return None
        if not self.spending.allows_next(len(self._begun_s)):
            return None
        return max(0.0, self._next_at_s - time.monotonic())

    def take(self, worker: int = 0) -> Any:
        """Return the next episode for a worker. One has to be left."""
        if self._waiting:
            scene = self._scene_of_worker[worker] = self._scene_for(worker)
            episode = self._waiting[scene].popleft()
            if not self._waiting[scene]:
                del self._waiting[scene]
        else:
            episode = self._again.popleft()
        self._begun_s[episode.episode_id] = time.monotonic()
        return episode

    def _scene_for(self, worker: int) -> str:
        """Return the worker's own scene, else one that nobody has begun, else the one with most to do."""
        own = self._scene_of_worker.get(worker, "")
        if own in self._waiting:
            return own
        begun = self._scene_of_worker.values()
        untouched = [scene for scene in self._waiting if scene not in begun]
        return untouched[0] if untouched else max(self._waiting, key=lambda scene: len(self._waiting[scene]))

    def note(self, episode: Any, result: EpisodeResult) -> None:
        """Take in how an episode went that was taken."""
        begun_s = self._begun_s.pop(episode.episode_id)
        self.spending.note(result)
        if result.is_scored:
            self.failures = 0
        if result.error is None or not result.is_unavailable:
            return
        self._again.append(episode)
        self.problem = result.error.message
        if begun_s >= self._failed_at_s:
            self._failed_at_s = time.monotonic()
            self.failures += 1
            self._next_at_s = self._failed_at_s + self._patience.pause_after_s(self.failures)

    def note_to_reader(self) -> str:
        """Say that the agent is unavailable and what happens next; nothing if it is not."""
        if not self.failures:
            return ""
        wait_s = self.wait_s()
        then = f"; the next attempt is in {wait_s:.0f} s" if wait_s is not None else ""
        return f"the agent is unavailable ({self.problem}){then}"
