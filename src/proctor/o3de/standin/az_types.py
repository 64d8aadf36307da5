"""Which Python values the engine takes for which of its types."""

from __future__ import annotations

from typing import Any

from proctor.o3de.standin import az_values

NUMBERS = (int, float)
PLAIN: dict[str, Any] = {"bool": bool, "int": int, "EntityType": int, "float": NUMBERS, "str": str}


def fits(value: Any, kind: str) -> bool:
    """Return whether a value can be an argument of a type, as the table of calls names it."""
    if kind == "any":
        return True
    if kind == "callable":
        return callable(value)
    if kind.startswith("list["):
        return isinstance(value, list | tuple) and all(fits(item, kind[5:-1]) for item in value)
    if isinstance(value, bool):  # is no number here
        return kind == "bool"
    return isinstance(value, PLAIN[kind] if kind in PLAIN else getattr(az_values, kind))


def fits_property(value: Any, kind: str) -> bool:
    """Return whether a value can become a property's: whole and other numbers are taken for each other."""
    if kind in ("int", "float"):
        return isinstance(value, NUMBERS) and not isinstance(value, bool)
    return fits(value, kind)


def default_of(kind: str) -> Any:
    """Return what a property of a type holds at first."""
    plain = {"bool": False, "int": 0, "float": 0.0, "str": ""}
    return plain[kind] if kind in plain else getattr(az_values, kind)()


def as_json(value: Any) -> Any:
    """Return a property's value for a level file."""
    if isinstance(value, az_values.AssetId):
        return value.product_
    if isinstance(value, az_values.EntityId):
        return value.number_
    if isinstance(value, az_values.Vector3):
        return list(value.triple_())
    if isinstance(value, az_values.Quaternion | az_values.Color):
        return list(value.quadruple_())
    return value


def from_json(value: Any, kind: str) -> Any:
    """Return a property's value as a level file or the table of components has it."""
    if kind == "AssetId":
        return az_values.AssetId(product=value)
    if kind in ("Vector3", "Quaternion", "Color"):
        return getattr(az_values, kind)(*value)
    return float(value) if kind == "float" else value
