"""Prefab files of levels and robots, and those that a project of the stand-in begins with."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from o3de_sim.constants import GROUND
from o3de_sim.o3de_api.interface.math import (
    ORIGIN,
    Quaternion,
    Vector3,
    from_o3de_euler_degrees,
    to_o3de_euler_degrees,
)
from proctor.core.documents import read_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.o3de.robot_prefab import ROBOT_PREFAB, robot_prefab
from proctor.o3de.standin.az_values import AzAssetId, AzVector3, Placement, as_json, from_json
from proctor.o3de.standin.level import (
    Component,
    ComponentKind,
    Entities,
    Entity,
    component_kinds,
    kinds_by_type,
)
from proctor.robots.spec import standard_robot

WRAPPER, TRANSFORM = "GenericComponentWrapper", "TransformComponent"
ROBOT_PRODUCT = str(PurePosixPath(ROBOT_PREFAB.lower()).with_suffix(".spawnable"))
FIRST_LEVEL = "scene_001"


def save_entities(path: Path, name: str, entities: Entities) -> None:
    """Write a prefab file."""
    document = {
        "ContainerEntity": {"Id": "ContainerEntity", "Name": name},
        "Entities": {f"Entity_[{entity.number}]": _entity_json(entity) for entity in entities.values()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")


def load_entities(path: Path) -> Entities:
    """Read a prefab file. All entities get new numbers, as in an Editor.

    Of components that the Editor wrote itself only the kinds are read, and of entities their places.
    """
    document = read_json(path)
    found = document.get("Entities", {}) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise InvalidFile(path, "expected a prefab: an object with 'Entities'")
    try:
        read = {key: _entity_of(item) for key, item in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidFile(path, f"no prefab as the Editor writes it: {error!r}") from None
    for entity, parent_key in read.values():
        parent = read.get(parent_key)
        entity.parent = None if parent is None else parent[0].number
    return {entity.number: entity for entity, _ in read.values()}


def _entity_json(entity: Entity) -> dict[str, Any]:
    shift, turn, scale = entity.placement
    turn_deg = to_o3de_euler_degrees(Quaternion.from_xyzw(turn)).to_list()
    components: dict[str, Any] = {
        TRANSFORM: {
            "$type": TRANSFORM,
            "Parent Entity": "ContainerEntity" if entity.parent is None else f"Entity_[{entity.parent}]",
            "Transform Data": {"Translate": shift, "Rotate": turn_deg, "UniformScale": scale},
        }
    }
    for component in entity.components:
        components[f"Component_[{component.number}]"] = {
            "$type": component.kind.type,
            "Enabled": component.is_enabled,
            "Properties": {path: as_json(value) for path, value in component.properties.items()},
        }
    source = {} if entity.prefab is None else {"Source": entity.prefab}
    return {"Id": f"Entity_[{entity.number}]", "Name": entity.name, **source, "Components": components}


def _entity_of(item: dict[str, Any]) -> tuple[Entity, str]:
    """Return an entity and the key of its parent."""
    entity, parent = Entity(str(item["Name"]), prefab=item.get("Source")), ""
    for written in item["Components"].values():
        inner = written["m_template"] if written["$type"] == WRAPPER else written
        type_ = str(inner["$type"]).split(" ")[-1]  # a number may come before the name
        if type_ == TRANSFORM:
            parent = str(written.get("Parent Entity", ""))
            entity.placement = _placement_of(written.get("Transform Data", {}))
        elif type_ in kinds_by_type():
            entity.components.append(_component_of(inner, kinds_by_type()[type_]))
    return entity, parent


def _placement_of(data: dict[str, Any]) -> Placement:
    shift = Vector3.of(data.get("Translate", ORIGIN))
    turn = from_o3de_euler_degrees(data.get("Rotate", ORIGIN))
    return Placement(tuple(shift), tuple(turn.to_xyzw()), float(data.get("UniformScale", 1.0)))


def _component_of(written: dict[str, Any], kind: ComponentKind) -> Component:
    component = Component.new(kind)
    component.is_enabled = bool(written.get("Enabled", True))
    for path, value in written.get("Properties", {}).items():
        component.properties[path] = from_json(value, kind.properties[path])
    return component


def prepare_project(project: Path) -> None:
    """Write what is missing. What is there stays."""
    robot = project / ROBOT_PREFAB
    if not robot.exists():
        robot.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(robot, robot_prefab(standard_robot()))
    level = project / "Levels" / FIRST_LEVEL / f"{FIRST_LEVEL}.prefab"
    if not level.exists():
        ground = _ground()
        save_entities(level, FIRST_LEVEL, {ground.number: ground})


def _ground() -> Entity:
    body, collider, mesh, scale = (
        Component.new(component_kinds()[name])
        for name in ("PhysX Static Rigid Body", "PhysX Primitive Collider", "Mesh", "Non-uniform Scale")
    )
    box = AzAssetId(product="objects/_primitives/_box_1x1.fbx.azmodel")
    mesh.properties["Controller|Configuration|Model Asset"] = box
    scale.properties["Non-uniform Scale"] = AzVector3(100.0, 100.0, 1.0)
    ground = Entity(GROUND, components=[body, collider, mesh, scale])
    ground.placement = ground.placement._replace(translation=(0.0, 0.0, -0.5))
    return ground
