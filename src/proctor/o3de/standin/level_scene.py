"""A level of the Editor as a scene of the embedded world, and the robots that stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.spatial.transform import Rotation

from o3de_sim.constants import GROUND
from proctor.core.geometry import yaw_of_quaternion
from proctor.core.types import Array, Pose2, Vector3
from proctor.o3de.standin.asset_catalog import PRIMITIVES, AssetCatalog
from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.general_calls import ENVIRONMENT
from proctor.o3de.standin.level import Component, Entities, Entity, children, world_placement
from proctor.scenes.scene_config import ONE, ORIGIN, SMALLEST_M, Light, Part, SceneConfig, SceneObject

STATIC, DYNAMIC = "PhysX Static Rigid Body", "PhysX Dynamic Rigid Body"
PRIMITIVE_COLLIDER, MESH_COLLIDER = "PhysX Primitive Collider", "PhysX Mesh Collider"
ROBOT_MARK = "ROS2 Frame"
SPHERE, BOX, CAPSULE, CYLINDER = range(4)
GREY = (0.62, 0.62, 0.62)
"""Of the engine's primitives."""


class LevelScene(NamedTuple):
    """What game mode is made of."""

    scene: SceneConfig
    """Its assets are relative to the project's folder."""
    robots: list[tuple[str, Pose2]]
    """Name and place of each robot prefab in the level."""


def scene_of_level(name: str, entities: Entities, assets: AssetCatalog) -> LevelScene:
    """Return what there is to see and to bump into.

    Only what has a body and a collider on one entity collides. The ground is left out, since the embedded
    world has a floor, and so is what every new level has. Colliders without a mesh are seen, too.
    """
    builder = _Builder(entities, assets)
    for entity in children(entities, None):
        builder.add(entity)
    scene = SceneConfig(scene_name=name, objects=builder.objects, lights=builder.lights)
    return LevelScene(scene, builder.robots)


class _Builder:
    def __init__(self, entities: Entities, assets: AssetCatalog) -> None:
        self.entities, self.assets = entities, assets
        self.objects: list[SceneObject] = []
        self.lights: list[Light] = []
        self.robots: list[tuple[str, Pose2]] = []
        self._names: set[str] = set()

    def add(self, entity: Entity) -> None:
        """Add an entity, and all below it."""
        if entity.name in (GROUND, ENVIRONMENT):
            return
        at = world_placement(self.entities, entity)
        if self._is_robot(entity):
            x, y, z, w = at.rotation_xyzw
            yaw = yaw_of_quaternion(np.array([w, x, y, z]))
            self.robots.append((entity.name, Pose2(at.translation[0], at.translation[1], yaw)))
            return
        self._add_object(entity, at)
        self._add_lights(entity, at)
        for child in children(self.entities, entity.number):
            self.add(child)

    def _is_robot(self, entity: Entity) -> bool:
        """Return whether this is an instance of a prefab with a robot in it."""
        if entity.prefab is None:
            return False
        waiting = [entity]
        while waiting:
            one = waiting.pop()
            if one.find(ROBOT_MARK) is not None:
                return True
            waiting += children(self.entities, one.number)
        return False

    def _add_object(self, entity: Entity, at: Placement) -> None:
        scale = np.array(_own_scale(entity)) * at.scale
        asset, shape = self._mesh(entity)
        body = _body_type(entity)
        colliders = list(_colliders(entity, scale)) if body != "none" else []
        if any(component.kind.name == MESH_COLLIDER for component in entity.active()) and asset is not None:
            how = "surface" if body == "static" else "hull"
            self._put(entity, at, asset_path=asset, scale=scale, body=body, collision=how)
        elif asset is not None and colliders and not _would_bend(colliders, scale):
            parts = [_unscaled(part, scale) for part in colliders]
            self._put(entity, at, asset_path=asset, scale=scale, body=body, parts=parts)
        elif asset is not None:
            self._put(entity, at, asset_path=asset, scale=scale, body="none")
            if colliders:
                self._put(entity, at, parts=colliders, body=body)
        elif colliders or shape is not None:
            seen = [] if shape is None else [_shape_part(shape, scale, is_solid=False)]
            self._put(entity, at, parts=[*seen, *colliders], body=body if colliders else "none")

    def _put(
        self,
        entity: Entity,
        at: Placement,
        *,
        body: str,
        parts: list[Part] | None = None,
        asset_path: str | None = None,
        scale: Array | None = None,
        collision: str = "hull",
    ) -> None:
        mass = None
        dynamic = entity.find(DYNAMIC)
        if body == "dynamic" and dynamic is not None and not dynamic.properties["Configuration|Compute Mass"]:
            mass = dynamic.properties["Configuration|Mass"]
        self.objects.append(
            SceneObject(
                name=self._name(entity),
                translate=Vector3(*at.translation),
                rotate=_euler_deg(Rotation.from_quat(at.rotation_xyzw)),
                scale=ONE if scale is None else Vector3(*scale.tolist()),
                asset_path=asset_path,
                parts=parts or [],
                rigid_body_type=body,  # type: ignore[arg-type]
                mass=mass,
                collision=collision,  # type: ignore[arg-type]
            )
        )

    def _mesh(self, entity: Entity) -> tuple[str | None, str | None]:
        """Return the project's file that is seen, or the engine's shape, or neither."""
        component = next((item for item in entity.active() if item.kind.name == "Mesh"), None)
        product = None if component is None else component.properties[MODEL].product_
        if product is None:
            return None, None
        source = self.assets.source_of(product)
        asset = None if source is None else source.relative_to(self.assets.project).as_posix()
        return asset, PRIMITIVES.get(product)

    def _add_lights(self, entity: Entity, at: Placement) -> None:
        for component in entity.active():
            if component.kind.name not in ("Light", "Directional Light"):
                continue
            red, green, blue, _ = component.properties[f"{LIGHT}|Color"].quadruple_()
            ahead = Rotation.from_quat(at.rotation_xyzw).apply([0.0, 1.0, 0.0])  # lights shine along y
            self.lights.append(
                Light(
                    name=entity.name,
                    type="point" if component.kind.name == "Light" else "directional",
                    translate=Vector3(*at.translation),
                    direction=Vector3(*ahead.tolist()),
                    color=tuple(min(1.0, max(0.0, channel)) for channel in (red, green, blue)),
                    intensity=max(0.0, component.properties[f"{LIGHT}|Intensity"]),
                )
            )

    def _name(self, entity: Entity) -> str:
        """Return a name that no object has: in the Editor, several entities may have the same."""
        name, count = entity.name, 1
        while name in self._names:
            count += 1
            name = f"{entity.name} ({count})"
        self._names.add(name)
        return name


MODEL, LIGHT = "Controller|Configuration|Model Asset", "Controller|Configuration"


def _own_scale(entity: Entity) -> tuple[float, float, float]:
    component = next((item for item in entity.active() if item.kind.name == "Non-uniform Scale"), None)
    return (1.0, 1.0, 1.0) if component is None else component.properties["Non-uniform Scale"].triple_()


def _body_type(entity: Entity) -> str:
    for component in entity.active():
        if component.kind.name == STATIC:
            return "static"
        if component.kind.name == DYNAMIC:
            return "kinematic" if component.properties["Configuration|Type"] else "dynamic"
    return "none"


def _colliders(entity: Entity, scale: Array) -> Iterator[Part]:
    """Return the shapes that an entity collides as, in its frame, scaled."""
    for component in entity.active():
        if component.kind.name != PRIMITIVE_COLLIDER:
            continue
        read = component.properties
        if not read["Collider Configuration|Simulated"] or read["Collider Configuration|Trigger"]:
            continue
        shape, size = _shape_of(component)
        turn = Rotation.from_quat(read["Collider Configuration|Rotation"].quadruple_())
        stretched = np.linalg.norm(turn.as_matrix() * scale[:, None], axis=0)  # along each of its axes
        offset = np.array(read["Collider Configuration|Offset"].triple_()) * scale
        yield _part(shape, size * stretched, offset, turn)


def _shape_of(component: Component) -> tuple[str, Array]:
    read, number = component.properties, component.properties["Shape Configuration|Shape"]
    if number == BOX:
        return "box", np.array(read["Shape Configuration|Box|Dimensions"].triple_())
    if number == SPHERE:
        return "sphere", np.full(3, 2 * read["Shape Configuration|Sphere|Radius"])
    group = "Capsule" if number == CAPSULE else "Cylinder"
    width = 2 * read[f"Shape Configuration|{group}|Radius"]
    return "cylinder", np.array([width, width, read[f"Shape Configuration|{group}|Height"]])


def _shape_part(shape: str, size: Array, *, is_solid: bool) -> Part:
    return _part(shape, size, np.zeros(3), Rotation.identity(), is_solid=is_solid)


def _part(shape: str, size: Array, offset: Array, turn: Rotation, *, is_solid: bool = True) -> Part:
    size = np.maximum(size, SMALLEST_M)
    if shape == "cylinder" and size[0] != size[1]:
        size[:2] = size[:2].max()
    if shape == "sphere":
        size[:] = size.max()
    return Part(
        shape=shape,  # type: ignore[arg-type]
        size=Vector3(*size.tolist()),
        translate=Vector3(*offset.tolist()),
        rotate=_euler_deg(turn),
        color=GREY,
        collision=is_solid,
    )


def _would_bend(parts: list[Part], scale: Array) -> bool:
    """Return whether a scale differs from axis to axis in a way that scenes do not allow for their parts."""
    if len(set(scale.tolist())) == 1:
        return False
    return any(part.shape != "box" or part.rotate != ORIGIN for part in parts)


def _unscaled(part: Part, scale: Array) -> Part:
    """Return what becomes the part when its object is scaled."""
    return msgspec.structs.replace(
        part,
        size=Vector3(*(part.size.array() / scale).tolist()),
        translate=Vector3(*(part.translate.array() / scale).tolist()),
    )


def _euler_deg(turn: Rotation) -> Vector3:
    """Return the angles of a turn as scenes give them: about x first, then y, then z."""
    z, y, x = (turn.as_euler("ZYX", degrees=True).round(9) + 0.0).tolist()
    return Vector3(x, y, z)
