"""The project's assets. Paths are relative to the project's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from o3de_sim.o3de_api.interface.math import Vector3
from o3de_sim.o3de_api.interface.tool import Tool


@dataclass(frozen=True)
class Bounds:
    """The box around a mesh, in the file's own axes and units, which an entity that shows it has, too."""

    low: Vector3
    high: Vector3


class AssetTool(Tool):
    """The operations `asset_tool.*`."""

    def exists(self, paths: Sequence[str]) -> list[bool]:
        """Return of each source file, such as `Assets/chair.gltf`, whether the engine has its product."""
        return list(self._call("asset_tool.exists", {"paths": list(paths)}))

    def bounds(self, path: str) -> Bounds:
        """Return the box around a glTF file of the project."""
        found = self._call("asset_tool.bounds", {"path": path})
        return Bounds(Vector3.of(found["low"]), Vector3.of(found["high"]))
