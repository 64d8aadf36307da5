"""What a chat model, or the API that serves it, can do wrong."""

from __future__ import annotations

import enum


class ChatFault(enum.StrEnum):
    """The kinds of faults of chat models. Those of actions are in `core/answers.py`."""

    # Of the model: its own faults, after a repair turn.
    REFUSAL = "refusal"  # it declined, or a filter cut its reply
    NO_ACTION = "no_action"  # text without an action
    CONTRADICTION = "contradicting_actions"  # several tool calls that cannot all be meant
    TRUNCATED = "truncated_reply"  # the limit of tokens cut a tool call
    TOO_LARGE = "reply_too_large"  # more bytes than anybody reads
    TIMEOUT = "reply_timeout"  # a reply that began, but did not end in time
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "invalid_arguments"  # arguments of a tool that are not JSON, or not those it has
    DECISION_LIMIT = "decision_limit"  # `max_decisions` were made
    # Of the API: nobody's fault, the episode is done again.
    UNREACHABLE = "model_unreachable"  # no connection, or no reply in time
    OVERLOADED = "model_overloaded"  # 429, 5xx
    KEY_REFUSED = "key_refused"  # 401, 403
    NO_CREDIT = "no_credit"  # 402, a spent quota
    REQUEST_REFUSED = "request_refused"  # 400 and others: the model cannot be asked like this
    UNREADABLE = "unreadable_reply"  # what answers does not speak this API


class Unusable(Exception):
    """A reply that is not an action. The model gets a chance to repair it; then it is at fault.

    `problem` is told to the model. `said` is what it said, as text.
    """

    def __init__(self, kind: str, problem: str, said: str = "") -> None:
        self.kind, self.problem, self.said = str(kind), problem, said
        super().__init__(problem)
