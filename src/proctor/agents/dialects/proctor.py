"""Proctor's own language, version 1: `reset_episode`, `get_action`, `action`, `episode_end`."""

from __future__ import annotations

import uuid
from typing import Any

from proctor import __version__
from proctor.agents.codec import Codec
from proctor.agents.connection import Connection
from proctor.agents.faults import WireFault
from proctor.agents.messages import (
    ALWAYS_TOLD,
    UNAVAILABLE_KINDS,
    VERSION,
    ActionReply,
    EpisodeEnd,
    ErrorMessage,
    FromAgent,
    GetAction,
    Hello,
    ResetEpisode,
)
from proctor.agents.scans import named_scans
from proctor.core.distribution import UPDATE_COMMAND
from proctor.core.errors import AgentFault, AgentUnavailable
from proctor.core.types import EpisodeInfo, Observation, Outcome


class ProctorDialect:
    """A session of protocol version 1.

    Args:
        connection: The line to the agent.
        codec: How messages are written on it.
        hello: The agent's, if it said one.
    """

    def __init__(self, connection: Connection, codec: Codec, hello: Hello | None) -> None:
        self.name = codec.subprotocol
        self._connection, self._codec, self._hello = connection, codec, hello
        self._session_id = str(uuid.uuid4())
        self._requests = 0
        self._instruction: dict[str, str] = {}
        self._task = ""
        self._is_greeted = False

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Answer the agent's hello, if this is the first episode, and send `reset_episode`."""
        self._hear()
        self._instruction = {"text": info.instruction, "language": info.language}
        self._task = info.task
        message = ResetEpisode(
            session_id=self._session_id,
            episode={
                "episode_id": info.episode_id,
                "task_type": info.task,
                "instruction": self._instruction,
                "max_steps": info.max_steps,
                "seed": info.seed,
                **info.details,
            },
            observation_format=self._codec.formats(info.sensors),
        )
        reset = self._codec.encode(message)  # what fails before a word is sent is not the agent's fault
        if self._hello is not None and not self._is_greeted:
            self._connection.send(self._codec.encode(self._own_hello(info)), deadline_s)
            self._is_greeted = True
        self._connection.send(reset, deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Send `get_action` and return the action of the reply."""
        self._hear()
        self._requests += 1
        message = GetAction(
            session_id=self._session_id,
            request_id=self._requests,
            observation={"instruction": self._instruction, **named_scans(observation)},
        )
        reply = self._codec.read_agent(self._connection.exchange(self._codec.encode(message), deadline_s))
        if isinstance(reply, Hello) and self._hello is None:
            self._take_early(reply)
            reply = self._codec.read_agent(self._connection.receive(deadline_s))
        return self._action_of(reply)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send `episode_end`."""
        message = EpisodeEnd(
            session_id=self._session_id,
            status=outcome.status,
            metrics={**dict.fromkeys(ALWAYS_TOLD.get(self._task, ())), **outcome.metrics},
            num_steps=outcome.num_steps,
        )
        self._connection.send(self._codec.encode(message), deadline_s)

    def _own_hello(self, info: EpisodeInfo) -> Hello:
        return Hello(
            protocol="proctor",
            version=VERSION,
            name=f"proctor {__version__}",
            session_id=self._session_id,
            task=info.task,
            sensors=info.sensors,
            actions=list(info.actions),
        )

    def _hear(self) -> None:
        """Read what has come already. On a line that is closed, it says why better than the line does."""
        early = self._connection.pending()
        if early is not None:
            self._take_early(self._codec.read_agent(early))

    def _take_early(self, message: FromAgent) -> None:
        """Take in what was not asked for: a hello that comes late, or an error."""
        if isinstance(message, ErrorMessage):
            raise _own_fault(message)
        if not isinstance(message, Hello) or self._hello is not None:
            what = "a second hello" if isinstance(message, Hello) else "an action"
            raise AgentFault(WireFault.UNASKED, f"the agent sent {what} that it had not been asked for")
        check_version(message)
        self._hello = message

    def _action_of(self, reply: FromAgent) -> Any:
        if isinstance(reply, ErrorMessage):
            raise _own_fault(reply)
        if not isinstance(reply, ActionReply):
            raise AgentFault(WireFault.WRONG_MESSAGE, "expected a message of type 'action', found 'hello'")
        if reply.session_id not in ("", self._session_id):
            raise AgentFault(WireFault.WRONG_SESSION, "the reply bears another session's id")
        knows_ids = self._hello is not None and self._hello.request_ids
        if reply.request_id not in ((self._requests,) if knows_ids else (self._requests, None)):
            problem = f"expected a reply to request {self._requests}, found one to {reply.request_id}"
            raise AgentFault(WireFault.STALE_REPLY, problem)
        return reply.action


def check_version(hello: Hello) -> None:
    """Refuse an agent of another protocol version.

    Raises:
        AgentFault: Its version is not ours.
    """
    if hello.protocol != "proctor":
        raise AgentFault(WireFault.MISMATCH, f"the agent speaks '{hello.protocol:.40}', not 'proctor'")
    if hello.version > VERSION:
        remedy = f"update Proctor here: {UPDATE_COMMAND}"
    elif hello.version < VERSION:
        remedy = f"update Proctor where the agent is served: {UPDATE_COMMAND}"
    else:
        return
    problem = f"the agent speaks version {hello.version} of the protocol, this evaluator version {VERSION}"
    raise AgentFault(WireFault.MISMATCH, f"{problem}; {remedy}")


def _own_fault(message: ErrorMessage) -> AgentFault:
    if message.kind in UNAVAILABLE_KINDS:
        return AgentUnavailable(f"{message.kind}: {message.message}", kind=WireFault.UNAVAILABLE)
    return AgentFault(WireFault.AGENT_ERROR, f"{message.kind}: {message.message}")
