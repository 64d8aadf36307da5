"""Reading JSON of servers that need not keep to their own API: what is of another type counts as missing."""

from __future__ import annotations

from typing import Any


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return a text, or an empty one."""
    return value if isinstance(value, str) else ""


def content_text(content: Any) -> str:
    """Return the text of a message, which some servers write as a list of parts."""
    parts = [as_text(as_dict(part).get("text")) for part in as_list(content)]
    return as_text(content) or "".join(parts)


def as_count(value: Any) -> int:
    """Return a number of tokens, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0
