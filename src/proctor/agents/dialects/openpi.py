"""The protocol of openpi's policy server.

The server speaks first: one binary frame of metadata. From then on every observation gets one reply. There
are no episodes and no ids; a text frame is the traceback of an error, after which the server closes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.agents.dialects.dialect import encoding
from proctor.agents.dialects.mapping import RowDialect
from proctor.agents.dialects.packed_arrays import openpi_array, unpack
from proctor.agents.handshake import Handshake, last_line
from proctor.agents.messages import MSGPACK, WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import Observation


class OpenPiDialect(RowDialect):
    """A policy server of openpi, whose metadata was read already."""

    name = "openpi"
    authorization_scheme = "Api-Key"  # as openpi's own client has it
    first_speaker = "agent"
    write_array = openpi_array

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the first frame is a binary map that is not another protocol's."""
        is_map = isinstance(handshake.first_frame, bytes) and handshake.fields is not None
        is_other = handshake.has_field("type", "hello") or handshake.known_protocol is not None
        return is_map and not is_other and handshake.subprotocol != MSGPACK

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        del deadline_s
        if handshake.first_frame is None:
            problem = f"{handshake.address.url} sent no metadata in time: servers of {self.name} speak first"
            raise AgentFault(WireFault.MISMATCH, problem)
        if not self.recognises(handshake):
            problem = f"the agent does not speak {self.name}: {handshake.describe()}"
            raise AgentFault(WireFault.MISMATCH, problem)

    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        early = self.connection.pending()
        if early is not None:
            _read(early)  # it may be an error
            raise AgentFault(WireFault.UNASKED, "the server sent a reply that it had not been asked for")
        with encoding():
            frame = self._encoder.encode(self._payload(observation))
        return self._translator.first_answer(_read(self.connection.exchange(frame, deadline_s)))

    def _payload(self, observation: Observation) -> dict[str, Any]:
        return self._translator.payload(observation)


def _read(frame: str | bytes) -> dict[str, msgspec.Raw]:
    if isinstance(frame, str):
        raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {last_line(frame)}")
    return unpack(frame, dict[str, msgspec.Raw], "a map with 'actions' in it")
