"""Prefab files: levels, and things to put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from proctor.core.documents import read_json, write_atomically
from proctor.core.errors import InvalidFile
from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.az_types import as_json, from_json
from proctor.o3de.standin.component_table import kinds_by_type
from proctor.o3de.standin.level import Component, Entities, Entity

WRAPPER = "GenericComponentWrapper"


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

    Raises:
        InvalidFile: It is missing, or no prefab.
    """
    document = read_json(path)
    found = document.get("Entities", {}) if isinstance(document, dict) else None
    if not isinstance(found, dict) or not all(isinstance(item, dict) for item in found.values()):
        raise InvalidFile(path, "expected a prefab: an object with 'Entities'")
    try:
        read = {key: _entity_of(item) for key, item in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidFile(path, f"no prefab of this Editor: {error}") from None
    for key, entity in read.items():
        parent = read.get(found[key].get("Parent Entity", ""))
        entity.parent = None if parent is None else parent.number
    return {entity.number: entity for entity in read.values()}


def _entity_json(entity: Entity) -> dict[str, Any]:
    shift, turn, scale = entity.placement
    return {
        "Id": f"Entity_[{entity.number}]",
        "Name": entity.name,
        "Parent Entity": "ContainerEntity" if entity.parent is None else f"Entity_[{entity.parent}]",
        **({} if entity.prefab is None else {"Source": entity.prefab}),
        "Transform": {"Translate": shift, "Rotate": turn, "UniformScale": scale},
        "Components": {
            f"Component_[{component.number}]": {
                "$type": component.kind.type,
                "Enabled": component.is_enabled,
                "Properties": {path: as_json(value) for path, value in component.properties.items()},
            }
            for component in entity.components
        },
    }


def _entity_of(item: dict[str, Any]) -> Entity:
    transform = item.get("Transform", {})
    placement = Placement(
        tuple(transform.get("Translate", (0.0, 0.0, 0.0))),
        tuple(transform.get("Rotate", (0.0, 0.0, 0.0, 1.0))),
        float(transform.get("UniformScale", 1.0)),
    )
    entity = Entity(str(item.get("Name", "Entity")), placement=placement, prefab=item.get("Source"))
    for written in item.get("Components", {}).values():
        inner = written.get("m_template", {}) if written["$type"] == WRAPPER else written
        kind = kinds_by_type().get(inner.get("$type", ""))
        if kind is None:  # the Editor's own, such as the order of children
            continue
        component = Component.new(kind)
        component.is_enabled = bool(written.get("Enabled", True))
        for path, value in written.get("Properties", {}).items():
            component.properties[path] = from_json(value, kind.properties[path])
        entity.components.append(component)
    return entity
