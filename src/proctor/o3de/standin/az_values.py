"""The values of `azlmbr`: transforms, ids, assets, outcomes, and which of them fit which types."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

Triple = tuple[float, float, float]
Quadruple = tuple[float, float, float, float]
NUMBERS = (int, float)
PLAIN: dict[str, Any] = {"bool": bool, "int": int, "EntityType": int, "float": NUMBERS, "str": str}


class Placement(NamedTuple):
    """Where something is, in its parent or in the world."""

    translation: Triple = (0.0, 0.0, 0.0)
    rotation_xyzw: Quadruple = (0.0, 0.0, 0.0, 1.0)
    scale: float = 1.0

    def of(self, inner: Placement) -> Placement:
        """Return what is placed in this one as seen from outside."""
        turn = self._turn
        shift = turn.apply(np.multiply(inner.translation, self.scale)) + self.translation
        return Placement(triple(shift), _quadruple(turn * inner._turn), self.scale * inner.scale)

    def inverse(self) -> Placement:
        """Return the placement that undoes this one."""
        back = self._turn.inv()
        shift = back.apply(np.negative(self.translation)) / self.scale
        return Placement(triple(shift), _quadruple(back), 1 / self.scale)

    def euler_xyz_rad(self) -> Triple:
        """Return the angles whose turns about x, y and z, multiplied in this order, are the rotation."""
        x, y, z = euler_zyx_rad(self._turn.inv())  # backwards, it is the other order
        return -x, -y, -z

    @property
    def _turn(self) -> Rotation:
        return Rotation.from_quat(self.rotation_xyzw)


def quaternion_of_euler_xyz(angles: Triple, *, degrees: bool = False) -> Quadruple:
    """Return the xyzw quaternion of angles in O3DE's order: qx·qy·qz."""
    return _quadruple(Rotation.from_euler("XYZ", angles, degrees=degrees))


def euler_zyx_rad(turn: Rotation) -> Triple:
    """Return the angles about x, y and z whose turns, that about x first, are a rotation.

    Straight up and down, where they are not unique, that about x is 0.
    """
    matrix = turn.as_matrix()
    y = math.asin(min(1.0, max(-1.0, -matrix[2, 0])))
    if math.hypot(matrix[2, 1], matrix[2, 2]) < 1e-9:
        return 0.0, y, math.atan2(-matrix[0, 1], matrix[1, 1])
    return math.atan2(matrix[2, 1], matrix[2, 2]), y, math.atan2(matrix[1, 0], matrix[0, 0])


def triple(values: Iterable[float]) -> Triple:
    """Return three numbers as a tuple."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def _quadruple(turn: Rotation) -> Quadruple:
    x, y, z, w = (float(value) for value in turn.as_quat())
    return x, y, z, w


class AzValue:
    """A value of the engine. An attribute that it does not have is None, and setting one does nothing.

    Names that end with an underscore are the engine's side of it: no script can know them.
    """

    MEMBERS: ClassVar[frozenset[str]] = frozenset()  # what scripts may use; the rest is for the engine
    refused_: ClassVar[list[str]] = []
    """Where it is written down what is not there: the list of the editor that is installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python's own questions
            raise AttributeError(name)
        self.refused_.append(f"{type(self).__name__}.{name}")
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_") or name in self.MEMBERS:
            object.__setattr__(self, name, value)
        else:
            self.refused_.append(f"{type(self).__name__}.{name} = ...")


class Vector3(AzValue):
    """`azlmbr.math.Vector3`."""

    MEMBERS = frozenset({"x", "y", "z"})

    def __init__(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> None:
        self.x, self.y, self.z = float(x), float(y), float(z)

    def triple_(self) -> Triple:
        """Return its numbers."""
        return self.x, self.y, self.z


class Quaternion(AzValue):
    """`azlmbr.math.Quaternion`: x, y, z, w."""

    MEMBERS = frozenset({"x", "y", "z", "w"})

    def __init__(self, x: float = 0.0, y: float = 0.0, z: float = 0.0, w: float = 1.0) -> None:
        self.x, self.y, self.z, self.w = float(x), float(y), float(z), float(w)

    def quadruple_(self) -> Quadruple:
        """Return its numbers."""
        return self.x, self.y, self.z, self.w


class Color(AzValue):
    """`azlmbr.math.Color`."""

    MEMBERS = frozenset({"r", "g", "b", "a"})

    def __init__(self, r: float = 0.0, g: float = 0.0, b: float = 0.0, a: float = 1.0) -> None:
        self.r, self.g, self.b, self.a = float(r), float(g), float(b), float(a)

    def quadruple_(self) -> Quadruple:
        """Return its numbers."""
        return self.r, self.g, self.b, self.a


class Transform(AzValue):
    """`azlmbr.math.Transform`."""

    def __init__(self, placement: Placement | None = None) -> None:
        self.placement_ = placement or Placement()

    def GetTranslation(self) -> Vector3:  # noqa: N802  (the engine's name, here and below)
        """Return its shift."""
        return Vector3(*self.placement_.translation)

    def GetRotation(self) -> Quaternion:  # noqa: N802
        """Return its turn."""
        return Quaternion(*self.placement_.rotation_xyzw)

    def GetUniformScale(self) -> float:  # noqa: N802
        """Return its scale."""
        return self.placement_.scale


class Uuid(AzValue):
    """`azlmbr.math.Uuid`: the type of a component, or null."""

    def __init__(self, *, component: str | None = None) -> None:
        self.component_ = component

    def IsNull(self) -> bool:  # noqa: N802
        """Return whether it is of nothing."""
        return self.component_ is None

    def ToString(self) -> str:  # noqa: N802
        """Return it as text."""
        return f"{{{'0' * 8 if self.component_ is None else self.component_.upper()}}}"


class EntityId(AzValue):
    """`azlmbr.entity.EntityId`. It cannot be made of a number: that gives an invalid one."""

    INVALID: ClassVar[int] = 0xFFFFFFFF

    def __init__(self, *_ignored: Any) -> None:
        self.number_ = self.INVALID

    @classmethod
    def of_(cls, number: int | None) -> EntityId:
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

    def Equal(self, other: EntityId) -> bool:  # noqa: N802
        """Return whether it is the same."""
        return self.number_ == other.number_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EntityId) and self.Equal(other)

    __hash__ = object.__hash__  # equal ids do not find each other in a dict; in the Editor neither


class EntityComponentIdPair(AzValue):
    """Which component on which entity."""

    def __init__(self, entity: int, component: int) -> None:
        self.entity_, self.component_ = entity, component


class AssetId(AzValue):
    """`azlmbr.asset.AssetId`."""

    def __init__(self, *, product: str | None = None) -> None:
        self.product_ = product

    def is_valid(self) -> bool:
        """Return whether it is one of an asset."""
        return self.product_ is not None

    def to_string(self) -> str:
        """Return it as text."""
        return "{00000000}:0" if self.product_ is None else f"{{{abs(hash(self.product_)):x}}}:1"


class SearchFilter(AzValue):
    """`azlmbr.entity.SearchFilter`: names with wildcards, in any case unless told otherwise."""

    MEMBERS = frozenset({"names", "names_case_sensitive"})

    def __init__(self) -> None:
        self.names: list[str] = []
        self.names_case_sensitive = False


class EntityType(AzValue):
    """`azlmbr.entity.EntityType`."""

    MEMBERS = frozenset({"Game", "System", "Layer", "Level"})

    def __init__(self) -> None:
        self.Game, self.System, self.Layer, self.Level = range(4)


class Outcome(AzValue):
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
    return isinstance(value, PLAIN[kind] if kind in PLAIN else globals()[kind])


def fits_property(value: Any, kind: str) -> bool:
    """Return whether a value can become a property's: whole and other numbers are taken for each other."""
    if kind in ("int", "float"):
        return isinstance(value, NUMBERS) and not isinstance(value, bool)
    return fits(value, kind)


def default_of(kind: str) -> Any:
    """Return what a property of a type holds at first."""
    plain = {"bool": False, "int": 0, "float": 0.0, "str": ""}
    return plain[kind] if kind in plain else globals()[kind]()


def as_json(value: Any) -> Any:
    """Return a property's value for a level file."""
    if isinstance(value, AssetId):
        return value.product_
    if isinstance(value, EntityId):
        return value.number_
    if isinstance(value, Vector3):
        return list(value.triple_())
    if isinstance(value, Quaternion | Color):
        return list(value.quadruple_())
    return value


def from_json(value: Any, kind: str) -> Any:
    """Return a property's value as a level file or the table of components has it."""
    if kind == "AssetId":
        return AssetId(product=value)
    if kind in ("Vector3", "Quaternion", "Color"):
        return globals()[kind](*value)
    return float(value) if kind == "float" else value
