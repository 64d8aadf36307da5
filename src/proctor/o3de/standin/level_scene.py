"""A level of the Editor as a scene of the embedded world, and the robots that stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.spatial.transform import Rotation

from o3de_sim.common.scene_builder import LightType, from_engine
from o3de_sim.constants import ENVIRONMENT, GROUND
from o3de_sim.editor.operations import bodies
from o3de_sim.o3de_api.interface.math import Quaternion, quaternion_to_euler
from proctor.core.geometry import yaw_of_quaternion
from proctor.core.types import Array, Pose2, Vector3
from proctor.o3de.standin.az_values import Placement
from proctor.o3de.standin.level import Component, Entities, Entity, children, descendants, world_placement
from proctor.o3de.standin.project_files import PRIMITIVES, AssetCatalog, engine_turn
from proctor.scenes.scene_config import ONE, SMALLEST_M, Light, Part, SceneConfig, SceneObject

SPHERE, BOX, CAPSULE, CYLINDER = range(4)


class LevelScene(NamedTuple):
    """What game mode is made of."""

    scene: SceneConfig  # its assets are relative to the project's folder
    robots: list[tuple[str, Pose2]]  # name and place of each robot prefab in the level


def scene_of_level(name: str, entities: Entities, assets: AssetCatalog) -> LevelScene:
    """Return what there is to see and to bump into.

    Only what has a body and a collider on one entity collides. The ground is left out, since the embedded
    world has a floor, and so is what every new level has. Colliders are seen where there is no mesh file.
    """
    builder = _Builder(entities, assets)
    for entity in children(entities, None):
        builder.add(entity)
    scene = SceneConfig(scene_name=name, objects=builder.objects, lights=builder.lights)
    return LevelScene(scene, builder.robots)


class _Look(NamedTuple):
    """What is seen of an entity."""

    entity: Entity
    at: Placement  # in the world
    scale: Array  # along its own axes, all in all
    file: Path | None  # the project's mesh, or None for one of the engine's shapes
    shape: str


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
        body = _body_type(entity)
        looks = list(self._looks(entity, is_whole=body != "none"))
        colliders = list(_colliders(entity, _scale(entity, at))) if body != "none" else []
        if any(component.kind.name == bodies.MESH for component in entity.active()):
            self._add_surfaces(looks, body)
        elif colliders:
            self._add_solid(entity, at, body, colliders, looks)
        else:
            self._add_seen(looks)

    def _looks(self, entity: Entity, *, is_whole: bool) -> Iterator[_Look]:
        """Return what is seen of an entity and, if it is one body, of those below that are none themselves.

        Others below are added as they are.
        """
        at = world_placement(self.entities, entity)
        self._add_lights(entity, at)
        component = next((item for item in entity.active() if item.kind.name == "Mesh"), None)
        product = None if component is None else component.properties[MODEL].product_
        if product is not None:
            file, scale = self.assets.source_of(product), _scale(entity, at)
            if file is not None or product in PRIMITIVES:
                yield _Look(entity, at, scale, file, PRIMITIVES.get(product, ""))
        for child in children(self.entities, entity.number):
            if is_whole and _body_type(child) == "none" and not self._is_robot(child):
                yield from self._looks(child, is_whole=True)
            else:
                self.add(child)

    def _is_robot(self, entity: Entity) -> bool:
        """Return whether this is an instance of a prefab with a robot in it."""
        inside = (entity, *descendants(self.entities, entity.number))
        return entity.prefab is not None and any(one.find("ROS2 Frame") for one in inside)

    def _add_surfaces(self, looks: list[_Look], body: str) -> None:
        """Add a mesh that collides as itself."""
        for look in looks:
            if look.file is not None:
                self._put_mesh(look, body, collision="surface" if body == "static" else "hull")

    def _add_solid(
        self, entity: Entity, at: Placement, body: str, colliders: list[Part], looks: list[_Look]
    ) -> None:
        """Add a body. The first of its meshes has its colliders, so that these are not seen."""
        meshes = [look for look in looks if look.file is not None]
        seen = [_seen_part(look, at) for look in looks if look.file is None]
        parts = [part for part in seen if not any(_alike(part, other) for other in colliders)] + colliders
        if meshes and self._put_mesh(meshes[0]._replace(entity=entity), body, parts=parts, parts_at=at):
            meshes = meshes[1:]
        else:
            self._put(entity, at, body, parts=parts)
        self._add_seen(meshes)

    def _add_seen(self, looks: list[_Look]) -> None:
        """Add what is seen only."""
        for look in looks:
            if look.file is not None:
                self._put_mesh(look, "none")
            else:
                self._put(look.entity, look.at, "none", parts=[_seen_part(look, look.at)])

    def _put_mesh(
        self,
        look: _Look,
        body: str,
        *,
        parts: list[Part] | None = None,
        parts_at: Placement | None = None,
        collision: str = "hull",
    ) -> bool:
        """Add a mesh with parts that are placed elsewhere, and return whether this could be done."""
        if look.file is None:
            return False
        turn = Rotation.from_matrix(engine_turn(look.file))
        scale = np.abs(turn.inv().apply(look.scale)).round(12)
        frame = Rotation.from_quat(look.at.rotation_xyzw) * turn
        placed = []
        if parts and parts_at is not None:
            outer = Rotation.from_quat(parts_at.rotation_xyzw)
            offset = np.subtract(parts_at.translation, look.at.translation)
            for part in parts:
                place = frame.inv().apply(outer.apply(part.translate.array()) + offset)
                part_turn = frame.inv() * outer * _rotation(part.rotate)
                placed.append(_part(part.shape, part.size.array(), place, part_turn, is_solid=part.collision))
            if _would_bend(placed, scale):
                return False
            placed = [_unscaled(part, scale) for part in placed]
        path = look.file.relative_to(self.assets.project).as_posix()
        at = look.at._replace(rotation_xyzw=tuple(frame.as_quat().tolist()))
        self._put(look.entity, at, body, parts=placed, asset_path=path, scale=scale, collision=collision)
        return True

    def _put(
        self,
        entity: Entity,
        at: Placement,
        body: str,
        *,
        parts: list[Part],
        asset_path: str | None = None,
        scale: Array | None = None,
        collision: str = "hull",
    ) -> None:
        mass = None
        dynamic = entity.find(bodies.DYNAMIC)
        if body == "dynamic" and dynamic is not None and not dynamic.properties["Configuration|Compute Mass"]:
            mass = dynamic.properties["Configuration|Mass"]
        self.objects.append(
            SceneObject(
                name=self._name(entity),
                translate=Vector3(*at.translation),
                rotate=_euler_deg(Rotation.from_quat(at.rotation_xyzw)),
                scale=ONE if scale is None else Vector3(*scale.tolist()),
                asset_path=asset_path,
                parts=parts,
                rigid_body_type=body,  # type: ignore[arg-type]
                mass=mass,
                collision=collision,  # type: ignore[arg-type]
            )
        )

    def _add_lights(self, entity: Entity, at: Placement) -> None:
        for component in entity.active():
            if component.kind.name not in ("Light", "Directional Light"):
                continue
            red, green, blue, _ = component.properties[f"{LIGHT}|Color"].numbers_()
            ahead = Rotation.from_quat(at.rotation_xyzw).apply([0.0, 1.0, 0.0])  # lights shine along y
            kind: LightType = "point" if component.kind.name == "Light" else "directional"
            self.lights.append(
                Light(
                    name=entity.name,
                    type=kind,
                    translate=Vector3(*at.translation),
                    direction=Vector3(*ahead.tolist()),
                    color=tuple(min(1.0, max(0.0, channel)) for channel in (red, green, blue)),
                    intensity=max(0.0, from_engine(kind, component.properties[f"{LIGHT}|Intensity"])),
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


def _scale(entity: Entity, at: Placement) -> Array:
    """Return how an entity scales what it shows and collides with, along its own axes."""
    component = next((item for item in entity.active() if item.kind.name == "Non-uniform Scale"), None)
    own = (1.0, 1.0, 1.0) if component is None else component.properties["Non-uniform Scale"].numbers_()
    return np.array(own) * at.scale


def _body_type(entity: Entity) -> str:
    for component in entity.active():
        if component.kind.name == bodies.STATIC:
            return "static"
        if component.kind.name == bodies.DYNAMIC:
            return "kinematic" if component.properties["Configuration|Type"] else "dynamic"
    return "none"


def _colliders(entity: Entity, scale: Array) -> Iterator[Part]:
    """Return the shapes that an entity collides as, in its frame, scaled."""
    for component in entity.active():
        if component.kind.name != bodies.PRIMITIVE:
            continue
        read = component.properties
        if not read["Collider Configuration|Simulated"] or read["Collider Configuration|Trigger"]:
            continue
        shape, size = _shape_of(component)
        turn = Rotation.from_quat(read["Collider Configuration|Rotation"].numbers_())
        stretched = np.linalg.norm(turn.as_matrix() * scale[:, None], axis=0)  # along each of its axes
        offset = np.array(read["Collider Configuration|Offset"].numbers_()) * scale
        yield _part(shape, size * stretched, offset, turn)


def _shape_of(component: Component) -> tuple[str, Array]:
    read, number = component.properties, component.properties["Shape Configuration|Shape"]
    if number == BOX:
        return "box", np.array(read["Shape Configuration|Box|Dimensions"].numbers_())
    if number == SPHERE:
        return "sphere", np.full(3, 2 * read["Shape Configuration|Sphere|Radius"])
    group = "Capsule" if number == CAPSULE else "Cylinder"
    width = 2 * read[f"Shape Configuration|{group}|Radius"]
    return "cylinder", np.array([width, width, read[f"Shape Configuration|{group}|Height"]])


def _seen_part(look: _Look, at: Placement) -> Part:
    """Return one of the engine's shapes as a part of what is placed somewhere."""
    inside = at.inverse().of(look.at)
    offset = np.array(inside.translation) * at.scale  # parts are in metres
    turn = Rotation.from_quat(inside.rotation_xyzw)
    return _part(look.shape, look.scale, offset, turn, is_solid=False)


def _alike(part: Part, other: Part) -> bool:
    """Return whether two parts are in one place: the one would flicker through the other."""
    if part.shape != other.shape:
        return False
    near = [
        np.allclose(getattr(part, key).array(), getattr(other, key).array(), atol=1e-4)
        for key in ("size", "translate", "rotate")
    ]
    return all(near)


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
        color=(0.62, 0.62, 0.62),  # as the engine's primitives
        collision=is_solid,
    )


def _would_bend(parts: list[Part], scale: Array) -> bool:
    """Return whether a scale differs from axis to axis in a way that scenes do not allow for their parts."""
    if len(set(scale.tolist())) == 1:
        return False
    return any(
        part.shape != "box" or any(round(angle, 6) % 180 for angle in part.rotate.array()) for part in parts
    )


def _unscaled(part: Part, scale: Array) -> Part:
    """Return what becomes the part when its object is scaled."""
    return msgspec.structs.replace(
        part,
        size=Vector3(*(part.size.array() / scale).tolist()),
        translate=Vector3(*(part.translate.array() / scale).tolist()),
    )


def _rotation(euler_deg: Vector3) -> Rotation:
    return Rotation.from_euler("ZYX", [euler_deg.z, euler_deg.y, euler_deg.x], degrees=True)


def _euler_deg(turn: Rotation) -> Vector3:
    """Return the angles of a turn as scenes give them: about x first, then y, then z."""
    angles = quaternion_to_euler(Quaternion.from_xyzw(turn.as_quat()))
    return Vector3(*(np.round(angles.to_list(), 9) + 0.0).tolist())
