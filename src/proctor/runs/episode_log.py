"""What the loop knows of an episode while it runs: whose turn it is, where the time went, who is to blame."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from typing import Any, Literal, Protocol

from proctor.core.availability import is_unavailability
from proctor.core.errors import AgentFault, EvaluatorError, ProctorError, SimulationError
from proctor.exams.results import EpisodeResult, Fault, Side, Timing
from proctor.core.types import Info, Observation
from proctor.runs.forks import leave_if_forked

Turn = Literal["env", "policy", "evaluator"]
LONGEST_TEXT, LONGEST_KIND = 4000, 80


class Witness(Protocol):
    """Somebody who watches an episode, such as a recorder. It must not change what it is shown."""

    def see(self, observation: Observation) -> None:
        """Take in what the policy is about to see; at the end, what it would have seen next."""

    def step(self, action: Any, info: Info, *, policy_s: float, env_s: float) -> None:
        """Take in a step and how long the two sides took for it."""


class EpisodeLog:
    """What the loop itself knows of an episode: actions, whose turn it is, where the time went.

    Args:
        seed: The episode's.
        announce: Told whose turn it is, whenever that changes.
        witness: Shown all that happens.
        privileged: Whether the policy is given the episode and the ground truth.
        is_served: Whether the agent is elsewhere, and the policy only the evaluator's connection to it.
    """

    def __init__(
        self,
        seed: int,
        announce: Callable[[Turn], None] | None = None,
        witness: Witness | None = None,
        *,
        privileged: bool = False,
        is_served: bool = False,
    ) -> None:
        self.seed, self.privileged, self._is_served = seed, privileged, is_served
        self._process_id = os.getpid()
        self.actions: list[Any] = []
        self.metrics: dict[str, float] = {}
        self.fault: Fault | None = None
        self.is_briefed = False
        """Whether the policy has been told of the episode."""
        self.result: EpisodeResult | None = None
        """The episode's record, once it has been written."""
        self._announce, self._witness = announce, witness
        self._turn: Turn = "evaluator"
        self._since_s = time.perf_counter()
        self._spent_s: dict[Turn, float] = {"env": 0.0, "policy": 0.0, "evaluator": 0.0}
        self._spent_before_s = dict(self._spent_s)
        self._act_s: list[float] = []

    def see(self, observation: Observation) -> None:
        """Show the witness what the policy is about to see."""
        self._spent_before_s = dict(self._spent_s)
        if self._witness is not None:
            self._witness.see(observation)

    def step(self, action: Any, info: Info) -> None:
        """Note an action that was done."""
        self.actions.append(action)
        took_s = {turn: self._spent_s[turn] - self._spent_before_s[turn] for turn in self._spent_s}
        self._act_s.append(round(took_s["policy"], 6))
        if self._witness is not None:
            self._witness.step(action, info, policy_s=took_s["policy"], env_s=took_s["env"])

    def turn(self, turn: Turn) -> EpisodeLog:
        """Charge the time of a `with` block, and the blame if it raises, to one side."""
        self._switch(turn)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        leave_if_forked(self._process_id)
        if error is None:  # else it must still be known whose turn it was
            self._switch("evaluator")

    def record_fault(self, error: BaseException) -> None:
        """Note why the episode broke off. Copes with errors that cannot even be printed."""
        try:
            self.fault = self._fault_of(error)
        except Exception:  # noqa: BLE001  attributes of an error may be code of the policy's, and raise
            name = type(error).__qualname__
            self.fault = self._fault_of(RuntimeError(f"{name:.80}, an error whose attributes raise errors"))
        self._switch("evaluator")

    def _fault_of(self, error: BaseException) -> Fault:
        side, kind = self._blame(error)
        return Fault(
            side=side,
            kind=_printable([kind])[:LONGEST_KIND],
            message=error_text(error),
            traceback=_printable(traceback.format_exception(error, limit=-6)),
        )

    def _blame(self, error: BaseException) -> tuple[Side, str]:
        """Decide whose fault an error is, and which kind of fault. Nothing else decides that."""
        turn = self._turn
        if turn == "policy" and self._is_served and isinstance(error, EvaluatorError):
            turn = "evaluator"  # the agent is elsewhere: it is our connection to it that failed
        if turn == "policy" and not self.actions and is_unavailability(error):
            return "unavailable", error.kind if isinstance(error, AgentFault) else "agent_unavailable"
        if isinstance(error, AgentFault):
            return "agent", error.kind
        if turn == "policy":
            return "agent", "policy_exception"
        is_of_env = turn == "env" or isinstance(error, SimulationError)
        return "evaluator", "env_exception" if is_of_env else "evaluator_exception"

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        self._switch(self._turn)
        spent_s = {f"{turn}_s": round(spent, 6) for turn, spent in self._spent_s.items()}
        return Timing(**spent_s, act_s=self._act_s)

    def _switch(self, turn: Turn) -> None:
        now_s = time.perf_counter()
        self._spent_s[self._turn] += now_s - self._since_s
        self._turn, self._since_s = turn, now_s
        if self._announce is not None:
            self._announce(turn)


def error_text(error: BaseException) -> str:
    """Return an error in words, even one that cannot be printed. Proctor's own come without their class."""
    text = _printable(traceback.format_exception_only(error))
    if isinstance(error, ProctorError):
        text = text.removeprefix(f"{type(error).__module__}.{type(error).__qualname__}: ")
    return text


def _printable(lines: list[str]) -> str:
    """Join lines, without the surrogates that no file can hold, and no longer than anybody reads."""
    text = "".join(lines).strip()
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} ... {text[-LONGEST_TEXT // 2 :]}"
    return text.encode("utf-8", "replace").decode()
