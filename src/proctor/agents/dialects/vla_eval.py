"""The protocol of vla-eval's model servers, version 1.

The client speaks first. Every message is an envelope; observations get a reply that bears their `seq`, the
beginning and the end of an episode get none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from proctor import __version__
from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.dialects.mapping import Mapping, RowTranslator
from proctor.agents.dialects.packed_arrays import unpack, vla_eval_encoder
from proctor.agents.handshake import Handshake, last_line, one_line
from proctor.agents.messages import WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome

VERSION = 1


class Envelope(msgspec.Struct, frozen=True):
    """A message from the server; its payload is not decoded yet."""

    type: str
    payload: dict[str, msgspec.Raw]
    seq: int


class ConfigPage(msgspec.Struct):
    """What a server's page `/config` holds."""

    config: dict[str, Any]
    applied: dict[str, Any]


class VlaEvalDialect(Dialect):
    """A model server of vla-eval."""

    name = "vla-eval"
    first_speaker = "evaluator"

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._translator = RowTranslator(self.name, mapping)
        self._encoder = vla_eval_encoder()
        self._seq = 0

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether a server that waits for us has vla-eval's page `/config`."""
        if handshake.first_frame is not None or handshake.subprotocol is not None:
            return False
        try:
            msgspec.json.decode(handshake.page("config") or b"", type=ConfigPage)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return True

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Exchange hellos and compare versions."""
        dialect = super().open(connection, handshake, mapping, deadline_s)
        hello = {"harness_version": f"proctor {__version__}", "protocol_version": VERSION}
        try:
            reply = _read(connection.exchange(dialect.encoded("hello", hello), deadline_s))
        except AgentFault as fault:
            if fault.kind not in (WireFault.WRONG_FRAME, WireFault.WRONG_MESSAGE, WireFault.MALFORMED):
                raise
            problem = f"the agent does not answer as a vla-eval server does: {fault}"
            raise AgentFault(WireFault.MISMATCH, problem) from None
        if reply.type != "hello":
            problem = f"expected a vla-eval server to answer hello with hello, found '{one_line(reply.type)}'"
            raise AgentFault(WireFault.MISMATCH, problem)
        version = _plain(reply, "protocol_version")
        if version != VERSION:
            problem = f"the server speaks version {one_line(str(version))} of vla-eval's protocol"
            remedy = f"Proctor version {VERSION}; serve it with a vla-eval of that version"
            raise AgentFault(WireFault.MISMATCH, f"{problem}, {remedy}")
        return dialect

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `episode_start`."""
        self._translator.begin(info)
        task = {
            "name": info.task,
            "episode_id": info.episode_id,
            "task_description": info.instruction,
            "max_steps": info.max_steps,
            "seed": info.seed,
        }
        self.connection.send(self.encoded("episode_start", {"task": task, "mode": "sync"}), deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next answer of the last chunk, or send `observation` for a new one."""
        answer = self._translator.queued_answer()
        if answer is not None:
            return answer
        with encoding():
            payload = self._translator.payload(observation)
        reply = _read(self.connection.exchange(self.encoded("observation", payload), deadline_s))
        if reply.type == "error":
            problem = last_line(str(_plain(reply, "error")))
            raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {problem}")
        if reply.type != "action":
            problem = f"expected a message of type 'action', found '{one_line(reply.type)}'"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        if reply.seq != self._seq:
            problem = f"expected a reply to message {self._seq}, found one to {reply.seq}"
            raise AgentFault(WireFault.STALE_REPLY, problem)
        return self._translator.first_answer(reply.payload)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send `episode_end`."""
        result = {"status": outcome.status, "metrics": outcome.metrics, "steps": outcome.num_steps}
        self.connection.send(self.encoded("episode_end", result), deadline_s)

    def encoded(self, type_: str, payload: dict[str, Any]) -> bytes:
        """Return a message with the next `seq`."""
        self._seq += 1
        timestamp_s = datetime.now(UTC).timestamp()
        with encoding():
            return self._encoder.encode(
                {"type": type_, "payload": payload, "seq": self._seq, "timestamp": timestamp_s}
            )


def _read(frame: str | bytes) -> Envelope:
    if isinstance(frame, str):
        raise AgentFault(WireFault.WRONG_FRAME, f"expected a binary frame, found text: {last_line(frame)}")
    return unpack(frame, Envelope, "a message of vla-eval")


def _plain(message: Envelope, key: str) -> int | str | None:
    """Return a number or a text of a payload, None if there is neither."""
    try:
        return msgspec.msgpack.decode(message.payload.get(key, b"\xc0"), type=int | str | None)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
