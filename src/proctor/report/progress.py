"""How far the writing of a report has come, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how many episodes are done, and how many there are."""


def tracked(items: Sequence[T], what: str, on_progress: OnProgress | None) -> Iterator[T]:
    """Yield items, and report after each how many are done."""
    for done, item in enumerate(items, 1):
        yield item
        if on_progress is not None:
            on_progress(what, done, len(items))
