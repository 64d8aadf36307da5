"""Whose turn it is in an episode, where the time went, who is to blame for errors, and closing both."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import UNSET

from proctor.core.errors import (
    AgentFault,
    AgentUnavailable,
    EvaluatorError,
    ProctorError,
    SimulationError,
    is_unavailability,
)
from proctor.core.interfaces import Env, Policy
from proctor.core.types import Usage
from proctor.exams.results import Fault, Side, Timing
from proctor.exams.trace import AnyTrace, Trace
from proctor.runs.accounting import checked_usage, read_usage
from proctor.runs.resources import Moment, ProcessMeter

Turn = Literal["env", "policy", "evaluator"]
MAX_TEXT_LETTERS, MAX_KIND_LETTERS = 4000, 80


class Turns:
    """Charges the time of an episode to env, policy and evaluator, and keeps its trace when an error ends it.

    `announce` is called with whose turn it is, whenever that changes, and `announce_usage` with what the
    policy has used so far. `is_served` says that the agent is elsewhere, and the policy only the evaluator's
    connection to it. `begun` is now if it is not given. `meter` is that of the process that does the episode.
    """

    def __init__(
        self,
        announce: Callable[[Turn], None] | None = None,
        announce_usage: Callable[[Usage], None] | None = None,
        *,
        is_served: bool = False,
        begun: Moment | None = None,
        meter: ProcessMeter | None = None,
    ) -> None:
        self.trace: AnyTrace = Trace()
        self.usage: Usage | None = None  # what the policy says it has used in this episode
        self.is_briefed = False  # whether the policy has been told of the episode
        self.delivered: dict[str, Any] = {}  # fields of the result that say what the agent got
        self._announce, self._announce_usage, self._is_served = announce, announce_usage, is_served
        self._process_id = os.getpid()
        self._turn: Turn = "evaluator"
        begun = begun or Moment.now()
        self._began, self._since_s, self._meter = begun.utc, begun.perf_s, meter
        self._spent_s: dict[Turn, float] = {"env": 0.0, "policy": 0.0, "evaluator": 0.0}
        self._spent_before_s = dict(self._spent_s)

    def of(self, turn: Turn) -> Turns:
        """Charge the time of a `with` block, and the blame if it raises, to one side."""
        self._switch(turn)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        leave_if_forked(self._process_id)
        if error is None:  # else it must still be known whose turn it was
            self._switch("evaluator")

    @property
    def thought_s(self) -> float:
        """How long the policy has taken since the last call of `step_s`."""
        return self._spent_s["policy"] - self._spent_before_s["policy"]

    def step_s(self) -> tuple[float, float]:
        """Return how long policy and env took since the last call."""
        before, self._spent_before_s = self._spent_before_s, dict(self._spent_s)
        return self._spent_s["policy"] - before["policy"], self._spent_s["env"] - before["env"]

    def count_usage(self, policy: Policy) -> Usage | None:
        """Add what the policy used since the last call to this episode's usage, and return it."""
        part = read_usage(policy)
        if part is not None:
            self.usage = checked_usage(part + (self.usage or Usage()))
            if self._announce_usage is not None:
                self._announce_usage(self.usage)
        return part

    def has_decided(self, usage: Usage | None) -> bool:
        """Tell whether an action was thought about, and not queued; always if no decision was counted yet."""
        is_counted = self.usage is not None and self.usage.decisions > 0
        return not is_counted or (usage is not None and usage.decisions > 0)

    @property
    def timing(self) -> Timing:
        """Where the time went so far."""
        self._switch(self._turn)
        spent_s = {f"{turn}_s": round(spent, 6) for turn, spent in self._spent_s.items()}
        steps = zip(self.trace.latencies_s, self.trace.usage, strict=True)
        decision_s = [latency_s for latency_s, usage in steps if usage and usage.decisions]
        return Timing(
            **spent_s,
            act_s=self.trace.latencies_s,
            decision_s=decision_s or UNSET,
            began=self._began,
            host=os.uname().nodename,
            **(self._meter.read() if self._meter else {}),
        )

    def fault_of(self, error: BaseException) -> Fault:
        """Return whose fault an error is. Copes with errors that cannot even be printed."""
        try:
            fault = self._fault_of(error)
        except Exception:  # noqa: BLE001  attributes of an error may be code of the policy's, and raise
            name = type(error).__qualname__
            fault = self._fault_of(RuntimeError(f"{name:.80}, an error whose attributes raise errors"))
        self._switch("evaluator")
        return fault

    def _fault_of(self, error: BaseException) -> Fault:
        side, kind = self._blame(error)
        return Fault(
            side=side,
            kind=_printable([kind])[:MAX_KIND_LETTERS],
            message=error_text(error),
            traceback=_printable(traceback.format_exception(error, limit=-6)),
        )

    def _blame(self, error: BaseException) -> tuple[Side, str]:
        """Decide whose fault an error is, and which kind of fault. Nothing else decides that."""
        turn = self._turn
        if turn == "policy" and self._is_served and isinstance(error, EvaluatorError):
            turn = "evaluator"  # the agent is elsewhere: it is our connection to it that failed
        is_outage = self._is_served and isinstance(error, AgentUnavailable) and error.is_outage
        if turn == "policy" and (is_outage or (not self.trace.steps and is_unavailability(error))):
            return "unavailable", error.kind if isinstance(error, AgentFault) else "agent_unavailable"
        if isinstance(error, AgentFault):
            return "agent", error.kind
        if turn == "policy":
            return "agent", "policy_exception"
        is_of_env = turn == "env" or isinstance(error, SimulationError)
        return "evaluator", "env_exception" if is_of_env else "evaluator_exception"

    def _switch(self, turn: Turn) -> None:
        now_s = time.perf_counter()
        self._spent_s[self._turn] += now_s - self._since_s
        self._turn, self._since_s = turn, now_s
        if self._announce is not None:
            self._announce(turn)


def error_text(error: BaseException) -> str:
    """Return an error as text, even one that cannot be printed. Proctor's own come without their class."""
    text = _printable(traceback.format_exception_only(error))
    if isinstance(error, ProctorError):
        text = text.removeprefix(f"{type(error).__module__}.{type(error).__qualname__}: ")
    return text


def _printable(lines: list[str]) -> str:
    """Join lines, without the surrogates that no file can hold, and no longer than anybody reads."""
    text = "".join(lines).strip()
    if len(text) > MAX_TEXT_LETTERS:
        text = f"{text[: MAX_TEXT_LETTERS // 2]} ... {text[-MAX_TEXT_LETTERS // 2 :]}"
    return text.encode("utf-8", "replace").decode()


def leave_if_forked(process_id: int) -> None:
    """End this process at once if it is not the one with this id but a copy of it."""
    if os.getpid() != process_id:
        os._exit(70)


@contextmanager
def no_forks() -> Iterator[None]:
    """Let no copy of this process, made with `os.fork`, get out of a `with` block around code of others.

    A copy that returns from the code of a policy or an env into ours would go on with the run as if it were
    the evaluator: do the episodes a second time and write their results, too.
    """
    process_id = os.getpid()
    try:
        yield
    finally:
        leave_if_forked(process_id)


def close_problems(*items: Env | Policy) -> list[str]:
    """Close each of them, whatever the others do, and return a warning for each that raised."""
    problems = []
    for item in items:
        try:
            with no_forks():
                item.close()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  as in an episode, whatever it is
            kind = "policy" if isinstance(item, Policy) else "env"
            problems.append(f"close() of the {kind} {type(item).__name__} failed: {error_text(error)}")
    return problems
