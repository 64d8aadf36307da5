"""What O3DE's Python bindings offer, as data: azlmbr_calls.json."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from proctor.core.documents import convert, read_json

CALLS_FILE = Path(__file__).with_name("azlmbr_calls.json")


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that can be called, made or read."""

    module: str
    bus: str | None
    kind: Literal["event", "broadcast", "function", "handler", "class", "constant"]
    name: str
    arguments: list[str]
    """Their types. The first one of an event is its address; a class takes none of them or all."""
    returns: str
    source: str
    """Where it was read."""
    members: list[str] = []
    """What an object of a class has."""
    value: Any = None
    """Of a constant; those that differ from project to project have none."""
    address: str = "None"
    """The type of what a handler connects to."""


class _CallTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    calls: list[Call]


@cache
def calls() -> tuple[Call, ...]:
    """Return all of them."""
    return tuple(convert(read_json(CALLS_FILE), _CallTable, CALLS_FILE).calls)
