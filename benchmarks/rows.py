"""What a benchmark returns."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Ours against theirs, in one run on one machine."""

    name: str
    ours: float
    theirs: float
    """A peer's value, or the budget."""
    bar: float
    """The largest allowed ours/theirs."""
    unit: str = "s"
    """Seconds are printed as milliseconds, other values as they are."""


class NotMeasured(NamedTuple):
    """A row, or a group of rows, that could not be measured."""

    name: str
    reason: str
    is_failure: bool = True
    """False if the machine lacks what the measurement needs."""
