"""Prefab files: levels, and things to put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from proctor.core.documents import read_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.o3de.standin.az_transform import Placement, quaternion_of_euler_xyz, triple
from proctor.o3de.standin.az_types import as_json, from_json
from proctor.o3de.standin.component_table import ComponentKind, kinds_by_type
from proctor.o3de.standin.level import Component, Entities, Entity

WRAPPER, TRANSFORM = "GenericComponentWrapper", "TransformComponent"


def save_entities(path: Path, name: str, entities: Entities) -> None:
    """Write a prefab file."""
    document = {
        "ContainerEntity": {"Id": "ContainerEntity", "Name": name},
        "Entities": {f"Entity_[{entity.number}]": _entity_json(entity) for entity in entities.values()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(document, indent=1).encode() + b"\n")


def load_entities(path: Path) -> Entities:
    """Read a prefab file. All get new numbers, as in an Editor.

    Of components that the Editor wrote itself only the kinds are read, and of entities their places.

    Raises:
        InvalidFile: It is missing, or no prefab.
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
    shift, _, scale = entity.placement
    turn_deg = np.degrees(entity.placement.euler_xyz_rad()).tolist()
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
    shift, turn_deg = (triple(data.get(key, [0.0] * 3)) for key in ("Translate", "Rotate"))
    turn = quaternion_of_euler_xyz(turn_deg, degrees=True)
    return Placement(shift, turn, float(data.get("UniformScale", 1.0)))


def _component_of(written: dict[str, Any], kind: ComponentKind) -> Component:
    component = Component.new(kind)
    component.is_enabled = bool(written.get("Enabled", True))
    for path, value in written.get("Properties", {}).items():
        component.properties[path] = from_json(value, kind.properties[path])
    return component
