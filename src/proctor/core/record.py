"""Data that is read as an object or as a dict, as the design documents do by turns."""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of something: `record.name`, `record["name"]` and `record.get("name")` read the same value."""

    def __getitem__(self, key: str) -> Any:
        if key not in self.__struct_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        value = getattr(self, key, None) if key in self.__struct_fields__ else None
        return default if value is None else value
