"""What all tools have in common."""

from __future__ import annotations

from typing import Any, Protocol

from o3de_sim.o3de_api.interface.entity_id import EntityId


class Call(Protocol):
    """The agent's way to the engine. Without a timeout, the agent's own holds."""

    def __call__(self, op: str, args: dict[str, Any], timeout_s: float | None = None) -> Any:
        """Do an operation of the table and return its result."""


class Tool:
    """Some operations of the table, by one name. Each method is one operation.

    All methods raise O3DEError where the engine did not do what it was asked.
    """

    def __init__(self, call: Call) -> None:
        self._call = call


def entity_ids(result: list[str]) -> list[EntityId]:
    """Return the entities that an operation named."""
    return [EntityId(name) for name in result]
