"""What the Editor does at calls about entities, their components and their places."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from proctor.o3de.standin.az_values import (
    AzComponentId,
    AzEntityId,
    AzEntityType,
    AzOutcome,
    AzQuaternion,
    AzSearchFilter,
    AzUuid,
    AzVector3,
    Placement,
    default_of,
    fits_property,
    from_json,
)
from proctor.o3de.standin.level import (
    Component,
    Entities,
    Entity,
    children,
    component_kinds,
    descendants,
    place_below,
    world_placement,
)

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor


GAME = AzEntityType().Game

# Components


def _find_types(_: FakeEditor, names: list[str], entity_type: int) -> list[AzUuid]:
    known = component_kinds() if entity_type == GAME else {}
    return [AzUuid(component=name if name in known else None) for name in names]


def _list_names(_: FakeEditor, entity_type: int) -> list[str]:
    return list(component_kinds()) if entity_type == GAME else []


def _add(editor: FakeEditor, entity: AzEntityId, types: list[AzUuid]) -> AzOutcome:
    level = editor.editable(entity)
    if level is None:
        return AzOutcome(error="AddComponentsOfType - the entity cannot be edited")
    if any(type_.IsNull() for type_ in types):
        return AzOutcome(error="AddComponentsOfType - component type is unknown")
    added = [Component.new(component_kinds()[type_.component_]) for type_ in types if type_.component_]
    level.live[entity.number_].components += added
    level.record(entity.number_)
    return AzOutcome([AzComponentId(entity.number_, component.number) for component in added])


def _of_type(editor: FakeEditor, entity: AzEntityId, type_: AzUuid) -> Component | None:
    found = editor.live(entity)
    return None if found is None or type_.component_ is None else found.find(type_.component_)


def _get(editor: FakeEditor, entity: AzEntityId, type_: AzUuid) -> AzOutcome:
    component = _of_type(editor, entity, type_)
    if component is None:
        return AzOutcome(error="GetComponentOfType - component type not found on the entity")
    return AzOutcome(AzComponentId(entity.number_, component.number))


def _component(editor: FakeEditor, pair: AzComponentId) -> Component | None:
    entity = editor.live(AzEntityId.of_(pair.entity_))
    components = [] if entity is None else entity.components
    return next((component for component in components if component.number == pair.component_), None)


def _get_property(editor: FakeEditor, pair: AzComponentId, path: str) -> AzOutcome:
    component = _component(editor, pair)
    if component is None:
        return AzOutcome(error="GetComponentProperty - component id is invalid")
    if component.kind.wrapped:
        editor.corrupted = True
    if path not in component.properties:
        return AzOutcome(error="GetProperty - path provided was not found in tree.")
    return AzOutcome(copy.copy(component.properties[path]))


def _set_property(editor: FakeEditor, pair: AzComponentId, path: str, value: Any) -> AzOutcome:
    component, level = _component(editor, pair), editor.editable()
    if component is None or level is None:
        return AzOutcome(error="SetComponentProperty - component id is invalid")
    if component.kind.wrapped:
        editor.corrupted = True
    if path not in component.properties:
        return AzOutcome(error="SetProperty - path provided was not found in tree.")
    kind = component.kind.properties[path]
    if value is None:  # nothing makes the property what it is at first, and is a success
        value = default_of(kind)
    elif not fits_property(value, kind):
        return AzOutcome(error="SetProperty - value type cannot be converted to the property's type.")
    elif kind in ("int", "float"):
        value = int(value) if kind == "int" else from_json(value, kind)
    component.properties[path] = copy.copy(value)
    level.record(pair.entity_)
    return AzOutcome(value)


def _list_properties(editor: FakeEditor, pair: AzComponentId) -> list[str]:
    component = _component(editor, pair)
    return [] if component is None else list(component.properties)


# Entities


def _create_at(editor: FakeEditor, position: AzVector3, parent: AzEntityId) -> AzEntityId:
    level = editor.editable()
    if level is None:
        return AzEntityId()
    entity = Entity(f"Entity{len(level.live) + 1}", placement=Placement(position.numbers_()))
    entity.parent = parent.number_ if parent.number_ in level.live else None  # in which it is placed
    level.live[entity.number] = entity
    level.record(entity.number)
    return AzEntityId.of_(entity.number)


def _exists(editor: FakeEditor, entity: AzEntityId) -> bool:
    return editor.live(entity) is not None or entity.number_ in editor.game


def _delete_with_descendants(editor: FakeEditor, entity: AzEntityId) -> None:
    level = editor.editable(entity)
    if level is None:
        return
    numbers = [entity.number_, *(below.number for below in descendants(level.live, entity.number_))]
    for number in numbers:
        del level.live[number]
    level.record(*numbers)


def _set_name(editor: FakeEditor, entity: AzEntityId, name: str) -> None:
    level = editor.editable(entity)
    if level is not None:
        level.live[entity.number_].name = name
        level.record(entity.number_)


def _set_parent(editor: FakeEditor, entity: AzEntityId, parent: AzEntityId) -> None:
    level = editor.editable(entity)
    if level is None or entity == parent:
        return
    if any(below.number == parent.number_ for below in descendants(level.live, entity.number_)):
        return  # would be its own ancestor
    moved = level.live[entity.number_]
    placement = world_placement(level.live, moved)
    moved.parent = parent.number_ if parent.number_ in level.live else None
    place_below(level.live, moved, placement)
    level.record(entity.number_)


def _get_name(editor: FakeEditor, entity: AzEntityId) -> str | None:
    if editor.level is not None and entity.number_ == editor.level.number:
        return editor.level.name
    found = editor.live(entity)
    return None if found is None else found.name


def _get_parent(editor: FakeEditor, entity: AzEntityId) -> AzEntityId | None:
    found = editor.live(entity)
    if found is None or editor.level is None:
        return None
    return AzEntityId.of_(editor.level.number if found.parent is None else found.parent)


def _get_children(editor: FakeEditor, entity: AzEntityId) -> list[AzEntityId] | None:
    if editor.level is None:
        return None
    is_level = entity.number_ == editor.level.number
    if not is_level and editor.live(entity) is None:
        return None
    below = children(editor.level.live, None if is_level else entity.number_)
    return [AzEntityId.of_(child.number) for child in below]


def _search(editor: FakeEditor, search: AzSearchFilter) -> list[AzEntityId]:
    if editor.level is None:
        return []
    named = [(editor.level.number, editor.level.name)]
    named += [(entity.number, entity.name) for entity in editor.level.live.values()]
    keep_case = search.names_case_sensitive

    def matches(name: str, pattern: str) -> bool:
        pattern = pattern.replace("[", "[[]")  # only * and ? are wild
        return fnmatchcase(name, pattern) if keep_case else fnmatchcase(name.lower(), pattern.lower())

    return [
        AzEntityId.of_(number)
        for number, name in named
        if not search.names or any(matches(name, pattern) for pattern in search.names)
    ]


# Places, in edit mode and in game mode


def _whose(editor: FakeEditor, entity: AzEntityId) -> tuple[Entities, Entity] | None:
    """Return an active entity among its like: that of the game while it plays, else that of the level."""
    level = editor.level
    entities = editor.game if editor.is_playing or level is None else level.live
    return (entities, entities[entity.number_]) if entity.number_ in entities else None


def _world(editor: FakeEditor, entities: Entities, entity: Entity) -> Placement:
    """Return where an entity is. In the game, bodies move, and take those below them along."""
    if not editor.is_in_game_mode:
        return world_placement(entities, entity)
    told = editor.game_transform(_owner(entities, entity)) if _has_body(entity) else None
    if told is not None:
        return told
    if entity.parent is None or entity.parent not in entities:
        return entity.placement
    return _world(editor, entities, entities[entity.parent]).of(entity.placement)


def _owner(entities: Entities, entity: Entity) -> str:
    """Return the name of the prefab that an entity is in, or else its own."""
    above: Entity | None = entity
    while above is not None:
        if above.prefab is not None:
            return above.name
        above = None if above.parent is None else entities.get(above.parent)
    return entity.name


def _has_body(entity: Entity) -> bool:
    return any("PhysicsRigidBodyService" in component.kind.provides for component in entity.active())


def _with_descendants(editor: FakeEditor, entity: AzEntityId) -> list[AzEntityId] | None:
    found = _whose(editor, entity)
    if found is None:
        return None
    numbers = [found[1].number, *(below.number for below in descendants(found[0], found[1].number))]
    return [AzEntityId.of_(number) for number in numbers]


def _getter(read: Callable[[Placement], Any]) -> Callable[[FakeEditor, AzEntityId], Any]:
    def get(editor: FakeEditor, entity: AzEntityId) -> Any:
        found = _whose(editor, entity)
        return None if found is None else read(_world(editor, *found))  # None: nobody answers

    return get


def _setter(change: Callable[[Placement, Any], Placement]) -> Callable[[FakeEditor, AzEntityId, Any], None]:
    def set_(editor: FakeEditor, entity: AzEntityId, to: Any) -> None:
        found = _movable(editor, entity)
        if found is not None:
            place_below(*found, change(world_placement(*found), to))

    return set_


def _set_scale(editor: FakeEditor, entity: AzEntityId, scale: float) -> None:
    found = _movable(editor, entity)
    if found is not None:
        found[1].placement = found[1].placement._replace(scale=float(scale))


def _movable(editor: FakeEditor, entity: AzEntityId) -> tuple[Entities, Entity] | None:
    """Return what a script can move: in the game, physics puts a body back at once."""
    found = _whose(editor, entity)
    return None if found is None or (editor.is_in_game_mode and _has_body(found[1])) else found


def _is_physics_enabled(editor: FakeEditor, entity: AzEntityId) -> bool | None:
    """Only an entity of the game with a body that can move answers."""
    found = editor.game.get(entity.number_)
    return True if found is not None and found.works("PhysX Dynamic Rigid Body") else None


TOOLS, EDIT, INFO = "ToolsApplicationRequestBus", "EditorEntityAPIBus", "EditorEntityInfoRequestBus"
COMPONENTS, TRANSFORM = "EditorComponentAPIBus", "TransformBus"
CALL_HANDLERS: dict[tuple[str, str], Callable[..., Any]] = {
    (TOOLS, "CreateNewEntityAtPosition"): _create_at,
    (TOOLS, "EntityExists"): _exists,
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
    (COMPONENTS, "FindComponentTypeIdsByEntityType"): _find_types,
    (COMPONENTS, "BuildComponentTypeNameListByEntityType"): _list_names,
    (COMPONENTS, "AddComponentsOfType"): _add,
    (COMPONENTS, "HasComponentOfType"): lambda *arguments: _of_type(*arguments) is not None,
    (COMPONENTS, "GetComponentOfType"): _get,
    (COMPONENTS, "GetComponentProperty"): _get_property,
    (COMPONENTS, "SetComponentProperty"): _set_property,
    (COMPONENTS, "BuildComponentPropertyList"): _list_properties,
    (TRANSFORM, "GetWorldTranslation"): _getter(lambda at: AzVector3(*at.translation)),
    (TRANSFORM, "SetWorldTranslation"): _setter(lambda at, to: at._replace(translation=to.numbers_())),
    (TRANSFORM, "GetWorldRotationQuaternion"): _getter(lambda at: AzQuaternion(*at.rotation_xyzw)),
    (TRANSFORM, "SetWorldRotationQuaternion"): _setter(
        lambda at, to: at._replace(rotation_xyzw=to.numbers_())
    ),
    (TRANSFORM, "SetLocalUniformScale"): _set_scale,
    (TRANSFORM, "GetEntityAndAllDescendants"): _with_descendants,
    ("RigidBodyRequestBus", "IsPhysicsEnabled"): _is_physics_enabled,
}
