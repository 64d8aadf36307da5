"""The kinds of arguments that operations take: how clients send them, and how the agent checks them.

A check takes what came as JSON and returns what the operation gets, or raises `Unfit` with what is right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from o3de_sim.editor.azlmbr_calls import Values
from o3de_sim.editor.session import GivenEntity
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import IDENTITY, ORIGIN, Quaternion, Vector3

MAX_NAME = 128
MAX_PATH = 255
MAX_LIST = 4096
FARTHEST_M = 100_000.0
LEVEL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ENTITY_TEXT = re.compile(r"\[?[0-9]{1,20}\]?")
SHAPES = ("box", "sphere", "cylinder", "capsule")


class Unfit(Exception):
    """A value is not of its kind. The text says what is right."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class ArgumentKind:
    """A kind of argument.

    `check` returns the value as the operation gets it, `encode` the JSON of what a caller of a tool gives.
    `is_entity`: it is the text of an entity's id, or a list of them, which is looked up before the call.
    `must_be_edited`: the entity may not be one of the running game.
    """

    check: Callable[[Any], Any]
    encode: Callable[[Any], Any] = _as_it_is
    is_entity: bool = False
    must_be_edited: bool = False


@dataclass(frozen=True)
class Argument:
    """An argument of an operation. `null` also stands for the default, if that is None."""

    name: str
    kind: ArgumentKind
    is_needed: bool = True
    default: Any = None

    def _stands_for_default(self, value: Any) -> bool:
        return value is None and self.default is None and not self.is_needed

    def encode(self, value: Any) -> Any:
        """Return what a caller of the tools gives as JSON."""
        return None if self._stands_for_default(value) else self.kind.encode(value)

    def value(self, operation: str, given: dict[str, Any]) -> Any:
        """Return the checked value; O3DEError bad_request if it is missing, or not of its kind."""
        if self.name not in given:
            if self.is_needed:
                raise O3DEError("bad_request", f'{operation} needs the argument "{self.name}"')
            return self.default
        found = given[self.name]
        if self._stands_for_default(found):
            return None
        try:
            return self.kind.check(found)
        except Unfit as right:
            problem = f'{operation}: "{self.name}" must be {right}; found {shown(found)}'
            raise O3DEError("bad_request", problem) from None


def shown(value: Any) -> str:
    """Return a value as an error shows it: short, whatever it is."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object with {len(value)} keys"
    if isinstance(value, str) and len(value) > 80:
        return f"a text of {len(value)} characters"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    return ascii(value)


def _number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Unfit(f"a number from {low:g} to {high:g}")
    return float(value)


def _numbers(value: Any, count: int, low: float, high: float) -> Values:
    right = f"a list of {count} numbers from {low:g} to {high:g}"
    if not isinstance(value, list) or len(value) != count:
        raise Unfit(right)
    try:
        return tuple(_number(part, low, high) for part in value)
    except Unfit:
        raise Unfit(right) from None


def _plain(right: str, is_right: Callable[[Any], object]) -> ArgumentKind:
    """Return the kind of values that operations get as they came."""

    def check(value: Any) -> Any:
        if not is_right(value):
            raise Unfit(right)
        return value

    return ArgumentKind(check)


def _is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()


def _is_project_path(value: Any) -> bool:
    if not _is_text(value, MAX_PATH) or len(value.encode()) > MAX_PATH or set(value) & set('\\:@~*?"<>|'):
        return False
    return all(
        part not in ("", ".", "..") and part == part.strip() and not part.endswith(".")
        for part in value.split("/")
    )


def _rotation(value: Any) -> Values:
    right = "a quaternion [x, y, z, w] of length one"
    try:
        found = _numbers(value, 4, -1.001, 1.001)
    except Unfit:
        raise Unfit(right) from None
    length = math.sqrt(math.fsum(part * part for part in found))
    if abs(length - 1.0) > 1e-3:
        raise Unfit(right)
    return tuple(part / length for part in found)


def _scale(value: Any) -> float | Values:
    low, high = 1e-3, 1e4
    try:
        return _numbers(value, 3, low, high) if isinstance(value, list) else _number(value, low, high)
    except Unfit:
        raise Unfit(f"a number from {low:g} to {high:g}, or three of them") from None


@dataclass(frozen=True)
class Collider:
    """A primitive shape in its entity's frame. Cylinders and capsules stand along z."""

    shape: str
    size: Vector3
    """Full extents, in metres."""
    translate: Vector3 = ORIGIN
    """Of its centre, in metres."""
    rotate: Quaternion = IDENTITY


def _collider(value: Any) -> Collider:
    right = (
        f'an object with "shape" ({", ".join(SHAPES)}), "size" (three lengths in metres), and if need be '
        '"translate" (three metres) and "rotate" (a quaternion [x, y, z, w])'
    )
    known = {"shape", "size", "translate", "rotate"}
    if not isinstance(value, dict) or not {"shape", "size"} <= set(value) <= known:
        raise Unfit(right)
    if not isinstance(value["shape"], str) or value["shape"] not in SHAPES:
        raise Unfit(right)
    try:
        found = Collider(
            value["shape"],
            Vector3(*_numbers(value["size"], 3, 1e-4, 1e4)),
            Vector3(*_numbers(value.get("translate", [0.0, 0.0, 0.0]), 3, -FARTHEST_M, FARTHEST_M)),
            Quaternion.from_xyzw(_rotation(value.get("rotate", [0.0, 0.0, 0.0, 1.0]))),
        )
    except Unfit as part:
        raise Unfit(f"{right}; one of its parts must be {part}") from None
    if found.shape == "capsule" and found.size.z <= found.size.x:
        raise Unfit(f"{right}; a capsule is higher (its third length) than it is wide (its first)")
    return found


def _encode_position(value: Any) -> list[float]:
    return Vector3.of(value).to_list()


def _encode_rotation(value: Any) -> list[float]:
    return Quaternion.of(value).to_xyzw()


def _encode_scale(value: Any) -> float | list[float]:
    is_vector = isinstance(value, Iterable) or hasattr(value, "x")
    return Vector3.of(value).to_list() if is_vector else float(value)


def _encode_collider(value: Collider | Mapping[str, Any]) -> dict[str, Any]:
    encoders = {"size": _encode_position, "translate": _encode_position, "rotate": _encode_rotation}
    fields = value if isinstance(value, Mapping) else vars(value)
    return {key: encoders[key](part) if key in encoders else part for key, part in fields.items()}


def number(low: float, high: float) -> ArgumentKind:
    """Return the kind of numbers between two."""
    return ArgumentKind(lambda value: _number(value, low, high))


def integer(low: int, high: int) -> ArgumentKind:
    """Return the kind of whole numbers between two."""
    return _plain(
        f"a whole number from {low} to {high}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
    )


def choice(*words: str) -> ArgumentKind:
    """Return the kind of a few words."""
    return _plain(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def list_of(kind: ArgumentKind, shortest: int = 1, longest: int = MAX_LIST) -> ArgumentKind:
    """Return the kind of lists of another kind."""

    def check(value: Any) -> list[Any]:
        if not isinstance(value, list) or not shortest <= len(value) <= longest:
            raise Unfit(f"a list of {shortest} to {longest}")
        return [_element(kind, index, part) for index, part in enumerate(value)]

    def encode(values: Iterable[Any]) -> list[Any]:
        return [kind.encode(value) for value in values]

    return ArgumentKind(check, encode, kind.is_entity, kind.must_be_edited)


def _element(kind: ArgumentKind, index: int, value: Any) -> Any:
    try:
        return kind.check(value)
    except Unfit as right:
        raise Unfit(f"a list, and its [{index}], which is {shown(value)}, must be {right}") from None


def _text(what: str, longest: int) -> ArgumentKind:
    return _plain(f"{what} of 1 to {longest} printable characters", lambda value: _is_text(value, longest))


def _matching(pattern: re.Pattern[str], right: str) -> ArgumentKind:
    return _plain(right, lambda value: isinstance(value, str) and pattern.fullmatch(value))


AN_ID = 'the id of an entity as it was given, such as "[1234]"'
A_LEVEL = "the name of a level, 1 to 64 of the characters A-Z a-z 0-9 _ -, without a folder"
A_PATH = f"a path in the project of at most {MAX_PATH} bytes, relative, with / and without .."
NAME = _text("a name", MAX_NAME)
PATH = _plain(A_PATH, _is_project_path)
ENTITY_ID = _matching(ENTITY_TEXT, AN_ID)
EDITED_ENTITY = replace(ENTITY_ID, is_entity=True, must_be_edited=True)

# What operations annotate their parameters with: the type that they get, and the kind that is checked.
Token = Annotated[str, _text("a text", 1024)]
Name = Annotated[str, NAME]
Names = Annotated[list[str], list_of(NAME)]
LevelName = Annotated[str, _matching(LEVEL_NAME, A_LEVEL)]
ProjectPath = Annotated[str, PATH]
ProjectPaths = Annotated[list[str], list_of(PATH)]
Entity = Annotated[GivenEntity, replace(ENTITY_ID, is_entity=True)]
EditedEntity = Annotated[GivenEntity, EDITED_ENTITY]
EditedEntities = Annotated[list[GivenEntity], list_of(EDITED_ENTITY)]
EntityText = Annotated[str, ENTITY_ID]
Position = Annotated[
    Values, ArgumentKind(lambda value: _numbers(value, 3, -FARTHEST_M, FARTHEST_M), _encode_position)
]
Rotation = Annotated[Values, ArgumentKind(_rotation, _encode_rotation)]
Scale = Annotated[float | Values, ArgumentKind(_scale, _encode_scale)]
Color = Annotated[Values, ArgumentKind(lambda value: _numbers(value, 3, 0.0, 1.0), list)]
Flag = Annotated[bool, _plain("true or false", lambda value: isinstance(value, bool))]
Colliders = Annotated[list[Collider], list_of(ArgumentKind(_collider, _encode_collider))]
