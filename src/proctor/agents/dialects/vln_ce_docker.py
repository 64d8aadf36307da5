"""The protocol of VLN-CE-Docker's policy servers, version 1.1.

The server speaks first and says what it wants to see; the client agrees, the server confirms. An observation
gets one action, the last one of an episode (`done`) gets none.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import encoding
from proctor.agents.dialects.mapping import Mapping, RowDialect
from proctor.agents.dialects.packed_arrays import as_numbers, msgpack_numpy_array, read_value, unpack
from proctor.agents.handshake import Handshake, one_line
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.errors import AgentFault
from proctor.core.types import EpisodeInfo, Observation, Outcome

VERSION = "1.1"
MAX_DEPTH_MM = 10_000  # Habitat gives depths as parts of 10 m; the protocol's document says metres
NAMED_ACTIONS = {"STOP": 0}


class Capabilities(msgspec.Struct, frozen=True):
    """What a server wants to see and what it answers."""

    observation_mode: str = "egocentric"
    action_type: str = "discrete"
    rgb_shape: tuple[int, ...] = (256, 256, 3)
    depth_shape: tuple[int, ...] = (256, 256, 1)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Return the height and width of each picture, or raise ValueError."""
        shapes = {"rgb": self.rgb_shape, "depth": self.depth_shape}
        for name, shape in shapes.items():
            if len(shape) != 3 or not all(1 <= size <= 4096 for size in shape[:2]):
                raise ValueError(
                    f"expected {name}_shape to be [height, width, channels], found {shape!s:.60}"
                )
        return {name: (shape[0], shape[1]) for name, shape in shapes.items()}


class ServerHello(msgspec.Struct, frozen=True):
    """The server's first frame."""

    capabilities: Capabilities = Capabilities()
    protocol_version: str = "1.0"


class VlnCeDockerDialect(RowDialect):
    """A policy server of VLN-CE-Docker that shows one picture and takes one action at a time."""

    name = "vln-ce-docker"
    first_speaker = "agent"
    write_array = msgpack_numpy_array

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._sizes = Capabilities().sizes()
        self._episode: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._step = 0

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the first frame is a server_hello."""
        return handshake.known_protocol == cls.name

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        if not isinstance(handshake.first_frame, bytes) or not self.recognises(handshake):
            problem = f"the agent does not speak {self.name}: {handshake.describe()}"
            raise AgentFault(WireFault.MISMATCH, problem)
        try:
            self._agree(unpack(handshake.first_frame, ServerHello, "a server_hello"), deadline_s)
        except (BadFrame, ValueError) as error:
            raise AgentFault(WireFault.MISMATCH, f"the server's handshake: {error}") from None

    def _agree(self, hello: ServerHello, deadline_s: float) -> None:
        """Answer the server's hello and wait for its confirmation."""
        wants = hello.capabilities
        self._sizes = wants.sizes()
        if (wants.observation_mode, wants.action_type) != ("egocentric", "discrete"):
            found = f"{one_line(wants.observation_mode)} pictures and {one_line(wants.action_type)} actions"
            remedy = "serve one with egocentric pictures and discrete actions, such as cma or seq2seq"
            raise AgentFault(WireFault.MISMATCH, f"the server's model works with {found}; {remedy}")
        if hello.protocol_version != VERSION:
            found = f"version {one_line(hello.protocol_version)} of its protocol, Proctor {VERSION}"
            raise AgentFault(WireFault.MISMATCH, f"the server speaks {found}; update it")
        configuration = {"observation_mode": "egocentric", "num_panos": None}
        ours = {"protocol_version": VERSION, "client_type": "proctor", "configuration": configuration}
        reply = self._request({"type": "client_hello", **ours, "compatible": True}, deadline_s)
        if reply.get("type") != "handshake_complete" or reply.get("status") != "ok":
            said = one_line(str(reply.get("message") or reply.get("type")))
            raise AgentFault(WireFault.MISMATCH, f"the server did not complete the handshake: {said}")

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `episode_start`."""
        super().begin(self._resized(info, self._sizes), deadline_s)
        instruction = {"text": info.instruction, "tokens": None, "trajectory_id": ""}
        self._episode = {"episode_id": info.episode_id, "instruction": instruction}
        self._last, self._step = {}, 0
        self.connection.send(self._encoded({"type": "episode_start", **self._episode}), deadline_s)

    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        with encoding():
            seen = self._translator.payload(observation)
            self._last = {
                key: _depth(value) if isinstance(value, np.ndarray) and value.dtype == np.uint16 else value
                for key, value in seen.items()
            }
        reply = self._request(self._observation(is_done=False), deadline_s)
        self._step += 1
        if reply.get("type") != "action":
            problem = f"expected a message of type 'action', found '{one_line(str(reply.get('type')))}'"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        return self._translator.first_of_rows(as_numbers(_discrete(reply.get("action"))))

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send the last observation once more, as the end of the episode."""
        del outcome
        if self._last:
            self.connection.send(self._encoded(self._observation(is_done=True)), deadline_s)

    def _observation(self, *, is_done: bool) -> dict[str, Any]:
        seen = {**self._episode, **self._last}
        return {"type": "observation", **seen, "step": self._step, "done": is_done}

    def _request(self, message: dict[str, Any], deadline_s: float) -> dict[Any, Any]:
        reply = read_value(self._exchange(message, deadline_s))
        if not isinstance(reply, dict):
            raise BadFrame(WireFault.WRONG_MESSAGE, f"expected a map, found {type(reply).__name__}")
        return reply


def _depth(millimetres: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return depths as Habitat gives them: float32 (H, W, 1), parts of 10 m."""
    return (np.minimum(millimetres, MAX_DEPTH_MM) / MAX_DEPTH_MM).astype(np.float32)[..., None]


def _discrete(action: Any) -> Any:
    """Return the number of an action that comes by name; a number as it is."""
    if not isinstance(action, dict):
        return action
    name = str(action.get("action"))
    if name not in NAMED_ACTIONS:
        problem = f"expected the number of an action, found '{one_line(name)}'"
        raise AgentFault(WireFault.WRONG_MESSAGE, f"{problem}; the server promised discrete actions")
    return NAMED_ACTIONS[name]
