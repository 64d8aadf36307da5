"""The components of O3DE as its Editor shows them, as data: components.json."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.documents import convert, read_json

COMPONENTS_FILE = Path(__file__).with_name("components.json")


class ComponentKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of component."""

    name: str
    """As the Editor's menu has it; upper and lower case count."""
    type: str
    """As prefab files have it, in `$type`."""
    properties: dict[str, str]
    """Paths of what can be set, with the type of each value."""
    source: str
    provides: list[str] = []
    requires: list[str] = []
    """Services that others on the entity must provide: without them it stays pending and does nothing."""
    incompatible: list[str] = []
    """Services that nobody before it may provide."""
    defaults: dict[str, Any] = {}
    wrapped: bool = False
    """Not a component of the Editor: to touch its properties from Python corrupts memory."""


class _ComponentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    about: str
    components: list[ComponentKind]


@cache
def component_kinds() -> dict[str, ComponentKind]:
    """Return all of them by their names."""
    table = convert(read_json(COMPONENTS_FILE), _ComponentTable, COMPONENTS_FILE)
    return {kind.name: kind for kind in table.components}


@cache
def kinds_by_type() -> dict[str, ComponentKind]:
    """Return them by what prefab files call them."""
    return {kind.type: kind for kind in component_kinds().values()}
