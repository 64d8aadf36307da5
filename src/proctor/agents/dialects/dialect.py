"""The contract of a dialect: how the evaluator speaks with one kind of agent server.

A dialect is a registry name (entry-point group `proctor.dialects`); nothing else in this package names one.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from proctor.core.errors import EvaluatorError, ProctorError
from proctor.core.types import EpisodeInfo, Observation, Outcome

if TYPE_CHECKING:
    from proctor.agents.connection import Connection
    from proctor.agents.dialects.mapping import Mapping
    from proctor.agents.handshake import Handshake


class Dialect(abc.ABC):
    """One agent's protocol on one connection. Deadlines are points of `time.monotonic()`.

    Every method works in three steps: encode inside of `encoding()`, send and receive by the connection,
    decode. What the agent does wrong is raised as AgentFault. A dialect leaves out what its protocol cannot
    say: many policy servers do not know of episodes.
    """

    name: str = ""  # for people and for the exam's defaults: `openpi`
    schemes: ClassVar[tuple[str, ...]] = ("ws", "wss")  # of the addresses where it is spoken
    subprotocols: ClassVar[tuple[str, ...]] = ()  # WebSocket subprotocols to offer
    authorization_scheme: ClassVar[str] = "Bearer"
    """Of the Authorization header, if the user chose this dialect."""
    first_speaker: ClassVar[Literal["agent", "evaluator", "either"]] = "either"
    """Who sends the first frame. If the user chose this dialect: whether to wait for the agent's."""
    is_fallback: ClassVar[bool] = False  # whether this dialect is for agents that no other dialect recognises

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        self.connection = connection
        self.mapping = mapping

    @classmethod
    @abc.abstractmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the agent speaks this dialect. Not asked if the user chose the dialect."""

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Finish the handshake, of which the agent has sent a part already, and return the dialect."""
        del handshake, deadline_s
        return cls(connection, mapping)

    @abc.abstractmethod
    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send the agent what it may know of an episode that begins."""

    @abc.abstractmethod
    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Send an observation and return the decoded answer. The exam parses it, nobody else."""

    @abc.abstractmethod
    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send how the episode ended."""


@contextmanager
def encoding() -> Iterator[None]:
    """Report encoding errors as evaluator faults: nothing was sent yet, so the agent cannot be at fault."""
    try:
        yield
    except ProctorError:
        raise
    except Exception as error:
        problem = f"what the agent should be sent cannot be written: {type(error).__name__}: {error}"
        raise EvaluatorError(problem) from error
