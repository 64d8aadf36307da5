"""Prefabs: things made once and put up many times, such as robots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from o3de_sim.o3de_api.interface.entity_id import EntityId
from o3de_sim.o3de_api.interface.math import IDENTITY, ORIGIN, Quaternion, Vector3
from o3de_sim.o3de_api.interface.tool import Tool


class PrefabTool(Tool):
    """The operations `prefab_tool.*`. Paths are relative to the project's folder."""

    def instantiate(
        self, path: str, position: Any = ORIGIN, rotation: Any = IDENTITY, name: str | None = None
    ) -> EntityId:
        """Put a prefab into the level, at a pose in the world (metres); return its container."""
        args = {
            "path": path,
            "position": Vector3.of(position).to_list(),
            "rotation": Quaternion.of(rotation).to_xyzw(),
            "name": name,
        }
        return EntityId(self._call("prefab_tool.instantiate", args))

    def create(self, entities: Sequence[str], path: str) -> EntityId:
        """Make a prefab of entities; it is saved with the level. Their ids change."""
        return EntityId(self._call("prefab_tool.create", {"entities": list(entities), "path": path}))
