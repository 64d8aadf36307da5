"""Components of entities that are edited, by the names in the Editor's menu."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.errors import O3DEError


def names(engine: Engine) -> list[str]:
    """Return the names of all components that this project has."""
    found = engine.broadcast(
        "editor.EditorComponentAPIBus", "BuildComponentTypeNameListByEntityType", engine.game_entity_type()
    )
    return [str(name) for name in found]


def find_type(engine: Engine, name: str) -> Any | None:
    """Return the type of a component; None if no enabled Gem has it."""
    found = engine.broadcast(
        "editor.EditorComponentAPIBus", "FindComponentTypeIdsByEntityType", [name], engine.game_entity_type()
    )
    return None if not found or found[0].IsNull() else found[0]


def type_of(engine: Engine, name: str) -> Any:
    """Return the type of a component; O3DEError not_found shows similar names."""
    found = find_type(engine, name)
    if found is None:
        close = get_close_matches(name, names(engine), n=3, cutoff=0.5)
        like = f"; like it are {', '.join(close)}" if close else ""
        raise O3DEError("not_found", f'no component "{name}" in this project{like}. Is its Gem enabled?')
    return found


def has(engine: Engine, entity_id: Any, name: str) -> bool:
    """Return whether an entity has a component. Of a component that does not exist, it has none."""
    kind = find_type(engine, name)
    return kind is not None and bool(
        engine.broadcast("editor.EditorComponentAPIBus", "HasComponentOfType", entity_id, kind)
    )


def add(engine: Engine, entity_id: Any, name: str) -> Any:
    """Add a component; return what names it to the engine, a pair of entity and component."""
    added = engine.broadcast(
        "editor.EditorComponentAPIBus",
        "AddComponentsOfType",
        entity_id,
        [type_of(engine, name)],
        returns="outcome",
    )
    if not added:
        raise O3DEError("az_call_failed", f'"{name}" was not added: the engine gave an empty list')
    return added[0]


def get(engine: Engine, entity_id: Any, name: str) -> Any:
    """Return a component that the entity has."""
    return engine.broadcast(
        "editor.EditorComponentAPIBus",
        "GetComponentOfType",
        entity_id,
        type_of(engine, name),
        returns="outcome",
    )


def read(engine: Engine, component: Any, path: str) -> Any:
    """Return a property, by the path of names in the Editor's panel."""
    return engine.broadcast(
        "editor.EditorComponentAPIBus", "GetComponentProperty", component, path, returns="outcome"
    )


def write(engine: Engine, component: Any, path: str, value: Any) -> None:
    """Set a property."""
    engine.broadcast(
        "editor.EditorComponentAPIBus", "SetComponentProperty", component, path, value, returns="outcome"
    )


def properties(engine: Engine, component: Any) -> list[str]:
    """Return the paths of all properties."""
    found = engine.broadcast("editor.EditorComponentAPIBus", "BuildComponentPropertyList", component)
    return [str(path) for path in found]
