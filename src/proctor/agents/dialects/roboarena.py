"""The protocol of RoboArena's policy servers: openpi's, with a configuration first and episodes.

The server's first frame says what it wants to see. Every request names an `endpoint`; the reply to `reset` is
a text, which in openpi would be an error.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from proctor.agents.connection import Connection
from proctor.agents.dialects.mapping import Mapping
from proctor.agents.dialects.openpi import OpenPiDialect
from proctor.agents.dialects.packed_arrays import unpack
from proctor.agents.handshake import Handshake, last_line, one_line
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome

RESET_REPLY = "reset successful"


class ServerConfig(msgspec.Struct, frozen=True):
    """What a server says first. Its other wishes are met by a mapping file."""

    action_space: str = "joint_position"
    image_resolution: tuple[int, int] | None = (224, 224)  # height, width
    needs_session_id: bool = False


class RoboArenaDialect(OpenPiDialect):
    """A policy server of RoboArena, whose configuration was read already."""

    name = "roboarena"

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self.config = ServerConfig()
        self._session_id = ""
        self._is_reset = False

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the first frame is RoboArena's configuration."""
        return isinstance(handshake.first_frame, bytes) and handshake.known_protocol == cls.name

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        super()._shake_hands(handshake, deadline_s)
        try:
            self.config = unpack(bytes(handshake.first_frame or b""), ServerConfig, "a configuration")  # type: ignore[arg-type]
        except BadFrame as error:
            raise AgentFault(WireFault.MISMATCH, f"the server's first frame: {error}") from None

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Check the server's action space. The first episode on a connection begins with a reset."""
        super().begin(self._adapted(info), deadline_s)
        self._session_id = info.episode_id
        if not self._is_reset and not self.config.needs_session_id:
            self._reset(deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Return the next answer of the last chunk, or send the observation for a new one."""
        self._is_reset = False
        return super().ask(observation, deadline_s)

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Let the server forget the episode."""
        del outcome
        self._reset(deadline_s)

    def _payload(self, observation: Observation) -> dict[str, Any]:
        found = super()._payload(observation)
        numbers = {key: np.atleast_1d(value) for key, value in found.items() if isinstance(value, float)}
        return {**found, **numbers, "endpoint": "infer", "session_id": self._session_id}

    def _reset(self, deadline_s: float) -> None:
        message = {"endpoint": "reset", "session_id": self._session_id}
        reply = self.connection.exchange(self._encoded(message), deadline_s)
        if reply != RESET_REPLY:
            found = last_line(reply) if isinstance(reply, str) else f"{len(reply)} bytes"
            raise AgentFault(WireFault.AGENT_ERROR, f"the server did not reset: {found}")
        self._is_reset = True

    def _adapted(self, info: EpisodeInfo) -> EpisodeInfo:
        """Return an episode with the defaults that the server's configuration asks for."""
        defaults, space = info.dialects, self.config.action_space
        kinds, kind = defaults.action_kinds, defaults.default_kind
        if kind is None and (self.mapping is None or self.mapping.action.kind is None):
            if space not in kinds:
                problem = f"the server's actions are '{one_line(space)}', expected {' or '.join(kinds)}"
                hint = "'action.kind' in a mapping file says what they are; else convert them in the server"
                raise AgentFault(WireFault.MISMATCH, f"{problem}; {hint}")
            kind = space
        info = replace(info, dialects=replace(defaults, default_kind=kind))
        sent, size = defaults.observations.get(self.name), self.config.image_resolution
        return self._resized(info, dict.fromkeys(sent.resize, size) if sent and size else {})
