"""The trace of one episode: all that the loop records, and all that scores are computed from."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from proctor.core.types import Info, Usage

ActionT = TypeVar("ActionT")
StateT = TypeVar("StateT")


class Trace(Generic[ActionT, StateT]):
    """What was done in an episode, and what was true after each step."""

    def __init__(self, first: StateT | None = None) -> None:
        self.states: list[StateT] = [] if first is None else [first]
        """The state before the first step, then the one after each action."""
        self.actions: list[ActionT] = []
        self.latencies_s: list[float] = []
        """How long the agent took for each action. Differs from run to run; no score may depend on it."""
        self.charged_s: list[float] = []
        """How much simulated time passed before each action for the agent's thinking; empty if it is free."""
        self.simulated_s = 0.0
        """When the last step was done, where thinking is charged: simulated seconds since the start."""
        self.usage: list[Usage | None] = []
        """What the agent used for each action; None where it does not say."""

    def add(self, action: ActionT, state: StateT, latency_s: float = 0.0, usage: Usage | None = None) -> None:
        """Append a step."""
        self.actions.append(action)
        self.states.append(state)
        self.latencies_s.append(latency_s)
        self.usage.append(usage)

    def charge(self, charged_s: float, simulated_s: float) -> None:
        """Add what was charged for the thinking before the last step, and when that step was done."""
        self.charged_s.append(charged_s)
        self.simulated_s = simulated_s

    @property
    def steps(self) -> int:
        """How many actions were done."""
        return len(self.actions)

    def after_steps(self) -> list[StateT]:
        """Return the states after each action, without the one before the first."""
        return self.states[len(self.states) - len(self.actions) :]


AnyTrace = Trace[Any, Any]


def plain_state(state: msgspec.Struct) -> Info:
    """Return the fields of a recorded state that are known, and what else was recorded of the env's info."""
    fields = {key: value for key, value in msgspec.structs.asdict(state).items() if value is not None}
    more: Info = fields.pop("more", {})
    return {**more, **fields}
