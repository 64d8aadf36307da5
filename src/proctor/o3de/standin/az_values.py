"""The values that go in and out of azlmbr, as forgetful as the real ones: what they lack reads as None."""

from __future__ import annotations

from typing import Any, ClassVar

from proctor.o3de.standin.az_transform import Placement, Quadruple, Triple


class AzValue:
    """A value of the engine. An attribute that it does not have is None, and setting one does nothing.

    Names that end with an underscore are the engine's side of it: no script can know them.
    """

    MEMBERS: ClassVar[frozenset[str]] = frozenset()
    """What scripts may use; the rest is for the engine."""
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
