"""What is seen."""

from __future__ import annotations

from o3de_sim.editor import components
from o3de_sim.editor.azlmbr_calls import Values
from o3de_sim.editor.operations.asset_tool import MODEL, product
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity
from o3de_sim.errors import O3DEError

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
    session: EditorSession, entity: GivenEntity, asset_path: str | None, primitive: str | None
) -> None:
    """Show a model at the entity: one of the project, or a primitive one metre wide."""
    if (asset_path is None) == (primitive is None):
        raise O3DEError("bad_request", 'render_tool.add_mesh needs one of "asset_path" and "primitive"')
    model = product(session, asset_path or PRIMITIVES[str(primitive)], MODEL)
    mesh = components.add(session.engine, entity.id, "Mesh")
    components.write(session.engine, mesh, "Controller|Configuration|Model Asset", model)


def add_light(
    session: EditorSession, entity: GivenEntity, kind: str, color: Values, intensity: float | None
) -> None:
    """Let an entity shine, in red, green and blue from 0 to 1, a directional light along its +y.

    The intensity of a directional light is in EV100 (illuminance), that of a point in lumen.
    """
    engine = session.engine
    light = components.add(engine, entity.id, LIGHTS[kind])
    if kind == "point":
        components.write(engine, light, "Controller|Configuration|Light type", 6)  # the simple point
    components.write(engine, light, "Controller|Configuration|Color", engine.color(color))
    if intensity is not None:
        components.write(engine, light, "Controller|Configuration|Intensity", intensity)


def screenshot(session: EditorSession, path: str) -> Frames[str]:
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
