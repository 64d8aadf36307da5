"""The policy whose actions come from outside: from a person, or from an agent that calls the evaluator.

The run asks it for actions in one thread; the server of a page or of MCP answers from others. Both sides
share one `SeatTurn` at a time. So such a run is an ordinary one: planned, recorded, resumed and scored like
any other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from proctor.core.errors import AgentFault, AgentUnavailable, UserError
from proctor.core.interfaces import Policy
from proctor.core.types import EpisodeInfo, Observation, Outcome

EPISODE_TIMEOUT, GAVE_UP, LEFT = "episode_timeout", "gave_up", "contestant_left"
"""The kinds of `AgentFault` of a seat."""
MOST_SECONDS = 7 * 24 * 3600.0


class SeatTurn(NamedTuple):
    """What the contestant sees: the next step of an episode, or its end."""

    number: int
    """Counts the turns of the whole run. An answer names the turn it belongs to."""
    info: EpisodeInfo
    step: int
    """How many steps of the episode are done."""
    observation: Observation
    outcome: Outcome | None = None
    """Set when the episode is over; there is nothing to answer then."""


class StaleTurn(Exception):
    """An answer to a turn that is over, or to none: it was sent twice, late, or too early."""


class Seat(Policy):
    """Where a contestant takes the exam: the run waits here for its actions.

    Args:
        episode_timeout_s: How long an episode may take, from `begin` on. Without it the run waits for ever.
    """

    command: ClassVar[str] = ""
    """The command that runs it."""

    def __init__(self, episode_timeout_s: float | None = None) -> None:
        if episode_timeout_s is not None and not (
            isinstance(episode_timeout_s, int | float) and 0 < episode_timeout_s <= MOST_SECONDS
        ):
            raise UserError(
                f"episode_timeout_s: expected seconds above 0, up to {MOST_SECONDS:g}, "
                f"found {episode_timeout_s!r:.40}"
            )
        self._timeout_s = episode_timeout_s
        self._changed = threading.Condition()
        self._turn: SeatTurn | None = None
        self._info = EpisodeInfo(episode_id="", instruction="", max_steps=0, seed=0)
        self._step = self._number = 0
        self._deadline_s: float | None = None
        self._answers: list[Any] = []  # at most one: the action, or the error, that ends the present turn
        self._is_closed = False

    # The run's side

    def check(self) -> None:
        """Refuse to be run by `proctor run`, where nobody could answer."""
        raise UserError(f"such a contestant takes the exam with `{self.command}`, not with `proctor run`")

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Begin an episode. Its time counts from `begin` on."""
        self._info, self._step, self._deadline_s = episode_info, 0, None

    def act(self, observation: Observation) -> Any:
        """Show the contestant what it sees, and wait for its action."""
        with self._changed:
            self._answers.clear()
            self._show(observation, None)
            while not self._answers:
                if self._is_closed:
                    raise AgentUnavailable("nobody can answer any more", kind=LEFT)
                left_s = None if self._deadline_s is None else self._deadline_s - time.monotonic()
                if left_s is not None and left_s <= 0:
                    raise AgentFault(EPISODE_TIMEOUT, f"the episode took more than {self._timeout_s:g} s")
                self._changed.wait(left_s)
            answer = self._answers[0]
        if isinstance(answer, AgentFault):
            raise answer
        self._step += 1
        return answer

    def episode_end(self, outcome: Outcome) -> None:
        """Show that the episode is over."""
        with self._changed:
            self._answers.clear()
            self._show({}, outcome)

    def close(self) -> None:
        """Tell whoever waits that there are no more turns."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _show(self, observation: Observation, outcome: Outcome | None) -> None:
        self._number += 1
        self._turn = SeatTurn(self._number, self._info, self._step, observation, outcome)
        self._changed.notify_all()

    # The contestant's side

    @property
    def turn(self) -> SeatTurn | None:
        """The present turn; None before the first."""
        return self._turn

    @property
    def is_closed(self) -> bool:
        """Whether the run is over."""
        return self._is_closed

    def wait(self, after: int, timeout_s: float) -> SeatTurn | None:
        """Return the first turn seen with a number above `after`; None if there is none in time.

        That is the latest one: an end that nobody waited for may already be followed by the next episode.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or (self._turn is not None and self._turn.number > after), timeout_s
            )
            return self._turn if self._turn is not None and self._turn.number > after else None

    def begin(self) -> None:
        """Start the clock of the episode, once."""
        with self._changed:
            if self._deadline_s is None and self._timeout_s is not None:
                self._deadline_s = time.monotonic() + self._timeout_s
                self._changed.notify_all()

    def seconds_left(self) -> float | None:
        """Return how long the episode may still take; None if its clock does not run."""
        return None if self._deadline_s is None else max(0.0, self._deadline_s - time.monotonic())

    def answer(self, number: int, action: Any) -> None:
        """Give the action for a turn; StaleTurn if that turn is not the open one."""
        with self._changed:
            turn = self._turn
            if self._is_closed or turn is None or turn.number != number or turn.outcome or self._answers:
                raise StaleTurn(f"turn {number} is not open")
            self._answers.append(action)
            self._changed.notify_all()

    def give_up(self, number: int, reason: str) -> None:
        """End the episode as the contestant wishes: it counts as a failure."""
        self.answer(number, AgentFault(GAVE_UP, reason))

    def leave(self, number: int, reason: str) -> None:
        """Break the episode off before its first step: it is not scored, and comes again."""
        self.answer(number, AgentUnavailable(reason, kind=LEFT))


class HumanSeat(Seat):
    """A person at a page in the browser."""

    command = "proctor play"

    @classmethod
    def result_notes(cls, options: Mapping[str, Any]) -> list[str]:
        """Say that it was no program."""
        return ["human: a person took the exam at a page in a browser"]


class McpSeat(Seat):
    """An agent that calls tools over MCP.

    Args:
        transport: `http`, or `stdio`, where the agent runs as the same user and could read the exam's files.
        episode_timeout_s: As for any seat. An agent that has not done a step by then was not there: the
            episode is not scored, and comes again.
        check_pictures: Whether the agent has to read a code word from a picture before its first episode.
        show_depth: Whether it is shown depth, as grey pictures.
    """

    command = "proctor mcp"
    uses_chat_task = True

    def __init__(
        self,
        transport: str = "http",
        episode_timeout_s: float | None = 1800.0,
        *,
        check_pictures: bool = False,
        show_depth: bool = False,
    ) -> None:
        super().__init__(episode_timeout_s)
        self.transport, self.check_pictures, self.show_depth = transport, check_pictures, show_depth

    @classmethod
    def result_notes(cls, options: Mapping[str, Any]) -> list[str]:
        """Say how the exam was taken."""
        found = []
        if options.get("transport") == "stdio":
            found.append("taken over stdio: the agent ran as the same user and could read the exam's files")
        if options.get("check_pictures"):
            found.append("before its first episode the agent had to read a code word from a picture")
        else:
            found.append("whether pictures reach the model behind the agent was not checked")
        return found

    def act(self, observation: Observation) -> Any:
        """Wait for the action; a time limit that passes before the first one is not the agent's fault."""
        try:
            return super().act(observation)
        except AgentFault as fault:
            if fault.kind == EPISODE_TIMEOUT and self._step == 0:
                raise AgentUnavailable(f"{fault}, without an action", kind=EPISODE_TIMEOUT) from None
            raise
