"""Proctor's own protocol, version 1: `reset_episode`, `get_action`, `action`, `episode_end`."""

from __future__ import annotations

import uuid
from typing import Any, Self

from proctor import __version__
from proctor.agents import messages as wire
from proctor.agents.arrays import named_scans
from proctor.agents.codec import Codec, JsonCodec, MsgpackCodec
from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.dialects.mapping import Mapping
from proctor.agents.handshake import Handshake
from proctor.agents.messages import MSGPACK, UNAVAILABLE_KINDS, BadFrame, WireFault, check_version
from proctor.core.errors import AgentFault, AgentUnavailable
from proctor.core.types import EpisodeInfo, Observation, Outcome

NAME_IT = "give the option dialect=xpolicylab"


class ProctorDialect(Dialect):
    """A session of protocol version 1."""

    subprotocols = wire.SUBPROTOCOLS
    is_fallback = True

    def __init__(self, connection: Connection, codec: Codec, hello: wire.Hello | None) -> None:
        super().__init__(connection)
        self.name = codec.subprotocol
        self._codec, self._hello = codec, hello
        self._session_id = str(uuid.uuid4())
        self._requests = 0
        self._instruction: dict[str, str] = {}
        self._is_hello_answered = False

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return True: an agent of the specification needs neither a subprotocol nor a hello."""
        del handshake
        return True

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Read the agent's hello, if it sent one, and choose the codec."""
        del mapping, deadline_s
        codec: Codec = MsgpackCodec() if handshake.subprotocol == MSGPACK else JsonCodec()
        frame = handshake.first_frame
        if frame is None:
            return cls(connection, codec, None)
        try:
            hello = codec.read_agent(frame)
        except BadFrame as error:
            raise AgentFault(WireFault.MISMATCH, _not_hello(handshake, error)) from None
        if not isinstance(hello, wire.Hello):
            raise AgentFault(WireFault.MISMATCH, "the agent spoke first, but did not say hello")
        check_version(hello, "agent")
        return cls(connection, JsonCodec(hello.pictures) if isinstance(frame, str) else codec, hello)

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Answer the agent's hello, if this is the first episode, and send `reset_episode`."""
        self._read_early()
        self._instruction = {"text": info.instruction, "language": info.language}
        episode = {
            "episode_id": info.episode_id,
            "task_type": info.task,
            "instruction": self._instruction,
            "max_steps": info.max_steps,
            "seed": info.seed,
            **info.details,
        }
        formats = self._codec.formats(info.sensors)
        reset = wire.ResetEpisode(session_id=self._session_id, episode=episode, observation_format=formats)
        frames = [self._encoded(reset)]
        if self._hello is not None and not self._is_hello_answered:
            frames.insert(0, self._encoded(self._own_hello(info)))
        for frame in frames:
            self.connection.send(frame, deadline_s)
        self._is_hello_answered = self._hello is not None

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Send `get_action` and return the action of the reply."""
        self._read_early()
        self._requests += 1
        seen = {"instruction": self._instruction, **named_scans(observation)}
        request = wire.GetAction(session_id=self._session_id, request_id=self._requests, observation=seen)
        frame = self._encoded(request)
        try:
            reply = self._codec.read_agent(self.connection.exchange(frame, deadline_s))
        except AgentFault as fault:
            if fault.kind != WireFault.ACTION_TIMEOUT or self._requests > 1 or self._hello is not None:
                raise
            problem = f"{fault}; for a server of XPolicyLab, which ignores what it cannot read, {NAME_IT}"
            raise AgentFault(fault.kind, problem) from None
        if isinstance(reply, wire.Hello) and self._hello is None:
            self._accept_early(reply)
            reply = self._codec.read_agent(self.connection.receive(deadline_s))
        return self._action_of(reply)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send `episode_end`."""
        message = wire.EpisodeEnd(
            session_id=self._session_id,
            status=outcome.status,
            metrics={**dict.fromkeys(outcome.expected_metrics), **outcome.metrics},
            num_steps=outcome.num_steps,
        )
        self.connection.send(self._encoded(message), deadline_s)

    def _encoded(self, message: wire.FromEvaluator) -> str | bytes:
        with encoding():
            return self._codec.encode(message)

    def _own_hello(self, info: EpisodeInfo) -> wire.Hello:
        return wire.Hello(
            protocol="proctor",
            version=wire.VERSION,
            name=f"proctor {__version__}",
            session_id=self._session_id,
            task=info.task,
            sensors=info.sensors,
            actions=list(info.actions),
        )

    def _read_early(self) -> None:
        """Read what has arrived already. If the agent closed, it says why better than the close code does."""
        early = self.connection.pending()
        if early is not None:
            self._accept_early(self._codec.read_agent(early))

    def _accept_early(self, message: wire.FromAgent) -> None:
        """Accept a hello that comes late; refuse what else was not asked for."""
        if isinstance(message, wire.ErrorMessage):
            raise _reported_fault(message)
        if not isinstance(message, wire.Hello) or self._hello is not None:
            what = "a second hello" if isinstance(message, wire.Hello) else "an action"
            raise AgentFault(WireFault.UNASKED, f"the agent sent {what} that it had not been asked for")
        check_version(message, "agent")
        self._hello = message

    def _action_of(self, reply: wire.FromAgent) -> Any:
        if isinstance(reply, wire.ErrorMessage):
            raise _reported_fault(reply)
        if not isinstance(reply, wire.ActionReply):
            raise AgentFault(WireFault.WRONG_MESSAGE, "expected a message of type 'action', found 'hello'")
        if reply.session_id not in ("", self._session_id):
            raise AgentFault(WireFault.WRONG_SESSION, "the reply bears another session's id")
        knows_ids = self._hello is not None and self._hello.request_ids
        if reply.request_id not in ((self._requests,) if knows_ids else (self._requests, None)):
            problem = f"expected a reply to request {self._requests}, found one to {reply.request_id}"
            raise AgentFault(WireFault.STALE_REPLY, problem)
        return reply.action


def _not_hello(handshake: Handshake, error: BadFrame) -> str:
    if not handshake.has_field("type", "hello"):
        return handshake.describe()
    if isinstance(handshake.first_frame, bytes) and handshake.subprotocol != MSGPACK:
        return f"the agent's hello is binary, for which the server must choose the subprotocol {MSGPACK}"
    return f"the agent's hello cannot be read: {error}"


def _reported_fault(message: wire.ErrorMessage) -> AgentFault:
    if message.kind in UNAVAILABLE_KINDS:
        return AgentUnavailable(f"{message.kind}: {message.message}", kind=WireFault.UNAVAILABLE)
    return AgentFault(WireFault.AGENT_ERROR, f"{message.kind}: {message.message}")
