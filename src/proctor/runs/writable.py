"""Making sure that the record of an episode can be written, and read again as the same record."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import UNSET

from proctor.core.errors import EvaluatorError
from proctor.exams.record_check import record_problem
from proctor.exams.results import EpisodeResult

PLAIN = (str, int, bool, type(None))


def check_writable(result: EpisodeResult) -> None:
    """Refuse a record that would make a run folder unreadable.

    JSON has no NaN, and its writer takes no numbers of numpy: either would be noticed only when the
    journal is written or read, where it costs the whole run.

    Raises:
        EvaluatorError: A value cannot be written, or not be read again; its place is named.
    """
    problem = _problem(result, "")
    if problem is None:
        try:
            msgspec.json.decode(msgspec.json.encode(result), type=EpisodeResult)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
            problem = str(error)
    if problem is None and (refused := record_problem(result)) is not None:  # as its readers would
        problem = ": ".join(refused)
    if problem is not None:
        raise EvaluatorError(f"the episode's record cannot be written: {problem.lstrip('.')}")


def _problem(value: Any, place: str) -> str | None:
    """Return what is wrong with the first value that JSON cannot hold, and where; None if there is none."""
    if type(value) is float:
        return None if math.isfinite(value) else f"{place}: expected a finite number, found {value}"
    if type(value) in PLAIN or value is UNSET:
        return None
    if isinstance(value, msgspec.Struct):
        inside = [(f"{place}.{name}", getattr(value, name)) for name in value.__struct_fields__]
    elif isinstance(value, dict):
        inside = [(f"{place}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        inside = [(f"{place}[{index}]", item) for index, item in enumerate(value)]
    else:
        kind = type(value)
        return f"{place}: expected a plain number or text, found {kind.__module__}.{kind.__qualname__}"
    return next((problem for at, item in inside if (problem := _problem(item, at)) is not None), None)
