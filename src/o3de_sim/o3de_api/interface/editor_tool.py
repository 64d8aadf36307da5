"""The Editor: its levels."""

from __future__ import annotations

from typing import Any

from o3de_sim.o3de_api.interface.entity_id import EntityId
from o3de_sim.o3de_api.interface.math import Vector3
from o3de_sim.o3de_api.interface.tool import Tool


class EditorTool(Tool):
    """The operations `editor_tool.*`. Opening and making levels takes seconds to minutes: give them time."""

    def create_new_entity_at_position(self, position: Any, parent: str | None = None) -> EntityId:
        """Make an entity at a position in the world, in metres; the Editor names it."""
        args = {"position": Vector3.of(position).to_list(), "parent": parent}
        return EntityId(self._call("editor_tool.create_new_entity_at_position", args))

    def create_level(self, name: str, timeout_s: float | None = None) -> None:
        """Make an empty level of this name and open it."""
        self._call("editor_tool.create_level", {"name": name}, timeout_s)

    def open_level(self, name: str, timeout_s: float | None = None) -> None:
        """Open a level. All entities known until then are gone."""
        self._call("editor_tool.open_level", {"name": name}, timeout_s)

    def save_level(self, timeout_s: float | None = None) -> None:
        """Save the open level."""
        self._call("editor_tool.save_level", {}, timeout_s)

    def level_exists(self, name: str) -> bool:
        """Return whether the project has a level of this name."""
        return bool(self._call("editor_tool.level_exists", {"name": name}))

    def current_level(self) -> str:
        """Return the name of the open level, or an empty text."""
        return str(self._call("editor_tool.current_level", {}))
