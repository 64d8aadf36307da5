"""Bodies and colliders. A collider needs a body: give an entity its body first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from o3de_sim.o3de_api.interface.math import IDENTITY, ORIGIN, Quaternion, Vector3
from o3de_sim.o3de_api.interface.tool import Tool

BodyType = Literal["static", "dynamic", "kinematic"]
ColliderShape = Literal["box", "sphere", "cylinder", "capsule"]


@dataclass(frozen=True)
class Collider:
    """A primitive shape in its entity's frame. Cylinders and capsules stand along z."""

    shape: ColliderShape
    size: Vector3
    """Full extents, in metres."""
    translate: Vector3 = ORIGIN
    """Of its centre, in metres."""
    rotate: Quaternion = IDENTITY

    @classmethod
    def of(cls, value: Collider | Mapping[str, Any]) -> Collider:
        """Make one from a mapping of the same names.

        Raises:
            ValueError: It has other names, or values that are none of these.
        """
        if isinstance(value, Collider):
            return value
        unknown = set(value) - {"shape", "size", "translate", "rotate"}
        if unknown or not {"shape", "size"} <= set(value):
            found = ", ".join(map(str, value)) or "nothing"
            raise ValueError(f"expected shape, size, and if needed translate and rotate, found {found}")
        return cls(
            value["shape"],
            Vector3.of(value["size"]),
            Vector3.of(value.get("translate", ORIGIN)),
            Quaternion.of(value.get("rotate", IDENTITY)),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return what is sent."""
        return {
            "shape": self.shape,
            "size": self.size.to_list(),
            "translate": self.translate.to_list(),
            "rotate": self.rotate.to_xyzw(),
        }


class PhysicsTool(Tool):
    """The operations `pc.*`."""

    def add_rigid_body(self, entity: str, type: BodyType, mass: float | None = None) -> None:  # noqa: A002
        """Give an entity a body; the mass of a dynamic one is in kilograms, or follows from its colliders."""
        self._call("pc.add_rigid_body", {"entity": entity, "type": type, "mass": mass})

    def add_colliders(self, entity: str, colliders: Iterable[Collider | Mapping[str, Any]]) -> None:
        """Give an entity colliders, all in one step."""
        shapes = [Collider.of(collider).to_wire() for collider in colliders]
        self._call("pc.add_colliders", {"entity": entity, "colliders": shapes})

    def add_mesh_collider(self, entity: str, asset_path: str) -> None:
        """Let an entity collide as the triangles of a mesh in the project. Not for dynamic bodies."""
        self._call("pc.add_mesh_collider", {"entity": entity, "asset_path": asset_path})

    def has_physics(self, entity: str) -> bool:
        """Return whether an entity has a body."""
        return bool(self._call("pc.has_physics", {"entity": entity}))
