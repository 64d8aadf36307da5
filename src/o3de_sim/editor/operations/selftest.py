"""Whether this engine does what the operations expect of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from o3de_sim.editor import components
from o3de_sim.editor.arguments import SHAPES, Collider
from o3de_sim.editor.operations import bodies, entities, levels
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.math import Vector3

NAME = "o3de_sim_selftest"
POSITION = (1.5, -2.25, 3.0)
ROTATION = (0.0, 0.0, math.sin(0.4), math.cos(0.4))
COMPONENTS = (
    bodies.STATIC,
    bodies.DYNAMIC,
    bodies.PRIMITIVE,
    bodies.MESH,
    "Mesh",
    *bodies.LIGHTS.values(),
    entities.NON_UNIFORM,
    *bodies.ROBOT,
)
Record = list[dict[str, Any]]


@contextmanager
def _checked(record: Record, name: str) -> Iterator[list[str]]:
    """Write down how a check went. What fails ends the check, not the test."""
    detail: list[str] = []
    try:
        yield detail
    except O3DEError as error:
        record.append({"name": name, "ok": False, "detail": f"{error.code}: {error.message}"})
    else:
        record.append({"name": name, "ok": True, "detail": "; ".join(detail)})


def selftest(session: EditorSession) -> Frames[Record]:
    """Try what scenes are built with on a new entity, then remove it; return how each check went."""
    record: Record = []
    with _checked(record, "components") as detail:
        known = components.names(session.engine)
        missing = [name for name in COMPONENTS if name not in known]
        detail.append(f"not in this project: {', '.join(missing)}" if missing else "all known")
    entity: GivenEntity | None = None
    with _checked(record, "create entity") as detail:
        text = yield from entities.create(session, NAME, (0.0, 0.0, 0.0), None)
        entity = session.entity(text)
        detail.append(text)
    if entity is None:
        return record
    yield from _edit(session, entity, record)
    yield from _play(session, record)
    with _checked(record, "pose after game mode") as detail:
        detail.append(_pose(session, entity))
    with _checked(record, "delete entity"):
        yield from entities.delete(session, entity)
    return record


def _edit(session: EditorSession, entity: GivenEntity, record: Record) -> Frames[None]:
    engine = session.engine
    with _checked(record, "find by name") as detail:
        found = entities.find(session, NAME)
        detail.append(", ".join(found))
        if entity.text not in found:
            raise O3DEError("az_call_failed", f"SearchEntities found {found}, not {entity.text}")
    with _checked(record, "rigid body"):
        bodies.add_rigid_body(session, entity, "static", None)
    with _checked(record, "colliders"):
        size = Vector3(0.5, 0.5, 1.0)
        bodies.add_colliders(session, entity, [Collider(shape, size) for shape in SHAPES])
    with _checked(record, "mesh"):
        bodies.add_mesh(session, entity, None, "box")
    for name in (bodies.STATIC, bodies.PRIMITIVE, "Mesh"):
        with _checked(record, f"properties of {name}") as detail:
            component = components.get(engine, entity.id, name)
            detail.extend(components.properties(engine, component))
    # Last, because the other edits record the entity, too.
    with _checked(record, "set and read pose") as detail:
        entities.place(engine, entity.id, POSITION, ROTATION)
        yield from session.pass_frames()
        detail.append(_pose(session, entity))


def _play(session: EditorSession, record: Record) -> Frames[None]:
    with _checked(record, "enter game mode"):
        yield from levels.enter_game_mode(session)
        yield from session.pass_frames()
    with _checked(record, "the entity in the game") as detail:
        text = entities.find_game(session, NAME)
        if text is None:
            raise O3DEError("not_found", f"find_game_entity knows no {NAME}")
        detail.append(_pose(session, session.entity(text)))
    with _checked(record, "exit game mode"):
        yield from levels.exit_game_mode(session)
        yield from session.pass_frames()


def _pose(session: EditorSession, entity: GivenEntity) -> str:
    """Return the pose as text; O3DEError if it is not the one that was set, so the edit was lost."""
    position = entities.position_of(session.engine, entity.id)
    rotation = entities.rotation_of(session.engine, entity.id)
    text = f"position {position}, rotation {rotation}"
    turned = abs(math.fsum(a * b for a, b in zip(rotation, ROTATION, strict=True)))
    if math.dist(position, POSITION) > 1e-3 or turned < 0.999:
        raise O3DEError(
            "az_call_failed", f"expected position {list(POSITION)}, rotation {list(ROTATION)}; found {text}"
        )
    return text
