"""Kinds of faults for answers that are not an action, and how such an answer is described."""

from __future__ import annotations

from typing import Any

import numpy as np

INVALID_ACTION, WRONG_LENGTH, NOT_FINITE = "invalid_action", "wrong_action_length", "action_not_finite"
"""The kinds of `AgentFault` for answers that are not an action."""
UNSTABLE_PHYSICS = "unstable_physics"
"""The kind of `AgentFault` for a world that broke under what the robot was told to do."""


def describe_answer(value: Any) -> str:
    """Tell what a value is. Only plain ones are quoted: the repr of others may be huge, or change."""
    name = type(value).__name__[:40]
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {str(value.dtype)[:40]}"
    if type(value) in (list, tuple):
        return f"a {name} of {len(value)}"
    if type(value) is int and value.bit_length() > 64:
        return f"an int of {value.bit_length()} bits"
    if type(value) is str:
        return f"str {value[:40]!r}{'...' if len(value) > 40 else ''}"
    if value is None or type(value) in (bool, int, float) or isinstance(value, np.number):
        return f"{name} {value}"
    return name
