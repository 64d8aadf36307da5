"""The protocol of VLN-CE-Docker's policy servers, version 1.1.

The server speaks first and says what it wants to see; the client agrees, the server confirms. An observation
gets one action, the last one of an episode (`done`) gets none.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import Dialect, encoding
from proctor.agents.dialects.mapping import Mapping, RowTranslator
from proctor.agents.dialects.packed_arrays import as_numbers, msgpack_numpy_encoder, read_value, unpack
from proctor.agents.handshake import Handshake, last_line, one_line
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


class VlnCeDockerDialect(Dialect):
    """A policy server of VLN-CE-Docker that shows one picture and takes one action at a time."""

    name = "vln-ce-docker"
    first_speaker = "agent"

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._translator = RowTranslator(self.name, mapping)
        self._encoder = msgpack_numpy_encoder()
        self._sizes = Capabilities().sizes()
        self._episode: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._step = 0

    @classmethod
    def recognises(cls, handshake: Handshake) -> bool:
        """Return whether the first frame is a server_hello."""
        return handshake.known_protocol == cls.name

    @classmethod
    def open(
        cls, connection: Connection, handshake: Handshake, mapping: Mapping | None, deadline_s: float
    ) -> Self:
        """Read what the server can do, and agree to it."""
        if not isinstance(handshake.first_frame, bytes) or not cls.recognises(handshake):
            problem = f"the agent does not speak {cls.name}: {handshake.describe()}"
            raise AgentFault(WireFault.MISMATCH, problem)
        dialect = super().open(connection, handshake, mapping, deadline_s)
        try:
            hello = unpack(handshake.first_frame, ServerHello, "a server_hello")
            dialect.agree(hello, deadline_s)
        except (BadFrame, ValueError) as error:
            raise AgentFault(WireFault.MISMATCH, f"the server's handshake: {error}") from None
        return dialect

    def agree(self, hello: ServerHello, deadline_s: float) -> None:
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
        frame = self._encoded("client_hello", {**ours, "compatible": True})
        reply = _read(self.connection.exchange(frame, deadline_s))
        if reply.get("type") != "handshake_complete" or reply.get("status") != "ok":
            said = one_line(str(reply.get("message") or reply.get("type")))
            raise AgentFault(WireFault.MISMATCH, f"the server did not complete the handshake: {said}")

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `episode_start`."""
        defaults = info.dialects
        if (sent := defaults.observations.get(self.name)) is not None:
            sent = msgspec.structs.replace(sent, resize=self._sizes)
            sizes = {**defaults.observations, self.name: sent}
            defaults = msgspec.structs.replace(defaults, observations=sizes)
        self._translator.begin(msgspec.structs.replace(info, dialects=defaults))
        instruction = {"text": info.instruction, "tokens": None, "trajectory_id": ""}
        self._episode = {"episode_id": info.episode_id, "instruction": instruction}
        self._last, self._step = {}, 0
        self.connection.send(self._encoded("episode_start", self._episode), deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Send `observation` and return the action of the reply."""
        with encoding():
            seen = self._translator.payload(observation)
            self._last = {
                key: _depth(value) if isinstance(value, np.ndarray) and value.dtype == np.uint16 else value
                for key, value in seen.items()
            }
        reply = _read(self.connection.exchange(self._observation(is_done=False), deadline_s))
        self._step += 1
        if reply.get("type") != "action":
            problem = f"expected a message of type 'action', found '{one_line(str(reply.get('type')))}'"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        return self._translator.first_of_rows(as_numbers(_discrete(reply.get("action"))))

    def end(self, outcome: Outcome, deadline_s: float) -> None:
        """Send the last observation once more, as the end of the episode."""
        del outcome
        if self._last:
            self.connection.send(self._observation(is_done=True), deadline_s)

    def _observation(self, *, is_done: bool) -> bytes:
        message = {**self._episode, **self._last, "step": self._step, "done": is_done}
        return self._encoded("observation", message)

    def _encoded(self, type_: str, message: dict[str, Any]) -> bytes:
        with encoding():
            return self._encoder.encode({"type": type_, **message})


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


def _read(frame: str | bytes) -> dict[Any, Any]:
    if isinstance(frame, str):
        raise AgentFault(WireFault.WRONG_FRAME, f"expected a binary frame, found text: {last_line(frame)}")
    message = read_value(frame)
    if not isinstance(message, dict):
        raise BadFrame(WireFault.WRONG_MESSAGE, f"expected a map, found {type(message).__name__}")
    return message
