"""Prefabs."""

from __future__ import annotations

from o3de_sim.editor.azlmbr_calls import Values
from o3de_sim.editor.operations.entity_tool import give_name
from o3de_sim.editor.operations.transform import place
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity, valid_id
from o3de_sim.errors import O3DEError

SUFFIX = ".prefab"


def instantiate(
    session: EditorSession, path: str, position: Values, rotation: Values, name: str | None
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
    return session.handles.remember(made)


def create(session: EditorSession, entities: list[GivenEntity], path: str) -> Frames[str]:
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
        session.handles.forget(entity.text)
    yield from session.pass_frames()
    return session.handles.remember(made)


def _prefab(path: str) -> str:
    if not path.endswith(SUFFIX):
        raise O3DEError("bad_request", f'"path" must be that of a {SUFFIX} file; found {path}')
    return path
