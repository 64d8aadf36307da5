"""The values of `azlmbr`: numbers, ids, assets, outcomes, and which of them fit which types."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from proctor.core.types import Array

Values = tuple[float, ...]
NUMBERS = (int, float)
PLAIN: dict[str, Any] = {"bool": bool, "int": int, "EntityType": int, "float": NUMBERS, "str": str}


class Placement(NamedTuple):
    """Where something is, in its parent or in the world."""

    translation: Values = (0.0, 0.0, 0.0)
    rotation_xyzw: Values = (0.0, 0.0, 0.0, 1.0)
    scale: float = 1.0

    def of(self, inner: Placement) -> Placement:
        """Return what is placed in this one as seen from outside."""
        turn, inner_turn = (Rotation.from_quat(each.rotation_xyzw) for each in (self, inner))
        shift = turn.apply(np.multiply(inner.translation, self.scale)) + self.translation
        return Placement(_tuple(shift), _tuple((turn * inner_turn).as_quat()), self.scale * inner.scale)

    def inverse(self) -> Placement:
        """Return the placement that undoes this one."""
        back = Rotation.from_quat(self.rotation_xyzw).inv()
        shift = back.apply(np.negative(self.translation)) / self.scale
        return Placement(_tuple(shift), _tuple(back.as_quat()), 1 / self.scale)


def _tuple(values: Array) -> Values:
    return tuple(values.tolist())


class AzValue:
    """A value of the engine. An attribute that it does not have is None, and setting one does nothing.

    Names that end with an underscore are the engine's side of it: no script can know them.
    """

    MEMBERS: ClassVar[tuple[str, ...]] = ()  # what scripts may use; the rest is for the engine
    refused_: ClassVar[list[str]] = []
    """Where it is written down what is not there: the list of the editor that is installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python's own questions
            raise AttributeError(name)
        self.refused_.append(f"{type(self).__name__.removeprefix('Az')}.{name}")
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_") or name in self.MEMBERS:
            object.__setattr__(self, name, value)
        else:
            self.refused_.append(f"{type(self).__name__.removeprefix('Az')}.{name} = ...")


class AzNumbers(AzValue):
    """Some numbers by their names."""

    DEFAULTS: ClassVar[Values] = ()

    def __init__(self, *numbers: float) -> None:
        for name, number in zip(self.MEMBERS, numbers or self.DEFAULTS, strict=True):
            setattr(self, name, float(number))

    def numbers_(self) -> Values:
        """Return them in their order."""
        return tuple(getattr(self, name) for name in self.MEMBERS)


class AzVector3(AzNumbers):
    """`azlmbr.math.Vector3`."""

    MEMBERS, DEFAULTS = ("x", "y", "z"), (0.0, 0.0, 0.0)


class AzQuaternion(AzNumbers):
    """`azlmbr.math.Quaternion`."""

    MEMBERS, DEFAULTS = ("x", "y", "z", "w"), (0.0, 0.0, 0.0, 1.0)


class AzColor(AzNumbers):
    """`azlmbr.math.Color`."""

    MEMBERS, DEFAULTS = ("r", "g", "b", "a"), (0.0, 0.0, 0.0, 1.0)


class AzUuid(AzValue):
    """`azlmbr.math.Uuid`: the type of a component, or null."""

    def __init__(self, *, component: str | None = None) -> None:
        self.component_ = component

    def IsNull(self) -> bool:  # noqa: N802  (the engine's name, here and below)
        """Return whether it is of nothing."""
        return self.component_ is None


class AzEntityId(AzValue):
    """`azlmbr.entity.EntityId`. It cannot be made of a number: that gives an invalid one."""

    INVALID: ClassVar[int] = 0xFFFFFFFF

    def __init__(self, *_ignored: Any) -> None:
        self.number_ = self.INVALID

    @classmethod
    def of_(cls, number: int | None) -> AzEntityId:
        """Return that of an entity."""
        made = cls()
        made.number_ = cls.INVALID if number is None else number
        return made

    def IsValid(self) -> bool:  # noqa: N802
        """Return whether it is one of an entity, be it there or not."""
        return self.number_ != self.INVALID

    def ToString(self) -> str:  # noqa: N802
        """Return it as text, such as `[1234]`."""
        return f"[{self.number_}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AzEntityId) and self.number_ == other.number_

    __hash__ = object.__hash__  # equal ids do not find each other in a dict; in the Editor neither


class AzComponentId(AzValue):
    """`EntityComponentIdPair`: which component on which entity."""

    def __init__(self, entity: int, component: int) -> None:
        self.entity_, self.component_ = entity, component


class AzAssetId(AzValue):
    """`azlmbr.asset.AssetId`."""

    def __init__(self, *, product: str | None = None) -> None:
        self.product_ = product

    def is_valid(self) -> bool:
        """Return whether it is one of an asset."""
        return self.product_ is not None


class AzSearchFilter(AzValue):
    """`azlmbr.entity.SearchFilter`: names with wildcards, in any case unless told otherwise."""

    MEMBERS = ("names", "names_case_sensitive")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.names_case_sensitive = False


class AzEntityType(AzValue):
    """`azlmbr.entity.EntityType`."""

    MEMBERS = ("Game", "System", "Layer", "Level")

    def __init__(self) -> None:
        self.Game, self.System, self.Layer, self.Level = range(4)


class AzOutcome(AzValue):
    """A value, or why there is none."""

    def __init__(self, value: Any = None, error: str | None = None) -> None:
        self.value_, self.error_ = value, error

    def IsSuccess(self) -> bool:  # noqa: N802
        """Return whether there is a value."""
        return self.error_ is None

    def GetValue(self) -> Any:  # noqa: N802
        """Return the value."""
        return self.value_

    def GetError(self) -> str | None:  # noqa: N802
        """Return why there is none."""
        return self.error_


VALUE_TYPES: dict[str, type[AzValue]] = {
    "Vector3": AzVector3,
    "Quaternion": AzQuaternion,
    "Color": AzColor,
    "Uuid": AzUuid,
    "EntityId": AzEntityId,
    "EntityComponentIdPair": AzComponentId,
    "AssetId": AzAssetId,
    "SearchFilter": AzSearchFilter,
    "EntityType": AzEntityType,
}
"""By their names in the tables of calls and components."""


def fits(value: Any, kind: str) -> bool:
    """Return whether a value can be an argument of a type, as the table of calls names it."""
    if kind == "any":
        return True
    if kind == "callable":
        return callable(value)
    if kind.startswith("list["):
        return isinstance(value, list | tuple) and all(fits(item, kind[5:-1]) for item in value)
    if isinstance(value, bool):  # not a number here
        return kind == "bool"
    return isinstance(value, PLAIN[kind] if kind in PLAIN else VALUE_TYPES[kind])


def fits_property(value: Any, kind: str) -> bool:
    """Return whether a value can become a property's: whole and other numbers are taken for each other."""
    return fits(value, "float" if kind == "int" else kind)


def default_of(kind: str) -> Any:
    """Return what a property of a type holds at first."""
    plain = {"bool": False, "int": 0, "float": 0.0, "str": ""}
    return plain[kind] if kind in plain else VALUE_TYPES[kind]()


def as_json(value: Any) -> Any:
    """Return a property's value for a level file."""
    if isinstance(value, AzAssetId):
        return value.product_
    if isinstance(value, AzEntityId):
        return value.number_
    return list(value.numbers_()) if isinstance(value, AzNumbers) else value


def from_json(value: Any, kind: str) -> Any:
    """Return a property's value as a level file or the table of components has it."""
    if kind == "AssetId":
        return AzAssetId(product=value)
    if kind in ("Vector3", "Quaternion", "Color"):
        return VALUE_TYPES[kind](*value)
    return float(value) if kind == "float" else value
