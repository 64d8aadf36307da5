"""The protocol of GR00T's inference server (N1.6 and later): requests and replies over ZeroMQ, in msgpack.

`get_modality_config` says which cameras, states and texts the model wants, how far back in time, and which
streams its actions have. Servers of before msgpack came reply with pickled tensors, which are refused.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import msgspec
import numpy as np

from proctor.agents.connection import Connection
from proctor.agents.dialects.dialect import encoding
from proctor.agents.dialects.mapping import Mapping, RowDialect
from proctor.agents.dialects.packed_arrays import as_numbers, gr00t_array, read_value
from proctor.agents.handshake import Handshake, last_line, one_line
from proctor.agents.messages import BadFrame, WireFault
from proctor.core.addresses import TOKEN_VARIABLE
from proctor.core.errors import AgentFault
from proctor.core.types import Array, EpisodeInfo, Observation

ALL_STREAMS = "actions"  # the default of `action.key`: all streams of an action, in the server's order
MAX_STEPS_BACK = 100
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"ERROR")
"""How replies of servers with torch.save begin, and their whole reply to what they cannot read."""


class Modality(msgspec.Struct, frozen=True):
    """What a model wants of one kind: the keys, and how many steps back each frame is (0, -1, ...)."""

    modality_keys: list[str]
    delta_indices: list[int]


class Gr00tDialect(RowDialect):
    """A policy server of GR00T, without its wrapper for simulators."""

    name = "gr00t"
    first_speaker = "evaluator"
    schemes: ClassVar[tuple[str, ...]] = ("gr00t+tcp",)
    write_array = gr00t_array

    def __init__(self, connection: Connection, mapping: Mapping | None = None) -> None:
        super().__init__(connection, mapping)
        self._token: str | None = None
        self._modalities: dict[str, Modality] = {}
        self._seen: deque[dict[str, Any]] = deque(maxlen=1)

    def _shake_hands(self, handshake: Handshake, deadline_s: float) -> None:
        self._token = handshake.address.token
        try:
            self._ask_modalities(deadline_s)
        except BadFrame as error:
            problem = f"{handshake.address.url} does not answer as a GR00T server of N1.6 or later: {error}"
            raise AgentFault(WireFault.MISMATCH, problem) from None

    def _ask_modalities(self, deadline_s: float) -> None:
        found = self._request("get_modality_config", None, deadline_s)
        if not isinstance(found, dict):
            raise BadFrame(WireFault.WRONG_MESSAGE, f"expected modalities, found {type(found).__name__}")
        self._modalities = {str(name): _modality(value) for name, value in found.items()}
        back = [delta for modality in self._modalities.values() for delta in modality.delta_indices]
        steps = 1 - min([0, *back])
        if steps > MAX_STEPS_BACK:
            problem = f"expected a model that looks back at most {MAX_STEPS_BACK} steps, found {steps}"
            raise BadFrame(WireFault.WRONG_MESSAGE, problem)
        self._seen = deque(maxlen=steps)

    def begin(self, info: EpisodeInfo, deadline_s: float) -> None:
        """Send `reset`."""
        super().begin(info, deadline_s)
        self._seen.clear()
        self._request("reset", {"options": None}, deadline_s)

    def ask(self, observation: Observation, deadline_s: float) -> Any:
        """Keep what is seen, also while a chunk is executed: the model may look back to it."""
        with encoding():
            self._seen.append(self._checked(self._translator.payload(observation)))
        return super().ask(observation, deadline_s)

    def _ask_server(self, observation: Observation, deadline_s: float) -> Any:
        with encoding():
            seen = {kind: self._frames(kind) for kind in self._seen[-1]}
        reply = self._request("get_action", {"observation": seen, "options": None}, deadline_s)
        streams = reply[0] if isinstance(reply, list) and reply else reply
        return self._translator.first_of_rows(self._rows(streams))

    def _request(self, endpoint: str, data: dict[str, Any] | None, deadline_s: float) -> Any:
        request: dict[str, Any] = {"endpoint": endpoint}
        if data is not None:
            request["data"] = data
        if self._token is not None:
            request["api_token"] = self._token
        found = self._exchange(request, deadline_s)
        if found.startswith(PICKLES):
            problem = "the server replies with pickled tensors, as GR00T did before it had msgpack"
            remedy = "serve the model with Isaac-GR00T N1.6 or later"
            raise BadFrame(WireFault.WRONG_MESSAGE, f"{problem}; {remedy}")
        reply = read_value(found)
        if isinstance(reply, dict) and "error" in reply:
            said = last_line(str(reply["error"]))
            if said.startswith("Unauthorized"):
                problem = f"the server wants a token, or another one ({said}): see {TOKEN_VARIABLE}"
                raise AgentFault(WireFault.MISMATCH, problem)
            if said.startswith("Unknown endpoint"):  # N1.5 has no reset, and takes observations otherwise
                problem = f"the server is older than GR00T N1.6 ({said}): update it"
                raise AgentFault(WireFault.MISMATCH, problem)
            raise AgentFault(WireFault.AGENT_ERROR, f"the server failed: {said}")
        return reply

    def _checked(self, seen: dict[str, Any]) -> dict[str, Any]:
        """Return what is seen, or raise AgentFault if the model wants other keys."""
        for kind in ("video", "state", "language"):
            wanted = self._modalities[kind].modality_keys if kind in self._modalities else []
            given = seen.get(kind, {})
            if not isinstance(given, dict) or given.keys() != set(wanted):
                sent = ", ".join(given) if isinstance(given, dict) else type(given).__name__
                wants = one_line(", ".join(wanted) or "nothing")
                problem = f"the model wants {kind} {wants}, but is sent {sent or 'nothing'}"
                hint = "name its keys in a mapping file (docs/dialects.md)"
                raise AgentFault(WireFault.MISMATCH, f"{problem}; {hint}")
        return {kind: seen[kind] for kind in ("video", "state", "language") if seen.get(kind)}

    def _frames(self, kind: str) -> dict[str, Any]:
        """Return the entries of a kind as a batch of one with the frames that the model looks back to."""
        deltas, newest = self._modalities[kind].delta_indices, len(self._seen) - 1
        past = [self._seen[max(0, newest + min(0, delta))][kind] for delta in deltas or [0]]
        if kind == "language":
            return {key: [[str(frame[key]) for frame in past]] for key in past[-1]}
        number_type = np.uint8 if kind == "video" else np.float32
        return {
            key: np.stack([np.atleast_1d(frame[key]).astype(number_type) for frame in past])[None]
            for key in past[-1]
        }

    def _rows(self, streams: Any) -> Array:
        """Return the streams of an action, each of shape (1, steps, numbers), side by side."""
        key = self._translator.action_key
        if not isinstance(streams, dict):
            found = type(streams).__name__
            raise AgentFault(WireFault.WRONG_MESSAGE, f"expected a map of action streams, found {found}")
        announced = (
            self._modalities["action"].modality_keys if "action" in self._modalities else sorted(streams)
        )
        wanted = announced if key == ALL_STREAMS else [key]
        missing = [name for name in wanted if name not in streams]
        if missing or not wanted:
            found = one_line(", ".join(sorted(map(str, streams))) or "nothing")
            problem = f"the action has no '{one_line(', '.join(missing))}', only {found}"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        parts = [as_numbers(streams[name]) for name in wanted]
        if any(part.ndim != 3 or part.shape[:2] != (1, parts[0].shape[1]) for part in parts):
            shapes = ", ".join(str(part.shape) for part in parts)
            problem = f"expected streams of shape (1, steps, numbers), found {shapes:.150}"
            raise AgentFault(WireFault.WRONG_MESSAGE, problem)
        return np.concatenate([part[0] for part in parts], axis=1)


def _modality(value: Any) -> Modality:
    """Return a modality from the map around it, whose content was text once."""
    content = value.get("as_json") if isinstance(value, dict) else None
    try:
        if isinstance(content, str | bytes):
            return msgspec.json.decode(content, type=Modality)
        return msgspec.convert(content, Modality)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(WireFault.WRONG_MESSAGE, f"expected a modality: {error}") from None
