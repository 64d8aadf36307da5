"""What both ways to the engine can do."""

from __future__ import annotations

from typing import Any, Protocol


class Link(Protocol):
    """A way to the engine."""

    def greet(self, timeout_s: float) -> dict[str, Any]:
        """Return what the other end said of itself, after reaching it if need be."""

    def call(self, op: str, args: dict[str, Any], timeout_s: float) -> Any:
        """Do an operation and return its result, or raise O3DEError."""

    def close(self) -> None:
        """Let go of the engine."""
