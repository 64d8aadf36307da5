"""What the conformance kits write down: what was tried, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import numpy as np

from proctor.core.errors import ProctorError
from proctor.exams.names import AnyExam

TRIED_STEPS = 8  # so many steps show what an env or a policy does; a picture takes some milliseconds


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a contract that was tried out."""

    severity: Literal["ok", "warning", "error"]
    expected: str  # the rule, such as `step() after the end of an episode raises an error`
    found: str = ""
    remedy: str = ""


class Violation(Exception):
    """A rule does not hold. The message says what was found."""


def expect(*, holds: bool, found: str) -> None:
    """Say what was found where a rule does not hold."""
    if not holds:
        raise Violation(found)


class Checks:
    """The checks of one kit, in the order in which they were tried."""

    def __init__(self) -> None:
        self.items: list[Check] = []

    @contextmanager
    def rule(
        self, expected: str, remedy: str = "", *, severity: Literal["warning", "error"] = "error"
    ) -> Iterator[None]:
        """Try a rule in a `with` block; whatever is raised in it is a finding.

        `severity` is that of a violation. An error of another kind is always an error.
        """
        try:
            yield
        except Violation as violation:
            self.items.append(
                Check(severity=severity, expected=expected, found=str(violation), remedy=remedy)
            )
        except Exception as error:  # noqa: BLE001  code of others: whatever it raises is what was found
            self.items.append(
                Check(severity="error", expected=expected, found=error_line(error), remedy=remedy)
            )
        else:
            self.items.append(Check(severity="ok", expected=expected))

    @property
    def is_last_ok(self) -> bool:
        """Whether the rule before did hold, so that those which build on it can be tried."""
        return self.items[-1].severity != "error"


def attempt(call: Callable[..., Any], *arguments: Any) -> tuple[Any, str]:
    """Call code of others; return what it returned, or None and its error in one line."""
    try:
        return call(*arguments), ""
    except Exception as error:  # noqa: BLE001  as above
        return None, error_line(error)


def error_line(error: BaseException) -> str:
    """Return an error in one line; Proctor's own without their class."""
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, ProctorError) and text else f"raised {type(error).__name__}: {text}"


def difference(first: Any, second: Any, place: str) -> str:
    """Return where two observations or infos differ, empty if they are the same. NaN equals NaN."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if set(first) != set(second):
            return f"{place} has the keys {sorted(map(str, first))}, then {sorted(map(str, second))}"
        parts = ((first[key], second[key], f"{place}['{key}']") for key in first)
    elif isinstance(first, list | tuple) and isinstance(second, list | tuple) and len(first) == len(second):
        parts = ((a, b, f"{place}[{index}]") for index, (a, b) in enumerate(zip(first, second, strict=True)))
    elif isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        is_same = np.shape(first) == np.shape(second) and bool(
            np.array_equal(first, second, equal_nan=np.asarray(first).dtype.kind in "fc")
        )
        return "" if is_same else f"{place} differs"
    else:
        is_same = bool(first == second) or (first != first and second != second)  # noqa: PLR0124  NaN
        return "" if is_same else f"{place} is {first!r:.60}, then {second!r:.60}"
    return next((text for a, b, at in parts if (text := difference(a, b, at))), "")


def shortened(episode: Any, limit: int) -> Any:
    """Return the episode with another step limit, found by trying its fields; None if no field sets it."""
    for name in episode.__struct_fields__:
        value = getattr(episode, name)
        options = [limit] if value is None or type(value) is int else []
        if isinstance(value, msgspec.Struct):
            options = [
                replaced
                for inner in value.__struct_fields__
                if type(getattr(value, inner)) is int
                and (replaced := _replaced(value, inner, limit)) is not None
            ]
        for option in options:
            found = _replaced(episode, name, option)
            if found is not None and found.step_limit == limit:
                return found
    return None


def _replaced(value: Any, field: str, new: Any) -> Any:
    try:
        return msgspec.structs.replace(value, **{field: new})
    except (TypeError, ValueError, AttributeError):
        return None


def tried_actions(exam: AnyExam, count: int = TRIED_STEPS) -> list[Any]:
    """Return actions by chance, STOP not among them."""
    rng = np.random.default_rng(0)
    stop = exam.parse_action("STOP") if "STOP" in exam.actions else None
    found: list[Any] = []
    for step in range(20 * count):
        action = exam.parse_action(exam.sample_action(rng, step))
        if len(found) < count and (stop is None or action != stop):
            found.append(action)
    return found
