"""Scene files: reading them, and nodes that know their place in the file for messages."""

from __future__ import annotations

import difflib
import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Vector3

MAX_BYTES = 256 * 1024 * 1024  # of a scene, unpacked
MAX_DEPTH = 64
SURROGATE = re.compile("[\ud800-\udfff]")


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
