"""What the Editor does at calls about components."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proctor.o3de.standin.az_types import default_of, fits_property, from_json
from proctor.o3de.standin.az_values import EntityComponentIdPair, EntityId, EntityType, Outcome, Uuid
from proctor.o3de.standin.component_table import component_kinds
from proctor.o3de.standin.level import Component

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor

Pairs = list[EntityComponentIdPair]
GAME = EntityType().Game


def _find_types(editor: FakeEditor, names: list[str], entity_type: int) -> list[Uuid]:
    del editor
    known = component_kinds() if entity_type == GAME else {}
    return [Uuid(component=name if name in known else None) for name in names]


def _list_names(editor: FakeEditor, entity_type: int) -> list[str]:
    del editor
    return list(component_kinds()) if entity_type == GAME else []


def _add(editor: FakeEditor, entity: EntityId, types: list[Uuid]) -> Outcome:
    level = editor.editable(entity)
    if level is None:
        return Outcome(error="AddComponentsOfType - the entity cannot be edited")
    if any(type_.IsNull() for type_ in types):
        return Outcome(error="AddComponentsOfType - component type is unknown")
    added = [Component.new(component_kinds()[type_.component_]) for type_ in types if type_.component_]
    level.live[entity.number_].components += added
    level.record(entity.number_)
    return Outcome([EntityComponentIdPair(entity.number_, component.number) for component in added])


def _add_one(editor: FakeEditor, entity: EntityId, type_: Uuid) -> Outcome:
    return _add(editor, entity, [type_])


def _of_type(editor: FakeEditor, entity: EntityId, type_: Uuid) -> Component | None:
    found = editor.live(entity)
    return None if found is None or type_.component_ is None else found.find(type_.component_)


def _has(editor: FakeEditor, entity: EntityId, type_: Uuid) -> bool:
    return _of_type(editor, entity, type_) is not None


def _get(editor: FakeEditor, entity: EntityId, type_: Uuid) -> Outcome:
    component = _of_type(editor, entity, type_)
    if component is None:
        return Outcome(error="GetComponentOfType - component type not found on the entity")
    return Outcome(EntityComponentIdPair(entity.number_, component.number))


def _component(editor: FakeEditor, pair: EntityComponentIdPair) -> Component | None:
    entity = editor.live(EntityId.of_(pair.entity_))
    components = [] if entity is None else entity.components
    return next((component for component in components if component.number == pair.component_), None)


def _is_enabled(editor: FakeEditor, pair: EntityComponentIdPair) -> bool:
    entity = editor.live(EntityId.of_(pair.entity_))
    return entity is not None and any(item.number == pair.component_ for item in entity.active())


def _remove(editor: FakeEditor, pairs: Pairs) -> bool:
    found = [_component(editor, pair) for pair in pairs]
    level = editor.editable()
    if level is None or None in found:
        return False
    for pair in pairs:
        entity = level.live[pair.entity_]
        entity.components = [item for item in entity.components if item.number != pair.component_]
        level.record(pair.entity_)
    return True


def _disable(editor: FakeEditor, pairs: Pairs) -> bool:
    found = [_component(editor, pair) for pair in pairs]
    level = editor.editable()
    if level is None or None in found:
        return False
    for component, pair in zip(found, pairs, strict=True):
        if component is not None:
            component.is_enabled = False
            level.record(pair.entity_)
    return True


def _get_property(editor: FakeEditor, pair: EntityComponentIdPair, path: str) -> Outcome:
    component = _component(editor, pair)
    if component is None:
        return Outcome(error="GetComponentProperty - component id is invalid")
    if component.kind.wrapped:
        editor.corrupted = True
    if path not in component.properties:
        return Outcome(error="GetProperty - path provided was not found in tree.")
    return Outcome(copy.copy(component.properties[path]))


def _set_property(editor: FakeEditor, pair: EntityComponentIdPair, path: str, value: Any) -> Outcome:
    component, level = _component(editor, pair), editor.editable()
    if component is None or level is None:
        return Outcome(error="SetComponentProperty - component id is invalid")
    if component.kind.wrapped:
        editor.corrupted = True
    if path not in component.properties:
        return Outcome(error="SetProperty - path provided was not found in tree.")
    kind = component.kind.properties[path]
    if value is None:  # nothing makes the property what it is at first, and is a success
        value = default_of(kind)
    elif not fits_property(value, kind):
        return Outcome(error="SetProperty - value type cannot be converted to the property's type.")
    elif kind in ("int", "float"):
        value = int(value) if kind == "int" else from_json(value, kind)
    component.properties[path] = copy.copy(value)
    level.record(pair.entity_)
    return Outcome(value)


def _list_properties(editor: FakeEditor, pair: EntityComponentIdPair) -> list[str]:
    component = _component(editor, pair)
    return [] if component is None else list(component.properties)


BUS = "EditorComponentAPIBus"
DEEDS: dict[tuple[str, str], Callable[..., Any]] = {
    (BUS, "FindComponentTypeIdsByEntityType"): _find_types,
    (BUS, "BuildComponentTypeNameListByEntityType"): _list_names,
    (BUS, "AddComponentsOfType"): _add,
    (BUS, "AddComponentOfType"): _add_one,
    (BUS, "HasComponentOfType"): _has,
    (BUS, "GetComponentOfType"): _get,
    (BUS, "IsComponentEnabled"): _is_enabled,
    (BUS, "RemoveComponents"): _remove,
    (BUS, "DisableComponents"): _disable,
    (BUS, "GetComponentProperty"): _get_property,
    (BUS, "SetComponentProperty"): _set_property,
    (BUS, "BuildComponentPropertyList"): _list_properties,
}
