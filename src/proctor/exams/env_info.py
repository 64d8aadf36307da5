"""Reading what an env reports. A value that cannot be used ends the episode as a fault of the evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from proctor.core.errors import SimulationError
from proctor.core.interfaces import Env
from proctor.core.types import Info, Observation, Vector3

MAX_COORDINATE_M = 1e8
"""No world is larger, and distances between such places are still numbers that a record may hold."""


def checked_observation(env: Env, method: str, observation: Any) -> Observation:
    """Return an observation if it is one; else the policy would stumble over it, and be blamed.

    Raises:
        SimulationError: It is not a dict.
    """
    if isinstance(observation, Mapping):
        return observation  # type: ignore[return-value]  # a Mapping of another kind serves as well
    found = type(observation).__name__
    raise SimulationError(
        f"{type(env).__name__}.{method}() returned {found}, expected a dict of observations"
    )


def checked_info(env: Env, info: Any) -> Info:
    """Return the info of a step if it is a dict.

    Raises:
        SimulationError: It is not.
    """
    if isinstance(info, Mapping):
        return info  # type: ignore[return-value]
    raise SimulationError(
        f"{type(env).__name__}.step() returned {type(info).__name__} for info, expected a dict"
    )


def read_number(info: Info, key: str) -> float:
    """Return a number of an info as a plain float.

    Raises:
        SimulationError: It is missing, not a number, not finite or too large to be measured with.
    """
    value = _value(info, key)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= MAX_COORDINATE_M:
        raise SimulationError(f"info['{key}']: expected a finite number, {_found(value)}")
    return number


def read_point(info: Info, key: str) -> Vector3:
    """Return a position of an info: a vector, a mapping or three numbers, of numpy or not.

    Raises:
        SimulationError: It is missing, or a coordinate is not finite or too large to be measured with.
    """
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
    """Return a truth value of an info as a plain bool.

    Raises:
        SimulationError: It is missing, or neither true nor false: None, NaN, text, several values.
    """
    value = _value(info, key)
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise SimulationError(f"info['{key}']: expected true or false, {_found(value)}")
    return bool(number)


def _value(info: Info, key: str) -> Any:
    if key not in info:
        raise SimulationError(f"info has no '{key}', which this task measures")
    return info[key]


def _found(value: Any) -> str:
    return f"found {value!r:.120}"
