"""Where commands print, and how they end."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from proctor.core.plain_text import plain

DONE, TOO_MANY_FAULTS, USER_ERROR, UNAVAILABLE, OVER_BUDGET, INTERRUPTED = 0, 1, 2, 3, 4, 130


class _Terminal(Console):
    """A console on which no text of others, such as an episode's id, can move the cursor or hide a line."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(plain(item) if isinstance(item, str) else item for item in objects), **options)

    def say(self, *lines: str) -> None:
        """Print lines as they are: without markup, and not broken where the terminal ends."""
        for line in lines:
            self.print(line, markup=False, soft_wrap=True)


console = _Terminal(highlight=False)
errors = _Terminal(stderr=True, highlight=False)
