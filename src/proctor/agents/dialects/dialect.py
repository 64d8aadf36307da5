"""A conversation with one agent over one connection, in the language that it speaks."""

from __future__ import annotations

from typing import Any, Protocol

from proctor.core.types import EpisodeInfo, Observation, Outcome


class Dialect(Protocol):
    """What `WebSocketPolicy` needs of a language. Deadlines are points of `time.monotonic()`.

    A dialect belongs to one connection and is made anew with it. What it cannot say it leaves out: many
    policy servers do not know of episodes.
    """

    name: str
    """For people: `proctor.v1.msgpack`, `openpi`."""

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Tell the agent that an episode begins.

        Raises:
            AgentFault: It cannot be told.
        """

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Show the agent what it sees and return what it wants to do, as the task's action or its JSON.

        Raises:
            AgentFault: It does not answer, or not as it should.
        """

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Tell the agent how the episode ended.

        Raises:
            AgentFault: It cannot be told.
        """
