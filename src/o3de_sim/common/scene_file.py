"""Scene files, read and checked: what is accepted here builds in the engine as it does in MuJoCo.

Every complaint names the file, the place in it, what was found and what would be right.
"""

from __future__ import annotations

import difflib
import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from o3de_sim.common.scene_rules import (
    MESH_SUFFIXES,
    BodyType,
    BrokenRule,
    Shape,
    Texture,
    check_light,
    check_names,
    check_object,
    check_part,
)
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import ORIGIN, Vector3

MAX_BYTES = 256 * 1024 * 1024  # of a scene, unpacked
MAX_DEPTH = 64
SURROGATE = re.compile("[\ud800-\udfff]")
ONE, DOWN = Vector3(1.0, 1.0, 1.0), Vector3(0.0, 0.0, -1.0)


@dataclass(frozen=True)
class CheckedPart:
    """A primitive shape, placed in its object's frame by its centre."""

    shape: Shape
    size: Vector3  # full extents in metres. Cylinders stand along z.
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN  # degrees, Z·Y·X
    color: tuple[float, ...] = (0.8, 0.8, 0.8)
    texture: Texture | None = None
    collision: bool = True

    def __post_init__(self) -> None:
        check_part(self)


@dataclass(frozen=True)
class CheckedObject:
    """An object in the world: a mesh, parts, or a mesh that collides as parts."""

    name: str
    category: str = ""
    color: str = ""
    room: str = ""
    translate: Vector3 = ORIGIN
    rotate: Vector3 = ORIGIN  # degrees, Z·Y·X
    scale: Vector3 = ONE
    asset_path: str | None = None  # relative to the scene file's folder
    parts: tuple[CheckedPart, ...] = ()
    rigid_body_type: BodyType = "static"
    mass: float | None = None  # kilograms
    collision: Literal["hull", "surface"] = "hull"

    def __post_init__(self) -> None:
        check_object(self, {"asset_path": self.asset_path})


@dataclass(frozen=True)
class CheckedLight:
    """A lamp (`point`) or the sun (`directional`)."""

    name: str = "light"
    type: Literal["point", "directional"] = "point"
    translate: Vector3 = ORIGIN
    direction: Vector3 = DOWN
    color: tuple[float, ...] = (1.0, 1.0, 1.0)
    intensity: float = 1.0

    def __post_init__(self) -> None:
        check_light(self)


@dataclass(frozen=True)
class CheckedScene:
    """A scene that is right."""

    scene_name: str
    scene_type: str = "indoor"
    objects: tuple[CheckedObject, ...] = ()
    lights: tuple[CheckedLight, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_names(self.objects)


def load_scene(config: Mapping[str, Any] | str | Path) -> CheckedScene:
    """Check a scene, given as the content of its file, or as the path."""
    if isinstance(config, Mapping):
        return check_scene(config)
    path = Path(config)
    if path.suffix.lower() in MESH_SUFFIXES:
        problem = (
            "a mesh, no scene file. Run `proctor export-o3de --scene` and build the scene.json it writes"
        )
        raise InvalidScene(str(path), problem)
    return check_scene(read_scene_file(path), str(path))


def check_scene(value: Any, file: str = "the scene") -> CheckedScene:
    """Check the content of a scene file; `file` is its name in messages."""
    scene: CheckedScene = _convert(Node(value, file), CheckedScene)
    return scene


class InvalidScene(O3DEError):
    """A scene is invalid. The place is where in the file: `objects[3].scale`, or `line 3, column 7`."""

    def __init__(self, file: str, problem: str, place: str = "") -> None:
        self.file, self.problem, self.place = file, problem, place
        super().__init__("bad_request", f"{file}: {place}: {problem}" if place else f"{file}: {problem}")


class Node:
    """A value and its place."""

    def __init__(self, value: Any, file: str, place: str = "") -> None:
        self.value, self.file, self.place = value, file, place

    def error(self, problem: str, key: str = "") -> InvalidScene:
        """Return the complaint about this value, or about what stands at a key of it."""
        place = f"{self.place}.{key}" if self.place and key else self.place or key
        return InvalidScene(self.file, problem, place)

    def fields(self, known: Collection[str], required: Collection[str]) -> dict[str, Node]:
        """Return the values of an object by their keys, all of them known and none missing."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"expected an object, found {_kind(self.value)}")
        for key in self.value:
            if key not in known:
                hint = difflib.get_close_matches(str(key), known, n=1)
                meant = f", did you mean '{hint[0]}'?" if hint else f"; known: {', '.join(known)}"
                raise self.error(f"unknown key '{key}'{meant}")
        for key in required:
            if key not in self.value:
                raise self.error(f"the key '{key}' is missing")
        prefix = f"{self.place}." if self.place else ""
        return {key: Node(value, self.file, f"{prefix}{key}") for key, value in self.value.items()}

    def items(self) -> list[Node]:
        """Return the values of a list."""
        if not isinstance(self.value, (list, tuple)):
            raise self.error(f"expected a list, found {_kind(self.value)}")
        return [Node(value, self.file, f"{self.place}[{index}]") for index, value in enumerate(self.value)]

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a text, found {_kind(self.value)}")
        return self.value

    def number(self) -> float:
        """Return a finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise self.error(f"expected a number, found {_kind(self.value)}")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.error(f"{number} is not allowed, expected a finite number")
        return number

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"expected true or false, found {_kind(self.value)}")
        return self.value

    def choice(self, options: Iterable[str]) -> str:
        """Return one of some texts."""
        allowed = list(options)
        if self.value not in allowed:
            hint = difflib.get_close_matches(str(self.value), allowed, n=1)
            meant = f", did you mean '{hint[0]}'?" if hint else ""
            raise self.error(f"expected one of {', '.join(allowed)}; found {self.value!r:.60}{meant}")
        return str(self.value)

    def vector(self) -> Vector3:
        """Return a triple, written as [1, 2, 3] or as {"x": 1, "y": 2, "z": 3}."""
        if isinstance(self.value, Vector3):
            return self.value
        if isinstance(self.value, Mapping):
            fields = self.fields("xyz", "xyz")
            return Vector3(*(fields[axis].number() for axis in "xyz"))
        if not isinstance(self.value, (list, tuple)) or len(self.value) != 3:
            raise self.error(f"expected three numbers, as [x, y, z] or with the keys x, y, z; found {self}")
        return Vector3(*(item.number() for item in self.items()))

    def __str__(self) -> str:
        return f"{self.value!r:.60}"


def _kind(value: Any) -> str:
    names = {
        type(None): "null",
        bool: f"{str(value).lower()}",
        str: f"the text {value!r:.40}",
        dict: "an object",
    }
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"the number {value!r:.40}"
    return names.get(type(value), "a list" if isinstance(value, (list, tuple)) else type(value).__name__)


READERS = {str: Node.text, float: Node.number, bool: Node.flag, Vector3: Node.vector}
_type_hints = lru_cache(get_type_hints)


def _convert(node: Node, kind: Any) -> Any:
    """Return the value of a node as a field of this type has it."""
    options = get_args(kind)
    if kind in READERS:
        return READERS[kind](node)
    if is_dataclass(kind):
        return _dataclass(node, kind)
    if get_origin(kind) is Literal:
        return node.choice(options)
    if get_origin(kind) is tuple:
        return tuple(_convert(item, options[0]) for item in node.items())
    return None if node.value is None else _convert(node, options[0])  # of a type that may be null


def _dataclass(node: Node, kind: Any) -> Any:
    hints = _type_hints(kind)
    found = node.fields(hints, [each.name for each in fields(kind) if each.default is MISSING])
    values = {key: _convert(value, hints[key]) for key, value in found.items() if key != "scale"}
    if "scale" in found:
        scale = found["scale"]
        values["scale"] = ONE * scale.number() if isinstance(scale.value, (int, float)) else scale.vector()
    try:
        return kind(**values)
    except BrokenRule as rule:
        raise node.error(rule.problem, rule.key) from None


def read_scene_file(path: Path) -> Any:
    """Return the content of a JSON file, compressed with gzip or not."""
    file = str(path)
    try:
        value = json.loads(_read(path).decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except UnicodeDecodeError as error:
        raise InvalidScene(file, f"not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidScene(file, f"invalid JSON: {error.msg}", place) from None
    except RecursionError:
        raise InvalidScene(file, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # a key that stands twice, or a number with thousands of digits
        raise InvalidScene(file, f"cannot be read: {error}") from None
    _check(value, file, "", 0)
    return value


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            is_packed = stream.read(2) == b"\x1f\x8b"  # gzip
            stream.seek(0)
            if path.suffix == ".gz" and not is_packed:
                raise InvalidScene(str(path), "not a gzip file, though its name ends with .gz")
            content = (gzip.GzipFile(fileobj=stream) if is_packed else stream).read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidScene(str(path), "no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or error
        raise InvalidScene(str(path), f"cannot be read: {problem}") from None
    if len(content) > MAX_BYTES:
        raise InvalidScene(str(path), f"has more than {MAX_BYTES // 2**20} MiB")
    return content


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key '{twice}' stands twice in one object")
    return result


def _check(value: Any, file: str, place: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidScene(file, f"nested deeper than {MAX_DEPTH} levels", place[:120])
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidScene(file, f"{value} is not allowed, expected a finite number", place)
    if isinstance(value, str) and not value.isprintable() and SURROGATE.search(value):
        raise InvalidScene(file, "half of a surrogate pair is not allowed, expected text", place)
    if isinstance(value, dict):
        for key, item in value.items():
            _check(item, file, f"{place}.{key}" if place else key, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, file, f"{place}[{index}]", depth + 1)
