"""Vectors, rotations, and the two orders of Euler angles that meet here.

World: right-handed, Z up, metres; a robot's forward is +x. Quaternions are w, x, y, z here and x, y, z, w on
the wire. Scene and episode files turn by Z·Y·X (about x first), O3DE's own angles by X·Y·Z (about z first):
the two agree only where one axis is turned about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LOCKED = 1e-7


def _numbers(value: Any, names: str) -> list[Any]:
    """Return the numbers of a mapping, an object, or a sequence, by name or in the order of the names."""
    if isinstance(value, Mapping):
        if set(value) != set(names):
            raise ValueError(f"expected the keys {', '.join(names)}, found {sorted(map(str, value))}")
        return [value[name] for name in names]
    if all(hasattr(value, name) for name in names):
        return [getattr(value, name) for name in names]
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ValueError(f"expected {', '.join(names)}, found {value!r}")
    numbers = list(value)
    if len(numbers) != len(names):
        raise ValueError(f"expected {len(names)} numbers, found {len(numbers)}")
    return numbers


def _set_numbers(value: Any, *names: str) -> None:
    for name in names:
        given = getattr(value, name)
        if isinstance(given, (bool, str, bytes)) or not hasattr(type(given), "__float__"):
            raise ValueError(f"{name}: expected a number, found {given!r}")
        if not math.isfinite(given):
            raise ValueError(f"{name}: expected a finite number, found {given}")
        object.__setattr__(value, name, float(given))


@dataclass(frozen=True)
class Vector3:
    """A point or a direction (metres), or three angles."""

    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        _set_numbers(self, "x", "y", "z")

    @classmethod
    def of(cls, value: Any) -> Vector3:
        """Make a vector from a vector, a mapping or an object with x, y and z, or three finite numbers."""
        return value if isinstance(value, cls) else cls(*_numbers(value, "xyz"))

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: Vector3) -> Vector3:
        return Vector3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3) -> Vector3:
        return Vector3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor: float) -> Vector3:
        return Vector3(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def __neg__(self) -> Vector3:
        return self * -1.0

    def to_list(self) -> list[float]:
        """Return [x, y, z]."""
        return [self.x, self.y, self.z]

    def scaled(self, factors: Vector3) -> Vector3:
        """Return the product of each coordinate with that of another vector."""
        return Vector3(self.x * factors.x, self.y * factors.y, self.z * factors.z)

    def length(self) -> float:
        """Return the Euclidean length."""
        return math.hypot(self.x, self.y, self.z)

    def distance(self, other: Any) -> float:
        """Return the Euclidean distance to another point, heights included."""
        return (self - Vector3.of(other)).length()


@dataclass(frozen=True)
class Quaternion:
    """A rotation, of length 1. What is off by rounding is put right; anything else is refused."""

    w: float
    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        _set_numbers(self, "w", "x", "y", "z")
        norm = math.hypot(self.w, self.x, self.y, self.z)
        if abs(norm - 1) > 1e-3:
            found = [self.w, self.x, self.y, self.z]
            raise ValueError(f"expected a quaternion of length 1, found {found} of length {norm:.4g}")
        for name in "wxyz":
            object.__setattr__(self, name, getattr(self, name) / norm)

    @classmethod
    def of(cls, value: Any) -> Quaternion:
        """Make a rotation from a mapping or an object with w, x, y and z, or four numbers in this order."""
        return value if isinstance(value, cls) else cls(*_numbers(value, "wxyz"))

    @classmethod
    def from_xyzw(cls, value: Any) -> Quaternion:
        """Make a rotation from four numbers as they stand on the wire: x, y, z, w."""
        x, y, z, w = _numbers(value, "xyzw")
        return cls(w, x, y, z)

    def __iter__(self) -> Iterator[float]:
        return iter((self.w, self.x, self.y, self.z))

    def __mul__(self, other: Quaternion) -> Quaternion:
        """Return the rotation that turns by `other` first, then by this."""
        a, b = self, other
        return Quaternion(
            a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z,
            a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y,
            a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w,
        )

    def to_xyzw(self) -> list[float]:
        """Return [x, y, z, w], as on the wire."""
        return [self.x, self.y, self.z, self.w]

    def conjugate(self) -> Quaternion:
        """Return the rotation back."""
        return Quaternion(self.w, -self.x, -self.y, -self.z)

    def rotate(self, vector: Any) -> Vector3:
        """Return a turned vector."""
        axis, given = Vector3(self.x, self.y, self.z), Vector3.of(vector)
        twice = _cross(axis, given) * 2.0
        return given + twice * self.w + _cross(axis, twice)


ORIGIN = Vector3(0.0, 0.0, 0.0)
IDENTITY = Quaternion(1.0, 0.0, 0.0, 0.0)


def euler_to_quaternion(degrees: Any) -> Quaternion:
    """Return the rotation of a file's `rotate`: Z·Y·X, about x first, in degrees."""
    angles = Vector3.of(degrees)
    half_x, half_y, half_z = (math.radians(angle) / 2 for angle in angles)
    cr, sr = math.cos(half_x), math.sin(half_x)
    cp, sp = math.cos(half_y), math.sin(half_y)
    cy, sy = math.cos(half_z), math.sin(half_z)
    return Quaternion(
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def quaternion_to_euler(rotation: Any) -> Vector3:
    """Return the degrees about x, y and z that `euler_to_quaternion` turns into this rotation.

    y is within ±90, the others within ±180. Where y is ±90 only the sum or the difference of the others is
    known (gimbal lock): then x is 0.
    """
    q = Quaternion.of(rotation)
    # (w - y, x + z) points along half of the angles' sum, (w + y, x - z) along half of their difference.
    sum_length, difference_length = math.hypot(q.w - q.y, q.x + q.z), math.hypot(q.w + q.y, q.x - q.z)
    half_sum, half_difference = math.atan2(q.x + q.z, q.w - q.y), math.atan2(q.x - q.z, q.w + q.y)
    if sum_length < LOCKED:
        half_sum = -half_difference
    elif difference_length < LOCKED:
        half_difference = -half_sum
    y = 2 * math.atan2(difference_length, sum_length) - math.pi / 2
    x, z = half_sum + half_difference, half_sum - half_difference
    return Vector3(_half_turn(x), math.degrees(y), _half_turn(z))


def from_o3de_euler_degrees(degrees: Any) -> Quaternion:
    """Return the rotation that the Editor shows as these degrees: X·Y·Z, about z first."""
    return euler_to_quaternion(-Vector3.of(degrees)).conjugate()


def to_o3de_euler_degrees(rotation: Any) -> Vector3:
    """Return the degrees that the Editor shows for a rotation: X·Y·Z, about z first."""
    return -quaternion_to_euler(Quaternion.of(rotation).conjugate())


def turn_from_y(direction: Any) -> Quaternion:
    """Return a rotation that turns +y, along which the engine's directional lights shine, to a direction."""
    given = Vector3.of(direction)
    if given.length() == 0:
        raise ValueError("expected a direction that is not zero")
    pitch = math.degrees(math.atan2(given.z, math.hypot(given.x, given.y)))
    return euler_to_quaternion([pitch, 0.0, math.degrees(math.atan2(-given.x, given.y))])


def _cross(a: Vector3, b: Vector3) -> Vector3:
    return Vector3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


def _half_turn(radians: float) -> float:
    return math.degrees(math.remainder(radians, math.tau))
