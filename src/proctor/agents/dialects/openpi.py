"""The language of openpi's policy server.

The server speaks first: one binary frame of metadata. From then on every observation gets one reply. There
are no episodes and no ids; a text frame is the traceback of an error, after which the server closes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proctor.agents.connection import Connection
from proctor.agents.dialects.interpreter import Interpreter
from proctor.agents.dialects.mapping import Mapping
from proctor.agents.dialects.packed_arrays import openpi_encoder
from proctor.agents.faults import WireFault
from proctor.agents.handshake import last_line
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome

REPLY = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


class OpenPiDialect:
    """A conversation with a policy server of openpi.

    Args:
        connection: The line to it, its metadata read already.
        mapping: The user's, if any.
    """

    name = "openpi"

    def __init__(self, connection: Connection, mapping: Mapping | None) -> None:
        self._connection = connection
        self._interpreter = Interpreter("openpi", mapping)
        self._encoder = openpi_encoder()

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Take note of it: the server does not know of episodes."""
        del deadline_s
        self._interpreter.begin(info)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next action of the last chunk, or send the observation for a new one."""
        action = self._interpreter.waiting()
        if action is not None:
            return action
        early = self._connection.pending()
        if early is not None:
            _read(early)  # it may be an error
            raise AgentFault(WireFault.UNASKED, "the server sent a reply that it had not been asked for")
        frame = self._encoder.encode(self._interpreter.payload(observation))
        return self._interpreter.first_action(_read(self._connection.exchange(frame, deadline_s)))

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Do nothing: the server does not know of episodes."""


def _read(frame: str | bytes) -> dict[str, msgspec.Raw]:
    if isinstance(frame, str):
        raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {last_line(frame)}")
    try:
        return REPLY.decode(frame)
    except msgspec.ValidationError as error:
        raise AgentFault(WireFault.WRONG_MESSAGE, f"expected a map with 'actions' in it: {error}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise AgentFault(WireFault.MALFORMED, f"no msgpack: {error}") from None
    except RecursionError:
        raise AgentFault(WireFault.TOO_DEEP, "maps inside of each other without end") from None
