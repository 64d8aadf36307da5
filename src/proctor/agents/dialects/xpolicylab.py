"""The protocol of XPolicyLab's WebSocket policy servers, which evaluate RoboDojo.

The client speaks first, and every request gets one reply that bears its `message_id`. The server ignores what
it cannot read, and shows nothing of itself before it is asked: users name this dialect.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import encoding
from proctor.agents.dialects.mapping import Mapping, RowDialect
from proctor.agents.dialects.packed_arrays import as_numbers, msgpack_numpy_array, read_value, unpack
from proctor.agents.handshake import Handshake, last_line, one_line
from proctor.agents.messages import WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import Array, EpisodeInfo, Observation, Outcome

SINGLE_ARM = ("arm_joint_state", "ee_pose", "ee_joint_state")
"""The parts of an action of a robot with one arm, in the order in which a row has them."""


REPLIES = {
    "hello": "hello_ack",
    "reset": "reset_result",
    "infer": "infer_result",
    "trial_end": "trial_end_ack",
}


class XPolicyReply(msgspec.Struct, frozen=True):
    """A message from the server; its payload is not decoded yet."""

    message_type: str
    message_id: str
    payload: msgspec.Raw = msgspec.Raw(b"\x80")


class XPolicyLabDialect(RowDialect):
    """A policy server of XPolicyLab."""

    name = "xpolicylab"
    first_speaker = "evaluator"
    write_array = msgpack_numpy_array

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._evaluation_id = str(uuid.uuid4())
        self._trial_id: str | None = None
        self._step = 0

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        del handshake
        try:
            self._request("hello", {}, deadline_s)
        except AgentFault as fault:
            if fault.kind not in (WireFault.WRONG_FRAME, WireFault.WRONG_MESSAGE, WireFault.MALFORMED):
                raise
            problem = f"the agent does not answer as an XPolicyLab server does: {fault}"
            raise AgentFault(WireFault.MISMATCH, problem) from None

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `reset`."""
        super().begin(info, deadline_s)
        self._trial_id, self._step = info.episode_id, 0
        self._request("reset", {"trial_id": info.episode_id}, deadline_s)

    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        with encoding():
            seen = _with_vectors(self._translator.payload(observation))
        payload = self._request("infer", {"observation": seen}, deadline_s)
        self._step += 1
        return self._translator.first_of_rows(_rows(self._translator.entry_of(payload)))

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send `trial_end`."""
        result = {"status": outcome.status, "metrics": outcome.metrics, "steps": outcome.num_steps}
        self._request("trial_end", {"trial_id": self._trial_id, **result}, deadline_s)

    def _request(self, type_: str, payload: dict[str, Any], deadline_s: float) -> dict[Any, Any]:
        """Send a message, wait for the reply to it, and return its payload."""
        message_id = str(uuid.uuid4())
        message = {
            "message_type": type_,
            "message_id": message_id,
            "evaluation_id": self._evaluation_id,
            "action_case_id": None,
            "trial_id": self._trial_id,
            "repeat_index": None,
            "step": self._step,
            "sent_at": datetime.now(UTC).isoformat(),
            "payload": payload,
        }
        reply = unpack(self._exchange(message, deadline_s), XPolicyReply, "a message of XPolicyLab")
        if reply.message_id != message_id:
            problem = f"expected a reply to the last '{type_}', found one to another message"
            raise AgentFault(WireFault.STALE_REPLY, problem)
        return _payload(reply, REPLIES[type_])


def _payload(reply: XPolicyReply, expected_type: str) -> dict[Any, Any]:
    payload = read_value(reply.payload)
    if payload is None:
        payload = {}
    if not isinstance(payload, dict):
        found = type(payload).__name__
        raise AgentFault(WireFault.WRONG_MESSAGE, f"expected a map as payload, found {found}")
    if reply.message_type == "error":
        said = last_line(str(payload.get("message", "")))
        raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {said}")
    if reply.message_type != expected_type:
        found = one_line(reply.message_type)
        problem = f"expected a message of type '{expected_type}', found '{found}'"
        raise AgentFault(WireFault.WRONG_MESSAGE, problem)
    return payload


def _with_vectors(seen: dict[str, Any]) -> dict[str, Any]:
    """Return an observation whose single numbers are arrays of one, as all states are there."""
    return {
        key: _with_vectors(value)
        if isinstance(value, dict)
        else np.atleast_1d(value)
        if isinstance(value, float)
        else value
        for key, value in seen.items()
    }


def _rows(actions: Any) -> Array:
    """Return a chunk as rows of numbers. XPolicyLab's own models send a list of maps."""
    if isinstance(actions, dict):
        actions = [actions]
    if not (isinstance(actions, list) and actions and all(isinstance(row, dict) for row in actions)):
        return as_numbers(actions)
    for row in actions:
        if not row or not row.keys() <= set(SINGLE_ARM):
            found = one_line(", ".join(sorted(map(str, row))) or "nothing")
            problem = f"expected an action of one arm, {', '.join(SINGLE_ARM)}; found {found}"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
    rows = [
        np.concatenate([np.ravel(as_numbers(row[key])) for key in SINGLE_ARM if key in row])
        for row in actions
    ]
    return as_numbers(rows)
