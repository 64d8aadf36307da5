"""What the Editor does at calls about entities and their components."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from proctor.o3de.standin.az_values import (
    EntityComponentIdPair,
    EntityId,
    EntityType,
    Outcome,
    Placement,
    SearchFilter,
    Uuid,
    Vector3,
    default_of,
    fits_property,
    from_json,
)
from proctor.o3de.standin.level import (
    Component,
    Entity,
    children,
    component_kinds,
    descendants,
    world_placement,
)

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


def _of_type(editor: FakeEditor, entity: EntityId, type_: Uuid) -> Component | None:
    found = editor.live(entity)
    return None if found is None or type_.component_ is None else found.find(type_.component_)


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


def _create_at(editor: FakeEditor, position: Vector3, parent: EntityId) -> EntityId:
    level = editor.editable()
    if level is None:
        return EntityId()
    entity = Entity(f"Entity{len(level.live) + 1}", placement=Placement(position.triple_()))
    entity.parent = parent.number_ if parent.number_ in level.live else None  # in which it is placed
    level.live[entity.number] = entity
    level.record(entity.number)
    return EntityId.of_(entity.number)


def _exists(editor: FakeEditor, entity: EntityId) -> bool:
    return editor.live(entity) is not None or entity.number_ in editor.game


def _delete(editor: FakeEditor, entity: EntityId) -> None:
    level = editor.editable(entity)
    if level is None:
        return
    outer = level.live[entity.number_].parent
    for child in children(level.live, entity.number_):
        child.placement = level.live[entity.number_].placement.of(child.placement)
        child.parent = outer
        level.record(child.number)
    del level.live[entity.number_]
    level.record(entity.number_)


def _delete_with_descendants(editor: FakeEditor, entity: EntityId) -> None:
    level = editor.editable(entity)
    if level is None:
        return
    numbers = [entity.number_, *(below.number for below in descendants(level.live, entity.number_))]
    for number in numbers:
        del level.live[number]
    level.record(*numbers)


def _set_name(editor: FakeEditor, entity: EntityId, name: str) -> None:
    level = editor.editable(entity)
    if level is not None:
        level.live[entity.number_].name = name
        level.record(entity.number_)


def _set_parent(editor: FakeEditor, entity: EntityId, parent: EntityId) -> None:
    level = editor.editable(entity)
    if level is None or entity == parent:
        return
    if any(below.number == parent.number_ for below in descendants(level.live, entity.number_)):
        return  # would be its own ancestor
    moved = level.live[entity.number_]
    placement = world_placement(level.live, moved)
    moved.parent = parent.number_ if parent.number_ in level.live else None
    if moved.parent is not None:
        placement = world_placement(level.live, level.live[moved.parent]).inverse().of(placement)
    moved.placement = placement
    level.record(entity.number_)


def _get_name(editor: FakeEditor, entity: EntityId) -> str | None:
    if editor.level is not None and entity.number_ == editor.level.number:
        return editor.level.name
    found = editor.live(entity)
    return None if found is None else found.name


def _get_parent(editor: FakeEditor, entity: EntityId) -> EntityId | None:
    found = editor.live(entity)
    if found is None or editor.level is None:
        return None
    return EntityId.of_(editor.level.number if found.parent is None else found.parent)


def _get_children(editor: FakeEditor, entity: EntityId) -> list[EntityId] | None:
    if editor.level is None:
        return None
    is_level = entity.number_ == editor.level.number
    if not is_level and editor.live(entity) is None:
        return None
    below = children(editor.level.live, None if is_level else entity.number_)
    return [EntityId.of_(child.number) for child in below]


def _search(editor: FakeEditor, search: SearchFilter) -> list[EntityId]:
    if editor.level is None:
        return []
    named = [(editor.level.number, editor.level.name)]
    named += [(entity.number, entity.name) for entity in editor.level.live.values()]
    keep_case = search.names_case_sensitive

    def matches(name: str, pattern: str) -> bool:
        pattern = pattern.replace("[", "[[]")  # only * and ? are wild
        return fnmatchcase(name, pattern) if keep_case else fnmatchcase(name.lower(), pattern.lower())

    return [
        EntityId.of_(number)
        for number, name in named
        if not search.names or any(matches(name, pattern) for pattern in search.names)
    ]


TOOLS, EDIT, INFO = "ToolsApplicationRequestBus", "EditorEntityAPIBus", "EditorEntityInfoRequestBus"
CALL_HANDLERS: dict[tuple[str, str], Callable[..., Any]] = {
    (TOOLS, "CreateNewEntity"): lambda editor, parent: _create_at(editor, Vector3(), parent),
    (TOOLS, "CreateNewEntityAtPosition"): _create_at,
    (TOOLS, "EntityExists"): _exists,
    (TOOLS, "DeleteEntityById"): _delete,
    (TOOLS, "DeleteEntityAndAllDescendants"): _delete_with_descendants,
    (TOOLS, "BeginUndoBatch"): lambda editor, label: editor.begin_batch(),
    (TOOLS, "EndUndoBatch"): lambda editor: editor.end_batch(),
    (TOOLS, "AddDirtyEntity"): lambda editor, entity: editor.mark_dirty(entity.number_),
    (EDIT, "SetName"): _set_name,
    (EDIT, "SetParent"): _set_parent,
    (INFO, "GetName"): _get_name,
    (INFO, "GetParent"): _get_parent,
    (INFO, "GetChildren"): _get_children,
    ("SearchBus", "SearchEntities"): _search,
    (BUS, "FindComponentTypeIdsByEntityType"): _find_types,
    (BUS, "BuildComponentTypeNameListByEntityType"): _list_names,
    (BUS, "AddComponentsOfType"): _add,
    (BUS, "AddComponentOfType"): lambda editor, entity, type_: _add(editor, entity, [type_]),
    (BUS, "HasComponentOfType"): lambda editor, entity, type_: _of_type(editor, entity, type_) is not None,
    (BUS, "GetComponentOfType"): _get,
    (BUS, "IsComponentEnabled"): _is_enabled,
    (BUS, "RemoveComponents"): _remove,
    (BUS, "DisableComponents"): _disable,
    (BUS, "GetComponentProperty"): _get_property,
    (BUS, "SetComponentProperty"): _set_property,
    (BUS, "BuildComponentPropertyList"): _list_properties,
}
