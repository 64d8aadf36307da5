"""What an agent at the other end of a wire can do wrong, one word each, as the results name it."""

from __future__ import annotations

import enum

from proctor.core.errors import AgentFault


class WireFault(enum.StrEnum):
    """The kinds of `AgentFault` that the wire adds. What is wrong with an action is in `core/actions.py`."""

    UNREACHABLE = "agent_unreachable"
    """Nobody answered at its address in time."""
    UNAVAILABLE = "agent_unavailable"
    """The agent said itself that it cannot take an episode at present."""
    MISMATCH = "protocol_mismatch"
    """Somebody answered who speaks something else, or another version."""
    DISCONNECTED = "agent_disconnected"
    """The connection ended in the middle of an episode."""
    ACTION_TIMEOUT = "action_timeout"
    """No reply within the time for one action."""
    SLOW_REPLY = "slow_reply"
    """A reply had begun to arrive, but not its end, within the time for one action."""
    EPISODE_BUDGET = "episode_budget"
    """All actions together took longer than an episode may."""
    MALFORMED = "malformed_frame"
    """A frame that is not JSON, or not msgpack."""
    TOO_BIG = "frame_too_big"
    """A frame above the size limit."""
    TOO_DEEP = "nested_too_deep"
    """A frame with lists or maps inside of each other beyond the limit."""
    WRONG_FRAME = "wrong_frame_kind"
    """Text where binary is due, or the other way round."""
    WRONG_MESSAGE = "wrong_message"
    """A message that is not the one that is due."""
    WRONG_SESSION = "wrong_session"
    """A reply that bears the id of another session."""
    STALE_REPLY = "stale_reply"
    """A reply to another request than the last one."""
    UNASKED = "unasked_message"
    """A message that nobody had asked for."""
    AGENT_ERROR = "agent_error"
    """The agent said itself that it failed."""


class Departed(AgentFault):
    """The agent is gone without a complaint: the connection broke, or was closed in good order."""


class BadFrame(AgentFault):
    """A frame that cannot be understood: a fault of the agent, unless it is the agent who reads it."""
