"""How an entity is called."""

from __future__ import annotations


class EntityId(str):
    """An entity of the open level, in the engine's own words: `[1234]`. It ends with the level."""

    __slots__ = ()
