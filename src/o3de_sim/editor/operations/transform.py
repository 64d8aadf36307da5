"""Where entities are. World coordinates, metres; quaternions x, y, z, w."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from o3de_sim.editor import components
from o3de_sim.editor.azlmbr_calls import Engine, Values
from o3de_sim.editor.session import EditorSession, GivenEntity, undo_batch
from o3de_sim.errors import O3DEError

NON_UNIFORM = "Non-uniform Scale"  # the component, and the property in it


def get_position(session: EditorSession, entity: GivenEntity) -> list[float]:
    """Return where an entity is; in game mode, one that lives there."""
    _must_move(session, entity)
    return position_of(session.engine, entity.id)


def get_rotation(session: EditorSession, entity: GivenEntity) -> list[float]:
    """Return how an entity is turned."""
    _must_move(session, entity)
    return rotation_of(session.engine, entity.id)


def set_pose(
    session: EditorSession,
    entity: GivenEntity,
    position: Values | None = None,
    rotation: Values | None = None,
) -> None:
    """Move an entity, turn it, or both, with all below it. Four bare numbers of a rotation are w, x, y, z."""
    place(session.engine, entity.id, position, rotation)


def set_scale(session: EditorSession, entity: GivenEntity, scale: float | Values) -> None:
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
