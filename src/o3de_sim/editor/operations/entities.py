"""Entities: made, found, named, placed, ordered, deleted; and prefabs.

World coordinates, metres; quaternions x, y, z, w.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from o3de_sim.editor import arguments as args
from o3de_sim.editor import components
from o3de_sim.editor.azlmbr_calls import Engine, Values
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity, undo_batch, valid_id
from o3de_sim.errors import O3DEError

ORIGIN = (0.0, 0.0, 0.0)


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


def create(
    session: EditorSession,
    name: args.Name,
    position: args.Position = ORIGIN,
    parent: args.EditedEntity | None = None,
) -> Frames[str]:
    """Make an entity with a name at a position in the world, in metres; return its id."""
    made = make(session, position, parent)
    give_name(session, made, name)
    yield from session.pass_frames()
    return session.remember(made)


def create_new_entity_at_position(
    session: EditorSession, position: args.Position, parent: args.EditedEntity | None = None
) -> Frames[str]:
    """Make an entity at a position in the world, in metres, which the Editor names; return its id."""
    made = make(session, position, parent)
    yield from session.pass_frames()
    return session.remember(made)


def find(session: EditorSession, name: args.Name) -> list[str]:
    """Return the ids of all entities that have exactly this name."""
    has_pattern = any(mark in name for mark in "*?|")  # which the filter would not take literally
    wanted = session.engine.search_filter([] if has_pattern else [name])
    found = session.engine.broadcast("entity.SearchBus", "SearchEntities", wanted)
    return [session.remember(one) for one in found if name_of(session, one) == name]


def find_game(session: EditorSession, name: args.Name) -> str | None:
    """Return the id of an entity of the running game, if it has one of this name.

    Of those below it, the first with a rigid body is meant, if there is one: the entity of a prefab itself
    stays where it is while physics moves what is in it.
    """
    if not session.is_in_game_mode():
        raise O3DEError("bad_state", "no game runs: simulation_tool.enter_game_mode starts it")
    found = session.engine.general("find_game_entity", name)
    return session.remember(_moving(session, found), is_in_game=True) if found.IsValid() else None


def _moving(session: EditorSession, found: Any) -> Any:
    engine = session.engine
    for one in engine.event("components.TransformBus", "GetEntityAndAllDescendants", found):
        if engine.event("physics.RigidBodyRequestBus", "IsPhysicsEnabled", one, returns="perhaps"):
            return one
    return found


def delete(session: EditorSession, entity: args.EditedEntity) -> Frames[None]:
    """Delete an entity and all below it."""
    session.engine.broadcast(
        "editor.ToolsApplicationRequestBus", "DeleteEntityAndAllDescendants", entity.id, returns="nothing"
    )
    yield from session.pass_frames()
    if session.exists(entity):
        raise O3DEError("az_call_failed", f"DeleteEntityAndAllDescendants: {entity.text} is still there")
    session.forget(entity.text)


def exists(session: EditorSession, entity: args.EntityText) -> bool:
    """Return whether an entity is there. One that nobody has asked for yet is not known, and is not."""
    found = session.known(entity)
    return found is not None and (found.is_in_game or session.exists(found))


def get_name(session: EditorSession, entity: args.EditedEntity) -> str:
    """Return the name of an entity."""
    return name_of(session, entity.id)


def set_name(session: EditorSession, entity: args.EditedEntity, name: args.Name) -> None:
    """Give it another name. Names need not be unique."""
    give_name(session, entity.id, name)


def set_parent(session: EditorSession, entity: args.EditedEntity, parent: args.EditedEntity) -> Frames[None]:
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


def children(session: EditorSession, entity: args.EditedEntity) -> list[str]:
    """Return the ids of its children."""
    return [session.remember(child) for child in child_ids(session, entity.id)]


def has_components(session: EditorSession, entity: args.EditedEntity, names: args.Names) -> list[bool]:
    """Return which of these components an entity has, by the names of the Editor's Add menu."""
    return [components.has(session.engine, entity.id, name) for name in names]


# Where they are

NON_UNIFORM = "Non-uniform Scale"  # the component, and the property in it


def get_position(session: EditorSession, entity: args.Entity) -> list[float]:
    """Return where an entity is; in game mode, one that lives there."""
    _must_move(session, entity)
    return position_of(session.engine, entity.id)


def get_rotation(session: EditorSession, entity: args.Entity) -> list[float]:
    """Return how an entity is turned."""
    _must_move(session, entity)
    return rotation_of(session.engine, entity.id)


def set_position(session: EditorSession, entity: args.EditedEntity, position: args.Position) -> None:
    """Move an entity, with all below it."""
    place(session.engine, entity.id, position, None)


def set_rotation(session: EditorSession, entity: args.EditedEntity, rotation: args.Rotation) -> None:
    """Turn an entity."""
    place(session.engine, entity.id, None, rotation)


def set_pose(
    session: EditorSession, entity: args.EditedEntity, position: args.Position, rotation: args.Rotation
) -> None:
    """Move and turn an entity in one step."""
    place(session.engine, entity.id, position, rotation)


def set_scale(session: EditorSession, entity: args.EditedEntity, scale: args.Scale) -> None:
    """Scale an entity by one factor, or by one along each of its own axes."""
    engine = session.engine
    if isinstance(scale, float):
        with undo_batch(engine, "Scale", entity.id):
            engine.event(
                "components.TransformBus", "SetLocalUniformScale", entity.id, scale, returns="nothing"
            )
        return
    if components.has(engine, entity.id, NON_UNIFORM):
        component = components.get(engine, entity.id, NON_UNIFORM)
    else:
        component = components.add(engine, entity.id, NON_UNIFORM)
    components.write(engine, component, NON_UNIFORM, engine.vector(scale))


def position_of(engine: Engine, entity_id: Any) -> list[float]:
    """Return the world position of an entity."""
    found = engine.event("components.TransformBus", "GetWorldTranslation", entity_id)
    return [float(found.x), float(found.y), float(found.z)]


def rotation_of(engine: Engine, entity_id: Any) -> list[float]:
    """Return the world rotation of an entity."""
    found = engine.event("components.TransformBus", "GetWorldRotationQuaternion", entity_id)
    return [float(found.x), float(found.y), float(found.z), float(found.w)]


def place(engine: Engine, entity_id: Any, position: Values | None, rotation: Values | None) -> None:
    """Set one or both, and see that they are set: these calls return nothing even if they fail."""
    with undo_batch(engine, "Place", entity_id):
        if position is not None:
            target = engine.vector(position)
            engine.event(
                "components.TransformBus", "SetWorldTranslation", entity_id, target, returns="nothing"
            )
        if rotation is not None:
            turn = engine.quaternion(rotation)
            engine.event(
                "components.TransformBus", "SetWorldRotationQuaternion", entity_id, turn, returns="nothing"
            )
    if position is not None:
        _must_be(position, position_of(engine, entity_id), math.dist, "SetWorldTranslation")
    if rotation is not None:
        _must_be(rotation, rotation_of(engine, entity_id), _turn, "SetWorldRotationQuaternion")


def _must_move(session: EditorSession, entity: GivenEntity) -> None:
    """Editor entities are switched off while the game runs; asking them would give nothing."""
    end = None if entity.is_in_game else session.what_ends_play()
    if end is not None:
        raise O3DEError(
            "bad_state",
            f"{entity.text} is the entity that is edited, which is switched off while the game runs: "
            f"entity_tool.find_game gives the one that lives in game mode, {end} ends the game",
        )


def _must_be(
    asked: Values, found: list[float], gap: Callable[[Values, list[float]], float], call: str
) -> None:
    if not gap(asked, found) < 1e-3 * max(1.0, *map(abs, asked)):  # the engine has 32-bit numbers
        raise O3DEError("az_call_failed", f"{call} was asked for {list(asked)}, and it is {found}")


def _turn(asked: Values, found: list[float]) -> float:
    return 1.0 - abs(math.fsum(a * b for a, b in zip(asked, found, strict=True)))


# Prefabs

SUFFIX = ".prefab"


def instantiate(
    session: EditorSession,
    path: args.ProjectPath,
    position: args.Position = ORIGIN,
    rotation: args.Rotation = (0.0, 0.0, 0.0, 1.0),
    name: args.Name | None = None,
) -> Frames[str]:
    """Put a prefab into the level; return the id of its container."""
    engine = session.engine
    file = session.file(_prefab(path))
    if not file.is_file():
        raise O3DEError("not_found", f"the project has no prefab {path}")
    made = engine.broadcast(
        "prefab.PrefabPublicRequestBus",
        "InstantiatePrefab",
        str(file),
        engine.no_entity(),
        engine.vector(position),
        returns="outcome",
    )
    valid_id(made, "InstantiatePrefab")
    yield from session.pass_frames()
    place(engine, made, position, rotation)
    if name is not None:
        give_name(session, made, name)
    yield from session.pass_frames()
    return session.remember(made)


def create_prefab(
    session: EditorSession, entities: args.EditedEntities, path: args.ProjectPath
) -> Frames[str]:
    """Make a prefab of entities, and of all below them; return the id of its container.

    It is in memory, and is written with the level. The entities have new ids then.
    """
    engine = session.engine
    file = session.file(_prefab(path))
    if file.exists():
        raise O3DEError("bad_state", f"{path} exists; prefab_tool.create does not write over it")
    ids = [entity.id for entity in entities]
    made = engine.broadcast(
        "prefab.PrefabPublicRequestBus", "CreatePrefabInMemory", ids, str(file), returns="outcome"
    )
    valid_id(made, "CreatePrefabInMemory")
    for entity in entities:
        session.forget(entity.text)
    yield from session.pass_frames()
    return session.remember(made)


def _prefab(path: str) -> str:
    if not path.endswith(SUFFIX):
        raise O3DEError("bad_request", f'"path" must be that of a {SUFFIX} file; found {path}')
    return path
