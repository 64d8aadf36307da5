"""The messages of protocol version 1, and what a served agent can do wrong with them.

`docs/protocol.md` shows each message as it is on the wire. The evaluator is the WebSocket client, the agent
the server. Keys that are not known are skipped, so that either side may say more than the other understands.
"""

from __future__ import annotations

import enum
from typing import Any, Literal, TypeAlias

import msgspec

from proctor.core.errors import UPDATE_COMMAND, AgentFault
from proctor.core.types import Sensor

VERSION = 1
JSON, MSGPACK = "proctor.v1.json", "proctor.v1.msgpack"
SUBPROTOCOLS = (JSON, MSGPACK)
"""As the evaluator offers them. JSON comes first: some servers take the first without looking."""

UNAVAILABLE_KINDS = ("unavailable", "overloaded")
"""Of errors by which an agent says that it cannot take an episode at present."""

Encoding: TypeAlias = Literal["png", "jpeg", "list", "raw"]
"""How an array is written: a picture in base64, nested lists (both JSON), or its bytes (msgpack)."""


class Format(Sensor, frozen=True, kw_only=True):
    """What one array of an observation is like, and how it is written."""

    encoding: Encoding


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    """Who is speaking. The agent may send it as soon as the connection is open; the evaluator answers."""

    protocol: str  # `proctor`
    version: int
    name: str = ""  # of the agent or the evaluator, for people
    session_id: str = ""  # from the evaluator only, like all that follows but `pictures` and `request_ids`
    task: str = ""
    sensors: dict[str, Sensor] = {}
    actions: list[str] = []
    pictures: Literal["png", "jpeg"] = "png"
    """From the agent: how it wants colour in JSON. PNG is lossless, JPEG is smaller."""
    request_ids: bool = False  # from the agent: each of its replies will bear the `request_id` of its request


class ResetEpisode(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="reset_episode"):
    """An episode begins. There is no reply."""

    session_id: str
    episode: dict[str, Any]
    """`episode_id`, `task_type`, `instruction` {`text`, `language`}, `max_steps`, `seed`, the task's own."""
    observation_format: dict[str, Format] = {}


class GetAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="get_action"):
    """What the agent sees; it has to reply with an action."""

    session_id: str
    request_id: int = 0  # counts up from 1 in a session
    observation: dict[str, Any]


class ActionReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="action"):
    """What the agent wants to do."""

    session_id: str = ""
    request_id: int | None = None
    action: Any


class EpisodeEnd(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="episode_end"):
    """The episode is over. There is no reply."""

    session_id: str
    status: Literal["success", "failure", "error"]
    metrics: dict[str, float | None]  # null where a metric that the exam always names was not measured
    num_steps: int


class ErrorMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """Something went wrong with the sender, or with what it was sent. Ends the episode."""

    session_id: str = ""
    kind: str = "error"
    message: str = ""


FromEvaluator: TypeAlias = Hello | ResetEpisode | GetAction | EpisodeEnd | ErrorMessage
FromAgent: TypeAlias = Hello | ActionReply | ErrorMessage


class WireFault(enum.StrEnum):
    """The kinds of `AgentFault` of served agents. Those of actions are in `core/answers.py`."""

    UNREACHABLE = "agent_unreachable"  # nobody answered at its address in time
    UNAVAILABLE = "agent_unavailable"  # the agent said itself that it cannot take an episode at present
    MISMATCH = "protocol_mismatch"  # what answered speaks another protocol, or another version
    DISCONNECTED = "agent_disconnected"  # the connection ended in the middle of an episode
    ACTION_TIMEOUT = "action_timeout"  # no reply within the time for one action
    SLOW_REPLY = "slow_reply"  # a reply had begun to arrive, but not its end, within the time for one action
    EPISODE_BUDGET = "episode_budget"  # all actions together took longer than an episode may
    MALFORMED = "malformed_frame"  # a frame that is not JSON, or not msgpack
    TOO_BIG = "frame_too_big"  # a frame above the size limit
    TOO_DEEP = "nested_too_deep"  # a frame with lists or maps inside of each other beyond the limit
    WRONG_FRAME = "wrong_frame_kind"  # text where binary is due, or the other way round
    WRONG_MESSAGE = "wrong_message"  # a message that is not the one that is due
    WRONG_SESSION = "wrong_session"  # a reply that bears the id of another session
    STALE_REPLY = "stale_reply"  # a reply to another request than the last one
    UNASKED = "unasked_message"  # a message that nobody had asked for
    AGENT_ERROR = "agent_error"  # the agent said itself that it failed


class AgentGone(AgentFault):
    """The connection broke, or the agent closed it without reporting a problem."""


class BadFrame(AgentFault):
    """A frame that cannot be understood. In the evaluator it is the agent's fault."""


def check_version(hello: Hello, speaker: Literal["agent", "evaluator"]) -> None:
    """Raise BadFrame if the other side speaks another protocol or version."""
    if hello.protocol != "proctor":
        raise BadFrame(WireFault.MISMATCH, f"the {speaker} speaks '{hello.protocol:.40}', not 'proctor'")
    if hello.version == VERSION:
        return
    there, us, here = "where the agent is served", "evaluator", "here"
    if speaker == "evaluator":
        there, us, here = "where the evaluator runs", "agent", there
    spoken = f"the {speaker} speaks version {hello.version} of the protocol, this {us} version {VERSION}"
    remedy = f"update Proctor {here if hello.version > VERSION else there}: {UPDATE_COMMAND}"
    raise BadFrame(WireFault.MISMATCH, f"{spoken}; {remedy}")
