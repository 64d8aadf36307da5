"""Entities: made, found, named, ordered, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from o3de_sim.editor import components
from o3de_sim.editor.azlmbr_calls import Values
from o3de_sim.editor.operations.transform import place
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity, undo_batch, valid_id
from o3de_sim.errors import O3DEError


def make(session: EditorSession, position: Values, parent: GivenEntity | None) -> Any:
    """Return the id of a new entity at a place in the world. What the engine is told is one in the parent."""
    engine = session.engine
    parent_id = engine.no_entity() if parent is None else parent.id
    found = engine.broadcast(
        "editor.ToolsApplicationRequestBus", "CreateNewEntityAtPosition", engine.vector(position), parent_id
    )
    made = valid_id(found, "CreateNewEntityAtPosition")
    if parent is not None:
        place(engine, made, position, None)
    return made


def give_name(session: EditorSession, entity_id: Any, name: str) -> None:
    """Set a name, and see that it is set."""
    with undo_batch(session.engine, f"Name {name}", entity_id):
        session.engine.event("editor.EditorEntityAPIBus", "SetName", entity_id, name, returns="nothing")
    found = name_of(session, entity_id)
    if found != name:
        raise O3DEError("az_call_failed", f'SetName was asked for "{name}", and the name is "{found}"')


def name_of(session: EditorSession, entity_id: Any) -> str:
    """Return the name of an entity that is edited."""
    return str(session.engine.event("editor.EditorEntityInfoRequestBus", "GetName", entity_id))


def child_ids(session: EditorSession, entity_id: Any) -> list[Any]:
    """Return the ids of an entity's children."""
    return list(session.engine.event("editor.EditorEntityInfoRequestBus", "GetChildren", entity_id))


def with_descendants(session: EditorSession, entity_id: Any) -> Iterator[Any]:
    """Give the ids of an entity and of those below it, up to a bounded number."""
    waiting = [entity_id]
    for _ in range(10_000):
        if not waiting:
            return
        one = waiting.pop()
        yield one
        waiting += child_ids(session, one)


def create(session: EditorSession, name: str, position: Values, parent: GivenEntity | None) -> Frames[str]:
    """Make an entity with a name at a position in the world, in metres; return its id."""
    made = make(session, position, parent)
    give_name(session, made, name)
    yield from session.pass_frames()
    return session.handles.remember(made)


def find(session: EditorSession, name: str) -> list[str]:
    """Return the ids of all entities that have exactly this name."""
    has_pattern = any(mark in name for mark in "*?|")  # which the filter would not take literally
    wanted = session.engine.search_filter([] if has_pattern else [name])
    found = session.engine.broadcast("entity.SearchBus", "SearchEntities", wanted)
    return [session.handles.remember(one) for one in found if name_of(session, one) == name]


def find_game(session: EditorSession, name: str) -> str | None:
    """Return the id of an entity of the running game, if it has one of this name.

    Of those below it, the first with a rigid body is meant, if there is one: the entity of a prefab itself
    stays where it is while physics moves what is in it.
    """
    if not session.is_in_game_mode():
        raise O3DEError("bad_state", "no game runs: simulation_tool.enter_game_mode starts it")
    found = session.engine.general("find_game_entity", name)
    return session.handles.remember_in_game(_moving(session, found)) if found.IsValid() else None


def _moving(session: EditorSession, found: Any) -> Any:
    engine = session.engine
    for one in engine.event("components.TransformBus", "GetEntityAndAllDescendants", found):
        if engine.event("physics.RigidBodyRequestBus", "IsPhysicsEnabled", one, returns="perhaps"):
            return one
    return found


def delete(session: EditorSession, entity: GivenEntity) -> Frames[None]:
    """Delete an entity and all below it."""
    session.engine.broadcast(
        "editor.ToolsApplicationRequestBus", "DeleteEntityAndAllDescendants", entity.id, returns="nothing"
    )
    yield from session.pass_frames()
    if session.exists(entity):
        raise O3DEError("az_call_failed", f"DeleteEntityAndAllDescendants: {entity.text} is still there")
    session.handles.forget(entity.text)


def exists(session: EditorSession, entity: str) -> bool:
    """Return whether an entity is there. One that nobody has asked for yet is not known, and is not."""
    found = session.handles.find(entity)
    return found is not None and (found.is_in_game or session.exists(found))


def get_name(session: EditorSession, entity: GivenEntity) -> str:
    """Return the name of an entity."""
    return name_of(session, entity.id)


def set_name(session: EditorSession, entity: GivenEntity, name: str) -> None:
    """Give it another name. Names need not be unique."""
    give_name(session, entity.id, name)


def set_parent(session: EditorSession, entity: GivenEntity, parent: GivenEntity) -> Frames[None]:
    """Put it below another entity; where it is in the world does not change."""
    engine = session.engine
    if any(one.ToString() == parent.text for one in with_descendants(session, entity.id)):
        raise O3DEError(
            "bad_request", f"{parent.text} is {entity.text} or below it, and cannot be its parent"
        )
    with undo_batch(engine, "Set parent", entity.id):
        engine.event("editor.EditorEntityAPIBus", "SetParent", entity.id, parent.id, returns="nothing")
    yield from session.pass_frames()
    found = engine.event("editor.EditorEntityInfoRequestBus", "GetParent", entity.id)
    if found.ToString() != parent.text:
        raise O3DEError(
            "az_call_failed", f"SetParent was asked for {parent.text}, and it is {found.ToString()}"
        )


def children(session: EditorSession, entity: GivenEntity) -> list[str]:
    """Return the ids of its children."""
    return [session.handles.remember(child) for child in child_ids(session, entity.id)]


def has_components(session: EditorSession, entity: GivenEntity, names: list[str]) -> list[bool]:
    """Return which of these components an entity has, by the names of the Editor's Add menu."""
    return [components.has(session.engine, entity.id, name) for name in names]
