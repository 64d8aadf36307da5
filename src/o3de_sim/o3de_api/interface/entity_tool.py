"""Entities: making, finding, naming, and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from o3de_sim.o3de_api.interface.entity_id import EntityId
from o3de_sim.o3de_api.interface.math import ORIGIN, Vector3
from o3de_sim.o3de_api.interface.tool import Tool, entity_ids


class EntityTool(Tool):
    """The operations `entity_tool.*`."""

    def create(self, name: str, position: Any = ORIGIN, parent: str | None = None) -> EntityId:
        """Make an entity at a position in the world, in metres."""
        args = {"name": name, "position": Vector3.of(position).to_list(), "parent": parent}
        return EntityId(self._call("entity_tool.create", args))

    def find(self, name: str) -> list[EntityId]:
        """Return the entities of the level that have exactly this name."""
        return entity_ids(self._call("entity_tool.find", {"name": name}))

    def find_game(self, name: str) -> EntityId | None:
        """Return the entity of this name that lives in game mode, if there is one."""
        found = self._call("entity_tool.find_game", {"name": name})
        return None if found is None else EntityId(found)

    def delete(self, entity: str) -> None:
        """Remove an entity and all below it."""
        self._call("entity_tool.delete", {"entity": entity})

    def exists(self, entity: str) -> bool:
        """Return whether the entity is still there."""
        return bool(self._call("entity_tool.exists", {"entity": entity}))

    def get_name(self, entity: str) -> str:
        """Return an entity's name."""
        return str(self._call("entity_tool.get_name", {"entity": entity}))

    def set_name(self, entity: str, name: str) -> None:
        """Name an entity. Names need not be unique."""
        self._call("entity_tool.set_name", {"entity": entity, "name": name})

    def set_parent(self, entity: str, parent: str) -> None:
        """Put an entity below another, where it is in the world."""
        self._call("entity_tool.set_parent", {"entity": entity, "parent": parent})

    def children(self, entity: str) -> list[EntityId]:
        """Return the entities right below one."""
        return entity_ids(self._call("entity_tool.children", {"entity": entity}))

    def components(self, entity: str, names: Sequence[str]) -> list[bool]:
        """Return which of these components an entity has, by the names of the Editor's Add menu."""
        return list(self._call("entity_tool.components", {"entity": entity, "names": list(names)}))
