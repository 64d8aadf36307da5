"""Which episode is next for which worker, also while the agent is unavailable or others share the run."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.core.errors import UserError
from proctor.exams.results import EpisodeResult
from proctor.runs.budget import RunBudget, Spending
from proctor.runs.journal import disk_errors
from proctor.runs.leases import MAX_LOSSES
from proctor.runs.sharing import SharedRun

LONGEST_PAUSE_S = 60.0
MOST_SECONDS = 3600.0
LOOK_PAUSE_S = 1.0
"""Between two looks at what other processes hold; longer if they hold many."""
WORKER_KILLED = "worker_killed"
"""The kind of fault when a worker was killed from outside, which is retried."""


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


class LostEpisode(NamedTuple):
    """An episode that nobody could finish: the hosts that had taken it were lost, one after the other."""

    episode: Any
    losses: int


class Attempts:
    """The episodes that are left to do. One for which the agent was unavailable comes again, at the end.

    So does, at once and a few times, one whose worker was killed from outside. If the run is shared, others
    do some of the episodes; if they die, those come again, too.

    A worker, also the only one, gets the episodes of one scene as long as there are any, since to build a
    scene takes time. Attempts that were under way at the same time, in several workers, count as one: what is
    counted are the pauses that did not help.
    """

    def __init__(
        self,
        episodes: Sequence[Any],
        patience: Patience | None = None,
        spending: Spending | None = None,
        shared: SharedRun | None = None,
    ) -> None:
        self._waiting: dict[str, deque[Any]] = {}
        for episode in episodes:
            self._waiting.setdefault(episode.scene_id, deque()).append(episode)
        self._again: deque[Any] = deque()
        self._shared = shared
        self._elsewhere: dict[str, Any] = {}  # episodes that other processes hold
        self._scenes_elsewhere: set[str] = set()
        self._look_at_s = -math.inf
        self._ended: set[str] = set()  # what others have done
        self._lost: list[LostEpisode] = []
        self._killed: Counter[str] = Counter()
        self._scene_of_worker: dict[int, str] = {}
        self._patience = patience or Patience()
        self.spending = spending or Spending(RunBudget())
        self._begun_s: dict[str, float] = {}
        self._failed_at_s = self._next_at_s = -math.inf
        self.failures = 0  # how many attempts in a row found no agent
        self.problem = ""  # what the last of them found
        self.news = ""  # what else the user should know now; executors write it

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
        if self.is_stopped or not self.spending.allows_next(len(self._begun_s)):
            return None
        if self._waiting or self._again:
            return max(0.0, self._next_at_s - time.monotonic())
        return max(0.0, self._look_at_s - time.monotonic()) if self._elsewhere else None

    def take(self, worker: int = 0) -> Any | None:
        """Return the next episode for a worker; None if others hold all that is left."""
        if not (self._waiting or self._again):
            self._put_back(self._elsewhere)
        while self._waiting or self._again:
            episode = self._next_for(worker)
            if self._is_ours(episode):
                self._begun_s[episode.episode_id] = time.monotonic()
                return episode
        self._look_at_s = time.monotonic() + max(LOOK_PAUSE_S, 0.02 * len(self._elsewhere))
        return None

    @property
    def shared_folder(self) -> Path | None:
        """The folder of the run, if other processes can join it."""
        return self._shared.out if self._shared else None

    @property
    def ended_elsewhere(self) -> int:
        """How many episodes others have done."""
        return len(self._ended)

    @property
    def is_left(self) -> bool:
        """Whether an episode is left that nobody has done yet, as far as is known here."""
        waiting = (episode for episodes in self._waiting.values() for episode in episodes)
        ids = (episode.episode_id for episode in (*waiting, *self._again, *self._elsewhere.values()))
        return any(episode_id not in self._ended for episode_id in ids)

    def _next_for(self, worker: int) -> Any:
        if not self._waiting:
            return self._again.popleft()
        scene = self._scene_of_worker[worker] = self._scene_for(worker)
        episode = self._waiting[scene].popleft()
        if not self._waiting[scene]:
            del self._waiting[scene]
        return episode

    def _is_ours(self, episode: Any) -> bool:
        """Tell whether this process may do an episode, and remember it if it has to ask again."""
        if self._shared is None:
            return True
        if episode.episode_id in self._ended:
            return False
        with disk_errors(self._shared.out):
            claim = self._shared.claim(episode.episode_id)
        if claim.is_held:
            self._elsewhere[episode.episode_id] = episode
            self._scenes_elsewhere.add(episode.scene_id)
        if claim.is_ours and claim.is_hopeless:
            self._lost.append(LostEpisode(episode, claim.losses))
        return claim.is_ours and not claim.is_hopeless

    def _put_back(self, episodes: dict[str, Any]) -> None:
        for episode in episodes.values():
            self._waiting.setdefault(episode.scene_id, deque()).append(episode)
        episodes.clear()

    def take_lost(self) -> Iterator[LostEpisode]:
        """Yield the episodes that are to be recorded as lost, each once."""
        while self._lost:
            yield self._lost.pop()

    def _scene_for(self, worker: int) -> str:
        """Return the worker's own scene, else one that nobody has begun, else the one with most to do."""
        own = self._scene_of_worker.get(worker, "")
        if own in self._waiting:
            return own
        begun = {*self._scene_of_worker.values(), *self._scenes_elsewhere}
        untouched = [scene for scene in self._waiting if scene not in begun]
        return untouched[0] if untouched else max(self._waiting, key=lambda scene: len(self._waiting[scene]))

    def note(self, episode: Any, result: EpisodeResult) -> None:
        """Take in how an episode went that was taken."""
        begun_s = self._begun_s.pop(episode.episode_id)
        self.spending.note(result)
        if not result.is_scored and self._gives_way(result.episode_id):
            self._elsewhere[result.episode_id] = episode
            return
        if result.is_scored:
            self.failures = 0
        if result.error is None or not self._is_repeated(result):
            return
        self._again.append(episode)
        if not result.is_unavailable:
            return
        self.problem = result.error.message
        if begun_s >= self._failed_at_s:
            self._failed_at_s = time.monotonic()
            self.failures += 1
            self._next_at_s = self._failed_at_s + self._patience.pause_after_s(self.failures)

    def _gives_way(self, episode_id: str) -> bool:
        """Tell whether a result without a score is dropped: another process does the episode by now.

        With a score it is published: the first score counts, whoever has the lease.
        """
        if self._shared is None:
            return False
        with disk_errors(self._shared.out):
            return self._shared.give_way(episode_id)

    def is_elsewhere(self, episode_id: str) -> bool:
        """Tell whether another process does an episode, as far as is known here."""
        return episode_id in self._elsewhere

    def _is_repeated(self, result: EpisodeResult) -> bool:
        """Tell whether the episode comes again in this run."""
        if result.error is not None and result.error.kind == WORKER_KILLED:
            self._killed[result.episode_id] += 1
            return self._killed[result.episode_id] < MAX_LOSSES
        return result.is_unavailable

    def comes_again(self, result: EpisodeResult) -> bool:
        """Tell whether there will be another attempt at an episode in this run."""
        return any(episode.episode_id == result.episode_id for episode in self._again)

    def note_elsewhere(self, result: EpisodeResult, *, is_again: bool) -> None:
        """Take in how an episode went that another process did."""
        if result.is_scored:
            self.failures, self.problem = 0, ""
        if result.error is not None and result.is_unavailable:
            self.problem = result.error.message
        if not is_again:
            self._ended.add(result.episode_id)

    def stop(self) -> None:
        """End the run here: the agent is unavailable to all who work on it."""
        self.failures = self._patience.max_unavailable

    def note_to_reader(self) -> str:
        """Say that the agent is unavailable and what happens next; if it is there, what executors say."""
        if not self.failures:
            return self.news
        wait_s = self.wait_s()
        then = f"; the next attempt is in {wait_s:.0f} s" if wait_s is not None else ""
        return f"the agent is unavailable ({self.problem}){then}"
