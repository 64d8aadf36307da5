"""The protocol of openpi's policy server.

The server speaks first: one binary frame of metadata. From then on every observation gets one reply. There
are no episodes and no ids; a text frame is the traceback of an error, after which the server closes.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.dialects.mapping import Mapping, RowTranslator
from proctor.agents.dialects.packed_arrays import openpi_encoder, unpack
from proctor.agents.handshake import Handshake, last_line
from proctor.agents.messages import MSGPACK, WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome


class OpenPiDialect(Dialect):
    """A policy server of openpi, whose metadata was read already."""

    name = "openpi"
    authorization_scheme = "Api-Key"  # as openpi's own client has it
    first_speaker = "agent"

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._translator = RowTranslator(self.name, mapping)
        self.encoder = openpi_encoder()

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the first frame is a binary map that is not another protocol's."""
        is_map = isinstance(handshake.first_frame, bytes) and handshake.fields is not None
        is_other = handshake.has_field("type", "hello") or handshake.known_protocol is not None
        return is_map and not is_other and handshake.subprotocol != MSGPACK

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Check that metadata came."""
        if handshake.first_frame is None:
            problem = f"{handshake.address.url} sent no metadata in time: servers of {cls.name} speak first"
            raise AgentFault(WireFault.MISMATCH, problem)
        if not cls.recognises(handshake):
            raise AgentFault(
                WireFault.MISMATCH, f"the agent does not speak {cls.name}: {handshake.describe()}"
            )
        return super().open(connection, handshake, mapping, deadline_s)

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Keep the instruction: the server does not know of episodes."""
        del deadline_s
        self._translator.begin(info)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next answer of the last chunk, or send the observation for a new one."""
        answer = self._translator.queued_answer()
        if answer is not None:
            return answer
        early = self.connection.pending()
        if early is not None:
            _read(early)  # it may be an error
            raise AgentFault(WireFault.UNASKED, "the server sent a reply that it had not been asked for")
        with encoding():
            frame = self.encoder.encode(self.payload(observation))
        return self._translator.first_answer(_read(self.connection.exchange(frame, deadline_s)))

    def payload(self, observation: Observation) -> dict[str, Any]:
        """Return what is sent for an action."""
        return self._translator.payload(observation)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Do nothing: the server does not know of episodes."""


def _read(frame: str | bytes) -> dict[str, msgspec.Raw]:
    if isinstance(frame, str):
        raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {last_line(frame)}")
    return unpack(frame, dict[str, msgspec.Raw], "a map with 'actions' in it")
