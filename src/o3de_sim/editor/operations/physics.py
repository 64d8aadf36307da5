"""Rigid bodies and colliders. A collider needs a body on its entity, or it stays pending."""

from __future__ import annotations

from typing import Any

from o3de_sim.editor import components
from o3de_sim.editor.arguments import Collider
from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operations.asset_tool import product
from o3de_sim.editor.session import EditorSession, GivenEntity
from o3de_sim.errors import O3DEError

STATIC = "PhysX Static Rigid Body"
DYNAMIC = "PhysX Dynamic Rigid Body"
PRIMITIVE = "PhysX Primitive Collider"
MESH = "PhysX Mesh Collider"
KINEMATIC = "Configuration|Type"  # a flag, for all its name


def add_rigid_body(session: EditorSession, entity: GivenEntity, kind: str, mass: float | None) -> None:
    """Give an entity a body; the mass of a dynamic one is in kilograms, or follows from its colliders."""
    engine = session.engine
    if _body(engine, entity.id) is not None:
        raise O3DEError("bad_state", f"{entity.text} has a rigid body; one entity has one")
    if kind == "static":
        if mass is not None:
            raise O3DEError("bad_request", 'pc.add_rigid_body: a static body has no "mass"')
        components.add(engine, entity.id, STATIC)
        return
    body = components.add(engine, entity.id, DYNAMIC)
    components.write(engine, body, KINEMATIC, kind == "kinematic")
    if mass is not None:
        components.write(engine, body, "Configuration|Compute Mass", value=False)
        components.write(engine, body, "Configuration|Mass", mass)


def add_colliders(session: EditorSession, entity: GivenEntity, colliders: list[Collider]) -> None:
    """Give an entity shapes to collide with, each a `Collider` or a mapping of the same names."""
    _need_body(session, entity)
    for collider in colliders:
        _add_primitive(session.engine, entity.id, collider)


def add_mesh_collider(session: EditorSession, entity: GivenEntity, asset_path: str) -> None:
    """Let an entity collide as the triangles of a mesh in the project. Not for dynamic bodies."""
    engine = session.engine
    if _need_body(session, entity) == DYNAMIC:
        body = components.get(engine, entity.id, DYNAMIC)
        if not components.read(engine, body, KINEMATIC):
            raise O3DEError(
                "bad_state",
                f"{entity.text} has a dynamic body, on which a mesh of triangles is not allowed: "
                "use pc.add_colliders, or a static or kinematic body",
            )
    mesh = product(session, asset_path, ".pxmesh")
    collider = components.add(engine, entity.id, MESH)
    components.write(engine, collider, "Shape Configuration|Asset|PhysX Mesh", mesh)


def has_physics(session: EditorSession, entity: GivenEntity) -> bool:
    """Return whether it has a body and something to collide with."""
    engine = session.engine
    return _body(engine, entity.id) is not None and any(
        components.has(engine, entity.id, name) for name in (PRIMITIVE, MESH)
    )


def _body(engine: Engine, entity_id: Any) -> str | None:
    for name in (STATIC, DYNAMIC):
        if components.has(engine, entity_id, name):
            return name
    return None


def _need_body(session: EditorSession, entity: GivenEntity) -> str:
    found = _body(session.engine, entity.id)
    if found is None:
        raise O3DEError(
            "bad_state", f"{entity.text} has no rigid body, which a collider needs: pc.add_rigid_body"
        )
    return found


def _add_primitive(engine: Engine, entity_id: Any, collider: Collider) -> None:
    added = components.add(engine, entity_id, PRIMITIVE)
    components.write(engine, added, "Shape Configuration|Shape", _shape(engine, collider.shape))
    width, _, height = collider.size
    if collider.shape == "box":
        components.write(engine, added, "Shape Configuration|Box|Dimensions", engine.vector(collider.size))
    elif collider.shape == "sphere":
        components.write(engine, added, "Shape Configuration|Sphere|Radius", width / 2)
    else:
        group = f"Shape Configuration|{collider.shape.capitalize()}"
        components.write(engine, added, f"{group}|Height", height)
        components.write(engine, added, f"{group}|Radius", width / 2)
    components.write(engine, added, "Collider Configuration|Offset", engine.vector(collider.translate))
    components.write(
        engine, added, "Collider Configuration|Rotation", engine.quaternion(collider.rotate.to_xyzw())
    )


def _shape(engine: Engine, shape: str) -> Any:
    # ShapeType_Capsule, which is 2, is not given to Python.
    return 2 if shape == "capsule" else engine.constant("physics", f"ShapeType_{shape.capitalize()}")
