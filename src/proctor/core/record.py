"""Data that is read as an object or as a dict, as the design documents do by turns."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec


class _DataclassFields:
    """Makes `dataclasses.asdict`, `fields` and `replace` work on a struct: they ask for this attribute."""

    def __get__(self, instance: Any, owner: type[msgspec.Struct]) -> dict[str, dataclasses.Field[Any]]:
        return _fields_of(owner)


class DataclassStruct(msgspec.Struct, frozen=True):
    """A struct that is a dataclass to whoever asks.

    A real dataclass would be read from files without a word about unknown keys, and more slowly.
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    else:
        __dataclass_fields__ = _DataclassFields()


class Record(DataclassStruct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of something: `record.name`, `record["name"]` and `record.get("name")` read the same value."""

    def __getitem__(self, key: str) -> Any:
        if key not in self.__struct_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        value = getattr(self, key, None) if key in self.__struct_fields__ else None
        return default if value is None else value


@cache
def _fields_of(struct: type[msgspec.Struct]) -> dict[str, dataclasses.Field[Any]]:
    fields = [(field.name, field.type, _default_of(field)) for field in msgspec.structs.fields(struct)]
    made = dataclasses.make_dataclass(struct.__name__, fields, kw_only=True)
    return {field.name: field for field in dataclasses.fields(made)}


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return dataclasses.field(default_factory=field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return dataclasses.field(default=field.default)
    return dataclasses.field()
