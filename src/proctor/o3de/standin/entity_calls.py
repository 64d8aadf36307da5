"""What the Editor does at calls about entities."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.az_values import EntityId, SearchFilter, Vector3
from proctor.o3de.standin.level import Entity, children, descendants, world_placement

if TYPE_CHECKING:
    from proctor.o3de.standin.fake_editor import FakeEditor


def _create(editor: FakeEditor, parent: EntityId) -> EntityId:
    return _create_at(editor, Vector3(), parent)


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


def _begin_batch(editor: FakeEditor, label: str) -> None:
    del label
    editor.begin_batch()


def _end_batch(editor: FakeEditor) -> None:
    editor.end_batch()


def _add_dirty(editor: FakeEditor, entity: EntityId) -> None:
    editor.mark_dirty(entity.number_)


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
DEEDS: dict[tuple[str, str], Callable[..., Any]] = {
    (TOOLS, "CreateNewEntity"): _create,
    (TOOLS, "CreateNewEntityAtPosition"): _create_at,
    (TOOLS, "EntityExists"): _exists,
    (TOOLS, "DeleteEntityById"): _delete,
    (TOOLS, "DeleteEntityAndAllDescendants"): _delete_with_descendants,
    (TOOLS, "BeginUndoBatch"): _begin_batch,
    (TOOLS, "EndUndoBatch"): _end_batch,
    (TOOLS, "AddDirtyEntity"): _add_dirty,
    (EDIT, "SetName"): _set_name,
    (EDIT, "SetParent"): _set_parent,
    (INFO, "GetName"): _get_name,
    (INFO, "GetParent"): _get_parent,
    (INFO, "GetChildren"): _get_children,
    ("SearchBus", "SearchEntities"): _search,
}
