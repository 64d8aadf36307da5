"""The messages of protocol version 1. `docs/protocol.md` shows each of them as it is on the wire.

The evaluator is the WebSocket client, the agent the server. Keys that are not known are skipped, so that
either side may say more than the other understands.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from proctor.core.types import Sensor

VERSION = 1
JSON, MSGPACK = "proctor.v1.json", "proctor.v1.msgpack"
SUBPROTOCOLS = (JSON, MSGPACK)
"""As the evaluator offers them. JSON comes first: some servers take the first without looking."""

UNAVAILABLE_KINDS = ("unavailable", "overloaded")
"""Of an error with which an agent says that it cannot take an episode at present."""

Encoding: TypeAlias = Literal["png", "jpeg", "list", "raw"]
"""How an array is written: a picture in base64, nested lists (both JSON), or its bytes (msgpack)."""


class Format(Sensor, frozen=True, kw_only=True):
    """What one array of an observation is like, and how it is written."""

    encoding: Encoding


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    """Who is speaking. The agent may send it as soon as the connection is open; the evaluator answers."""

    protocol: str
    """`proctor`."""
    version: int
    name: str = ""
    """Of the agent or the evaluator, for people."""
    session_id: str = ""
    """From the evaluator only, like all that follows but `pictures` and `request_ids`."""
    task: str = ""
    sensors: dict[str, Sensor] = {}
    actions: list[str] = []
    pictures: Literal["png", "jpeg"] = "png"
    """From the agent: how it wants colour in JSON. PNG is lossless, JPEG is smaller."""
    request_ids: bool = False
    """From the agent: every reply of its will bear the `request_id` of its request."""


class ResetEpisode(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="reset_episode"):
    """An episode begins. There is no reply."""

    session_id: str
    episode: dict[str, Any]
    """`episode_id`, `task_type`, `instruction` {`text`, `language`}, `max_steps`, `seed`, the task's own."""
    observation_format: dict[str, Format] = {}


class GetAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="get_action"):
    """What the agent sees; it has to reply with an action."""

    session_id: str
    request_id: int = 0
    """Counts up from 1 in a session."""
    observation: dict[str, Any]


class ActionReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="action"):
    """What the agent wants to do."""

    session_id: str = ""
    request_id: int | None = None
    action: Any


ALWAYS_TOLD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"pick_and_place": ("success", "completion_rate", "trajectory_similarity")}
)
"""By task, the metrics that `episode_end` names in any case, as the message of the design documents does."""


class EpisodeEnd(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="episode_end"):
    """The episode is over. There is no reply."""

    session_id: str
    status: Literal["success", "failure", "error"]
    metrics: dict[str, float | None]
    """Null where a metric of `ALWAYS_TOLD` was not measured."""
    num_steps: int


class ErrorMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """Something went wrong with the sender, or with what it was sent. Ends the episode."""

    session_id: str = ""
    kind: str = "error"
    message: str = ""


FromEvaluator: TypeAlias = Hello | ResetEpisode | GetAction | EpisodeEnd | ErrorMessage
FromAgent: TypeAlias = Hello | ActionReply | ErrorMessage
