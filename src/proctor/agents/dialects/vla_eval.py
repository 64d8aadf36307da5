"""The language of vla-eval's model servers, protocol version 1.

The client speaks first. Every message is an envelope; observations get a reply that bears their `seq`, the
beginning and the end of an episode get none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from proctor import __version__
from proctor.agents.connection import Connection
from proctor.agents.dialects.interpreter import Interpreter
from proctor.agents.dialects.mapping import Mapping
from proctor.agents.dialects.packed_arrays import vla_eval_encoder
from proctor.agents.faults import WireFault
from proctor.agents.handshake import last_line, one_line
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome

VERSION = 1


class Envelope(msgspec.Struct, frozen=True):
    """A message from the server; its payload is not unpacked yet."""

    type: str
    payload: dict[str, msgspec.Raw]
    seq: int


class VlaEvalDialect:
    """A conversation with a model server of vla-eval.

    Args:
        connection: The line to it.
        mapping: The user's, if any.
    """

    name = "vla-eval"

    def __init__(self, connection: Connection, mapping: Mapping | None) -> None:
        self._connection = connection
        self._interpreter = Interpreter("vla-eval", mapping)
        self._encoder = vla_eval_encoder()
        self._seq = 0

    def greet(self, deadline_s: float) -> None:
        """Exchange hellos, before anything else.

        Raises:
            AgentFault: The server does not answer, or speaks something else or another version.
        """
        hello = {"harness_version": f"proctor {__version__}", "protocol_version": VERSION}
        reply = _read(self._connection.exchange(self._message("hello", hello), deadline_s))
        if reply.type != "hello":
            problem = f"expected a vla-eval server to answer hello with hello, found '{one_line(reply.type)}'"
            raise AgentFault(WireFault.MISMATCH, problem)
        version = _plain(reply, "protocol_version")
        if version != VERSION:
            problem = f"the server speaks version {one_line(str(version))} of vla-eval's protocol"
            raise AgentFault(
                WireFault.MISMATCH,
                f"{problem}, Proctor version {VERSION}; serve it with a vla-eval of that version",
            )

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `episode_start`."""
        self._interpreter.begin(info)
        task = {
            "name": info.task,
            "episode_id": info.episode_id,
            "task_description": info.instruction,
            "max_steps": info.max_steps,
            "seed": info.seed,
        }
        self._connection.send(self._message("episode_start", {"task": task, "mode": "sync"}), deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next action of the last chunk, or send `observation` for a new one."""
        action = self._interpreter.waiting()
        if action is not None:
            return action
        message = self._message("observation", self._interpreter.payload(observation))
        reply = _read(self._connection.exchange(message, deadline_s))
        if reply.type == "error":
            problem = last_line(str(_plain(reply, "error")))
            raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {problem}")
        if reply.type != "action":
            problem = f"expected a message of type 'action', found '{one_line(reply.type)}'"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        if reply.seq != self._seq:
            problem = f"expected a reply to message {self._seq}, found one to {reply.seq}"
            raise AgentFault(WireFault.STALE_REPLY, problem)
        return self._interpreter.first_action(reply.payload)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send `episode_end`."""
        result = {"status": outcome.status, "metrics": outcome.metrics, "steps": outcome.num_steps}
        self._connection.send(self._message("episode_end", result), deadline_s)

    def _message(self, type_: str, payload: dict[str, Any]) -> bytes:
        self._seq += 1
        timestamp_s = datetime.now(UTC).timestamp()
        return self._encoder.encode(
            {"type": type_, "payload": payload, "seq": self._seq, "timestamp": timestamp_s}
        )


def _read(frame: str | bytes) -> Envelope:
    if isinstance(frame, str):
        raise AgentFault(WireFault.WRONG_FRAME, f"expected a binary frame, found text: {last_line(frame)}")
    try:
        return msgspec.msgpack.decode(frame, type=Envelope)
    except msgspec.ValidationError as error:
        raise AgentFault(WireFault.WRONG_MESSAGE, f"no message of vla-eval: {error}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AgentFault(WireFault.MALFORMED, f"no msgpack: {error}") from None
    except RecursionError:
        raise AgentFault(WireFault.TOO_DEEP, "maps inside of each other without end") from None


def _plain(message: Envelope, key: str) -> int | str | None:
    """Return a number or a text of a payload, None if there is neither."""
    try:
        return msgspec.msgpack.decode(message.payload.get(key, b"\xc0"), type=int | str | None)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
