"""A value in a scene file that knows its place, and complains by it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Vector3


class InvalidScene(O3DEError):
    """A scene is not what it should be.

    Args:
        file: Where it is from.
        problem: What was found and what would be right.
        place: Where in it: `objects[3].scale`, or `line 3, column 7`.
    """

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

    def channels(self, counts: Collection[int]) -> tuple[float, ...]:
        """Return a colour: so many numbers from 0 to 1."""
        found = tuple(item.number() for item in self.items())
        if len(found) not in counts or not all(0 <= channel <= 1 for channel in found):
            expected = " or ".join(map(str, counts))
            raise self.error(f"expected {expected} channels from 0 to 1, found {list(found)}")
        return found

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
