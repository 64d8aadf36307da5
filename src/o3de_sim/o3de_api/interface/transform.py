"""Where entities are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from o3de_sim.o3de_api.interface.math import Quaternion, Vector3
from o3de_sim.o3de_api.interface.tool import Tool


class TransformTool(Tool):
    """The operations `tc.*`. Positions are metres and, as rotations, in the world frame."""

    def get_position(self, entity: str) -> Vector3:
        """Return where an entity's origin is; in game mode, of an entity that lives there."""
        return Vector3.of(self._call("tc.get_position", {"entity": entity}))

    def set_position(self, entity: str, position: Any) -> None:
        """Move an entity, with all below it."""
        self._call("tc.set_position", {"entity": entity, "position": Vector3.of(position).to_list()})

    def get_rotation(self, entity: str) -> Quaternion:
        """Return how an entity is turned."""
        return Quaternion.from_xyzw(self._call("tc.get_rotation", {"entity": entity}))

    def set_rotation(self, entity: str, rotation: Any) -> None:
        """Turn an entity; four bare numbers are w, x, y, z."""
        self._call("tc.set_rotation", {"entity": entity, "rotation": Quaternion.of(rotation).to_xyzw()})

    def set_pose(self, entity: str, position: Any, rotation: Any) -> None:
        """Move and turn an entity in one step."""
        place, turn = Vector3.of(position).to_list(), Quaternion.of(rotation).to_xyzw()
        self._call("tc.set_pose", {"entity": entity, "position": place, "rotation": turn})

    def set_scale(self, entity: str, scale: Any) -> None:
        """Scale an entity by a factor, or by one along each of its own axes."""
        is_vector = isinstance(scale, Iterable) or hasattr(scale, "x")
        factors = Vector3.of(scale).to_list() if is_vector else float(scale)
        self._call("tc.set_scale", {"entity": entity, "scale": factors})
