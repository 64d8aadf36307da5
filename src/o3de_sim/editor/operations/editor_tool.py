"""Levels, and entities without a name."""

from __future__ import annotations

from difflib import get_close_matches

from o3de_sim.editor.operations.entity_tool import delete, find, make
from o3de_sim.editor.session import EditorSession, Frames, GivenEntity
from o3de_sim.errors import O3DEError

TEMPLATES = ("Basic", "Default_Level")
"""What a new level is made of: sky, sun and camera, of the first of these that the engine has."""
FAILURES = {1: "it exists", 2: "its folder cannot be made", 3: "its path is too long"}


def create_new_entity_at_position(
    session: EditorSession, position: tuple[float, ...], parent: GivenEntity | None
) -> Frames[str]:
    """Make an entity at a position in the world, in metres, which the Editor names; return its id."""
    made = make(session, position, parent)
    yield from session.pass_frames()
    return session.handles.remember(made)


def create_level(session: EditorSession, name: str) -> Frames[None]:
    """Make a level with nothing but light and a camera in it, and open it."""
    if level_exists(session, name):
        raise O3DEError("bad_state", f"the level {name} exists: editor_tool.open_level opens it")
    session.handles.forget_all()
    code = session.engine.general(
        "create_level_no_prompt",
        f"Prefabs/{_template(session)}.prefab",
        name,
        1024,  # terrain: resolution, unit size, texture size, whether it has one; none is used, all are due
        1,
        4096,
        False,  # noqa: FBT003
    )
    if code != 0:
        raise O3DEError(
            "az_call_failed", f"the level {name} was not made: {FAILURES.get(code, f'code {code}')}"
        )
    yield from _until_open(session, name)
    for exhibit in ("Ground", "Shader Ball"):  # obstacles of the default level
        for text in find(session, exhibit):
            yield from delete(session, session.handles.get(text))


def _template(session: EditorSession) -> str:
    folder = session.engine.engine_folder / "Assets" / "Editor" / "Prefabs"
    there = (name for name in TEMPLATES if (folder / f"{name}.prefab").is_file())
    return next(there, TEMPLATES[-1])


def open_level(session: EditorSession, name: str) -> Frames[None]:
    """Open a level. What was not saved of the one before is lost."""
    if not level_exists(session, name):
        folder = session.file("Levels")
        levels = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        close = get_close_matches(name, levels, n=3) or levels[:3]
        raise O3DEError("not_found", f"no level {name} in {folder}; there are {', '.join(close) or 'none'}")
    session.handles.forget_all()
    if not session.engine.general("open_level_no_prompt", name):
        raise O3DEError("az_call_failed", f"the level {name} was not opened; the Editor's log says why")
    yield from _until_open(session, name)


def save_level(session: EditorSession) -> None:
    """Write the open level."""
    if not session.level():
        raise O3DEError("bad_state", "no level is open: editor_tool.create_level or open_level opens one")
    if not session.engine.general("save_level"):
        raise O3DEError("az_call_failed", "the level was not saved: is its file read-only, or the disk full?")


def level_exists(session: EditorSession, name: str) -> bool:
    """Return whether the project has a level of this name."""
    return session.file(f"Levels/{name}/{name}.prefab").is_file()


def _until_open(session: EditorSession, name: str) -> Frames[None]:
    yield from session.wait(lambda: session.level() == name, f"the level {name} to be open")
    session.notice_changes()
    yield from session.pass_frames()
