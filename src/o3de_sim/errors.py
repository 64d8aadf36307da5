"""What can go wrong between a caller and the engine."""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "bad_request",  # an argument is missing, unknown, or of the wrong kind
    "unknown_op",
    "bad_state",  # such as an edit in game mode
    "not_found",
    "az_call_failed",  # the engine did not do what it was asked
    "timeout",
    "busy",  # the agent serves somebody else
    "unauthorised",
    "internal",  # a fault of the agent itself
    "connection",  # there is no agent, or it went away; only said on the caller's side
]


class O3DEError(Exception):
    """An operation failed. The message says what was asked, what was found, and what would be right."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
