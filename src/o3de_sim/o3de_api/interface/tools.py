"""The tools of the agent: each method is one operation of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from o3de_sim.o3de_api.interface.math import IDENTITY, ORIGIN, Quaternion, Vector3

BodyType = Literal["static", "dynamic", "kinematic"]
ColliderShape = Literal["box", "sphere", "cylinder", "capsule"]
Primitive = Literal["box", "sphere", "cylinder", "plane"]
Call = Callable[..., Any]
"""`O3DEAgent.call`: takes the operation, its arguments and, if not the agent's own, a timeout."""


class EntityId(str):
    """An entity of the open level, in the engine's own words: `[1234]`. It ends with the level."""

    __slots__ = ()


class Tool:
    """Some operations of the table, by one name. Each method is one operation.

    All methods raise O3DEError where the engine did not do what it was asked.
    """

    def __init__(self, call: Call) -> None:
        self._call = call


def entity_ids(result: list[str]) -> list[EntityId]:
    """Return the entities that an operation named."""
    return [EntityId(name) for name in result]


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
        """Make one from a mapping of the same names."""
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


class RenderTool(Tool):
    """The operations `render_tool.*`."""

    def add_mesh(
        self, entity: str, asset_path: str | None = None, primitive: Primitive | None = None
    ) -> None:
        """Let an entity look like a mesh of the project, or like one of the engine's of 1 m extent."""
        args = {"entity": entity, "asset_path": asset_path, "primitive": primitive}
        self._call("render_tool.add_mesh", args)

    def add_light(
        self,
        entity: str,
        type: Literal["point", "directional"],  # noqa: A002 - as files call it
        color: Sequence[float] = (1.0, 1.0, 1.0),
        intensity: float | None = None,
    ) -> None:
        """Let an entity shine, in red, green and blue from 0 to 1, a directional light along its +y.

        The intensity of a directional light is in EV100 (illuminance), that of a point in lumen.
        """
        args = {"entity": entity, "type": type, "color": list(color), "intensity": intensity}
        self._call("render_tool.add_light", args)

    def screenshot(self, path: str, timeout_s: float | None = None) -> str:
        """Save what the viewport shows, as PNG or PPM in the project's user folder; return the whole path."""
        return str(self._call("render_tool.screenshot", {"path": path}, timeout_s))


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


class GeneralTool(Tool):
    """The operations `general.*`."""

    def wait_for_propagation(self, frames: int = 1, timeout_s: float | None = None) -> None:
        """Wait until the engine has drawn so many more frames: what was changed is then so everywhere."""
        self._call("general.wait_for_propagation", {"frames": frames}, timeout_s)


class SimulationTool(Tool):
    """The operations `simulation_tool.*`."""

    def enter_game_mode(self, timeout_s: float | None = None) -> None:
        """Let the level live: physics runs, ROS 2 speaks. Returns when it does."""
        self._call("simulation_tool.enter_game_mode", {}, timeout_s)

    def exit_game_mode(self, timeout_s: float | None = None) -> None:
        """Go back to editing: the level is again what it was. Returns when it is."""
        self._call("simulation_tool.exit_game_mode", {}, timeout_s)

    def is_in_game_mode(self) -> bool:
        """Return whether the level lives."""
        return bool(self._call("simulation_tool.is_in_game_mode", {}))

    def toggle_physics(self, enabled: bool) -> None:  # noqa: FBT001 - the documents call it so
        """Let physics run or rest while editing. In game mode it runs anyway."""
        self._call("simulation_tool.toggle_physics", {"enabled": enabled})


class Ros2Tool(Tool):
    """The operations `ros2_tool.*`."""

    def is_available(self) -> bool:
        """Return whether the project has the ROS 2 Gem."""
        return bool(self._call("ros2_tool.is_available", {}))

    def missing_components(self, entity: str) -> list[str]:
        """Return what a robot, this entity and all below it, lacks to sense and to drive."""
        return list(self._call("ros2_tool.missing_components", {"entity": entity}))
