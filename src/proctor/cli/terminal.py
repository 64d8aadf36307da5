"""Where commands print, and how they end."""

from __future__ import annotations

from rich.console import Console

DONE, TOO_MANY_FAULTS, USER_ERROR, INTERRUPTED = 0, 1, 2, 130

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)
