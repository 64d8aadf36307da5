"""Reading what an env reports. A value that cannot be used ends the episode as a fault of the evaluator."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from proctor.core.errors import SimulationError
from proctor.core.types import Info, Vector3

MAX_COORDINATE_M = 1e8
"""No world is larger, and distances between such places are still numbers that a record may hold."""


def read_number(info: Info, key: str) -> float:
    """Return a number of an info as a plain float; it must be finite and not too large to measure with."""
    value = _value(info, key)
    number = _float(value)
    if not abs(number) <= MAX_COORDINATE_M:
        raise SimulationError(f"info['{key}']: expected a finite number, {_found(value)}")
    return number


def read_point(info: Info, key: str) -> Vector3:
    """Return a finite position of an info: a vector, a mapping or three numbers, of numpy or not."""
    value = _value(info, key)
    try:
        point = Vector3.of(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise SimulationError(f"info['{key}']: expected finite x, y and z, {_found(value)}") from None
    if not max(abs(point.x), abs(point.y), abs(point.z)) <= MAX_COORDINATE_M:
        raise SimulationError(
            f"info['{key}']: expected coordinates up to {MAX_COORDINATE_M:g} m, {_found(value)}"
        )
    return point


def read_flag(info: Info, key: str) -> bool:
    """Return a truth value of an info as a plain bool; None, NaN, text and several values are refused."""
    value = _value(info, key)
    number = math.nan if isinstance(value, str | bytes) else _float(value)
    if math.isnan(number):
        raise SimulationError(f"info['{key}']: expected true or false, {_found(value)}")
    return bool(number)


def read_more(info: Info, known: Collection[str]) -> dict[str, Any]:
    """Return all entries of an info but the known ones that are words or finite numbers, as plain values."""
    return {
        str(key): value.item() if isinstance(value, np.generic) else value
        for key, value in info.items()
        if key not in known and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, bool | str | np.bool_):
        return True
    return isinstance(value, int | float | np.integer | np.floating) and math.isfinite(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _value(info: Info, key: str) -> Any:
    if key not in info:
        raise SimulationError(f"info has no '{key}', which this task measures")
    return info[key]


def _found(value: Any) -> str:
    return f"found {value!r:.120}"
