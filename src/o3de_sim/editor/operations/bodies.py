"""Rigid bodies and colliders, meshes, lights and pictures, and what a robot needs of the ROS 2 Gems.

A collider needs a body on its entity, or it stays pending. Components of the ROS 2 Gems are looked for, not
set: what they say is in the robot's prefab.
"""

from __future__ import annotations

from typing import Annotated, Any

from o3de_sim.editor import arguments as args
from o3de_sim.editor import components
from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operations.asset_tool import MODEL, product
from o3de_sim.editor.operations.entities import with_descendants
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity
from o3de_sim.errors import O3DEError

STATIC = "PhysX Static Rigid Body"
DYNAMIC = "PhysX Dynamic Rigid Body"
PRIMITIVE = "PhysX Primitive Collider"
MESH = "PhysX Mesh Collider"
KINEMATIC = "Configuration|Type"  # a flag, for all its name


def add_rigid_body(
    session: EditorSession,
    entity: args.EditedEntity,
    type: Annotated[str, args.choice("static", "dynamic", "kinematic")],  # noqa: A002 - as files call it
    mass: Annotated[float, args.number(1e-6, 1e6)] | None = None,
) -> None:
    """Give an entity a body; the mass of a dynamic one is in kilograms, or follows from its colliders."""
    engine = session.engine
    if _body(engine, entity.id) is not None:
        raise O3DEError("bad_state", f"{entity.text} has a rigid body; one entity has one")
    if type == "static":
        if mass is not None:
            raise O3DEError("bad_request", 'pc.add_rigid_body: a static body has no "mass"')
        components.add(engine, entity.id, STATIC)
        return
    body = components.add(engine, entity.id, DYNAMIC)
    components.write(engine, body, KINEMATIC, type == "kinematic")
    if mass is not None:
        components.write(engine, body, "Configuration|Compute Mass", value=False)
        components.write(engine, body, "Configuration|Mass", mass)


def add_colliders(session: EditorSession, entity: args.EditedEntity, colliders: args.Colliders) -> None:
    """Give an entity shapes to collide with, each a `Collider` or a mapping of the same names."""
    _need_body(session, entity)
    for collider in colliders:
        _add_primitive(session.engine, entity.id, collider)


def add_mesh_collider(
    session: EditorSession, entity: args.EditedEntity, asset_path: args.ProjectPath
) -> None:
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


def has_physics(session: EditorSession, entity: args.EditedEntity) -> bool:
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


def _add_primitive(engine: Engine, entity_id: Any, collider: args.Collider) -> None:
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


# What is seen

BOX = "objects/_primitives/_box_1x1.fbx"
PRIMITIVES = {  # of the Gem PrimitiveAssets; all are one metre wide, and a plane is a box that is scaled flat
    "box": BOX,
    "sphere": "objects/_primitives/_sphere_1x1.fbx",
    "cylinder": "objects/_primitives/_cylinder_1x1.fbx",
    "plane": BOX,
}
LIGHTS = {"point": "Light", "directional": "Directional Light"}
PICTURE_FOLDER = "user/screenshots"


def add_mesh(
    session: EditorSession,
    entity: args.EditedEntity,
    asset_path: args.ProjectPath | None = None,
    primitive: Annotated[str, args.choice(*PRIMITIVES)] | None = None,
) -> None:
    """Show a model at the entity: one of the project, or a primitive one metre wide."""
    if (asset_path is None) == (primitive is None):
        raise O3DEError("bad_request", 'render_tool.add_mesh needs one of "asset_path" and "primitive"')
    model = product(session, asset_path or PRIMITIVES[str(primitive)], MODEL)
    mesh = components.add(session.engine, entity.id, "Mesh")
    components.write(session.engine, mesh, "Controller|Configuration|Model Asset", model)


def add_light(
    session: EditorSession,
    entity: args.EditedEntity,
    type: Annotated[str, args.choice(*LIGHTS)],  # noqa: A002
    color: args.Color = (1.0, 1.0, 1.0),
    intensity: Annotated[float, args.number(0.0, 1e9)] | None = None,
) -> None:
    """Let an entity shine, in red, green and blue from 0 to 1, a directional light along its +y.

    The intensity of a directional light is in EV100 (illuminance), that of a point in lumen.
    """
    engine = session.engine
    light = components.add(engine, entity.id, LIGHTS[type])
    if type == "point":
        components.write(engine, light, "Controller|Configuration|Light type", 6)  # the simple point
    components.write(engine, light, "Controller|Configuration|Color", engine.color(color))
    if intensity is not None:
        components.write(engine, light, "Controller|Configuration|Intensity", intensity)


def screenshot(session: EditorSession, path: args.ProjectPath) -> Frames[str]:
    """Write what the viewport shows to a file; return its path in the project.

    A name without a folder lies in `user/screenshots`; another folder must be below `user`, because the Asset
    Processor would take it for an asset elsewhere.
    """
    if "/" not in path:
        path = f"{PICTURE_FOLDER}/{path}"
    if not path.startswith("user/") or not path.lower().endswith((".png", ".ppm")):
        raise O3DEError(
            "bad_request",
            f'render_tool.screenshot: "path" must be a .png or .ppm file below user/; found {path}',
        )
    file = session.file(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise O3DEError("bad_request", f"there is no folder for {path}: {error.strerror}") from None
    results: list[tuple[bool, str]] = []
    try:
        capture = session.engine.broadcast(
            "atom.FrameCaptureRequestBus", "CaptureScreenshot", str(file), returns="outcome"
        )
    except O3DEError as error:
        raise O3DEError(
            "az_call_failed", f"{error.message}. Without a renderer (-rhi=null) nothing can be captured"
        ) from None
    stop = session.engine.on_frame_captured(capture, lambda is_done, text: results.append((is_done, text)))
    try:
        yield from session.wait(lambda: bool(results), "a frame to be drawn and captured")
    finally:
        stop()
    is_done, text = results[0]
    if not is_done or not file.is_file():
        raise O3DEError(
            "az_call_failed", f"no screenshot: {text or 'no file was written'}. Is there a renderer?"
        )
    return path


# ROS 2

ROBOT = (
    "ROS2 Frame",
    "ROS2 Camera Sensor",
    "ROS2 Lidar 2D Sensor",
    "ROS2 Odometry Sensor",
    "ROS2 Robot Control",
)


def is_available(session: EditorSession) -> bool:
    """Return whether the project has the ROS 2 Gem."""
    return components.find_type(session.engine, ROBOT[0]) is not None


def missing_components(session: EditorSession, entity: args.EditedEntity) -> list[str]:
    """Return what neither the entity nor any below it has of what a robot needs here."""
    missing = list(ROBOT)
    for one in with_descendants(session, entity.id):
        missing = [name for name in missing if not components.has(session.engine, one, name)]
    return missing
