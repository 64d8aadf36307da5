"""The protocol of vla-eval's model servers, version 1.

The client speaks first. Every message is an envelope; observations get a reply that bears their `seq`, the
beginning and the end of an episode get none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from proctor import __version__
from proctor.agents.dialects.dialect import encoding
from proctor.agents.dialects.mapping import RowDialect
from proctor.agents.dialects.packed_arrays import unpack, vla_eval_array
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


class VlaEvalDialect(RowDialect):
    """A model server of vla-eval."""

    name = "vla-eval"
    first_speaker = "evaluator"
    write_array = vla_eval_array
    _seq = 0

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

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        del handshake
        hello = {"harness_version": f"proctor {__version__}", "protocol_version": VERSION}
        try:
            reply = self._request("hello", hello, deadline_s)
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

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `episode_start`."""
        super().begin(info, deadline_s)
        task = {
            "name": info.task,
            "episode_id": info.episode_id,
            "task_description": info.instruction,
            "max_steps": info.max_steps,
            "seed": info.seed,
        }
        self._send("episode_start", {"task": task, "mode": "sync"}, deadline_s)

    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        with encoding():
            payload = self._translator.payload(observation)
        reply = self._request("observation", payload, deadline_s)
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
        self._send("episode_end", result, deadline_s)

    def _envelope(self, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return a message with the next `seq`."""
        self._seq += 1
        timestamp_s = datetime.now(UTC).timestamp()
        return {"type": type_, "payload": payload, "seq": self._seq, "timestamp": timestamp_s}

    def _send(self, type_: str, payload: dict[str, Any], deadline_s: float) -> None:
        self.connection.send(self._encoded(self._envelope(type_, payload)), deadline_s)

    def _request(self, type_: str, payload: dict[str, Any], deadline_s: float) -> Envelope:
        found = self._exchange(self._envelope(type_, payload), deadline_s)
        return unpack(found, Envelope, "a message of vla-eval")


def _plain(message: Envelope, key: str) -> int | str | None:
    """Return a number or a text of a payload, None if there is neither."""
    try:
        return msgspec.msgpack.decode(message.payload.get(key, b"\xc0"), type=int | str | None)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
