"""What a benchmark returns."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """Ours against theirs, in one run on one machine."""

    name: str
    ours_s: float
    theirs_s: float
    bar: float
    """The largest allowed ours/theirs."""
