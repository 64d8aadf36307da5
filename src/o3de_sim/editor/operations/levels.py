"""Levels; game mode, in which ROS 2 runs; the Editor's own physics; and what the agent says of itself."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Annotated, Any

from o3de_sim.constants import PROTOCOL
from o3de_sim.editor import arguments as args
from o3de_sim.editor.operations.entities import delete, find
from o3de_sim.editor.session import EditorSession, Frames
from o3de_sim.errors import O3DEError

TEMPLATES = ("Basic", "Default_Level")
"""What a new level is made of: sky, sun and camera, of the first of these that the engine has."""
FAILURES = {1: "it exists", 2: "its folder cannot be made", 3: "its path is too long"}


def create_level(session: EditorSession, name: args.LevelName) -> Frames[None]:
    """Make a level with nothing but light and a camera in it, and open it."""
    if level_exists(session, name):
        raise O3DEError("bad_state", f"the level {name} exists: editor_tool.open_level opens it")
    session.forget_all()
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
            yield from delete(session, session.entity(text))


def _template(session: EditorSession) -> str:
    folder = session.engine.engine_folder / "Assets" / "Editor" / "Prefabs"
    there = (name for name in TEMPLATES if (folder / f"{name}.prefab").is_file())
    return next(there, TEMPLATES[-1])


def open_level(session: EditorSession, name: args.LevelName) -> Frames[None]:
    """Open a level. What was not saved of the one before is lost."""
    if not level_exists(session, name):
        folder = session.file("Levels")
        levels = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        close = get_close_matches(name, levels, n=3) or levels[:3]
        raise O3DEError("not_found", f"no level {name} in {folder}; there are {', '.join(close) or 'none'}")
    session.forget_all()
    if not session.engine.general("open_level_no_prompt", name):
        raise O3DEError("az_call_failed", f"the level {name} was not opened; the Editor's log says why")
    yield from _until_open(session, name)


def save_level(session: EditorSession) -> None:
    """Write the open level."""
    if not session.level():
        raise O3DEError("bad_state", "no level is open: editor_tool.create_level or open_level opens one")
    if not session.engine.general("save_level"):
        raise O3DEError("az_call_failed", "the level was not saved: is its file read-only, or the disk full?")


def level_exists(session: EditorSession, name: args.LevelName) -> bool:
    """Return whether the project has a level of this name."""
    return session.file(f"Levels/{name}/{name}.prefab").is_file()


def _until_open(session: EditorSession, name: str) -> Frames[None]:
    yield from session.wait(lambda: session.level() == name, f"the level {name} to be open")
    session.notice_changes()
    yield from session.pass_frames()


def enter_game_mode(session: EditorSession) -> Frames[None]:
    """Start the game. It is so after some frames."""
    if session.is_in_game_mode():
        return
    if not session.level():
        raise O3DEError("bad_state", "no level is open: editor_tool.open_level opens one")
    yield from toggle_physics(session, enabled=False)  # the engine would start a second game in the first
    session.engine.general("enter_game_mode", returns="nothing")
    yield from session.wait(session.is_in_game_mode, "game mode to begin")


def exit_game_mode(session: EditorSession) -> Frames[None]:
    """End the game, and wait until the level can be edited."""
    if not session.is_in_game_mode():
        return
    session.engine.general("exit_game_mode", returns="nothing")
    yield from session.wait(lambda: not session.is_in_game_mode(), "game mode to end")
    session.notice_changes()


def toggle_physics(session: EditorSession, enabled: args.Flag) -> Frames[None]:
    """Let the Editor's physics run or stand. In game mode it runs anyway, and nothing is done."""
    if session.is_in_game_mode() or session.is_in_simulation_mode() == enabled:
        return
    if enabled:
        session.engine.general("enter_simulation_mode", returns="nothing")
    else:
        session.engine.general("exit_simulation_mode", returns="nothing")
    yield from session.wait(
        lambda: session.is_in_simulation_mode() == enabled,
        f"the Editor's physics to {'begin' if enabled else 'end'}",
    )


def wait_for_propagation(
    session: EditorSession, frames: Annotated[int, args.integer(1, 10_000)] = 1
) -> Frames[None]:
    """Let frames pass, so that edits reach the prefabs."""
    yield from session.pass_frames(frames)


def ping(session: EditorSession) -> dict[str, int]:
    """Return how many frames have passed. Two answers with one number: the Editor stands still."""
    return {"frame": session.engine.frame_count}


def greeting(session: EditorSession, token: args.Token | None = None) -> dict[str, Any]:
    """Return what a client is told at first. Its token has been looked at where it came in."""
    del token
    return {
        "protocol": PROTOCOL,
        "engine": _engine_version(session),
        "project": str(session.project),
        "level": session.level(),
        "in_game_mode": session.is_in_game_mode(),
        "operations": session.operations,
    }


def _engine_version(session: EditorSession) -> str:
    manifest = session.engine.engine_folder / "engine.json"
    try:
        with manifest.open("rb") as file:
            found = json.loads(file.read(1024 * 1024))
    except (OSError, ValueError, RecursionError):
        return "unknown"
    if not isinstance(found, dict):
        return "unknown"
    version = found.get("display_version") or found.get("version") or found.get("O3DEVersion")
    return str(version or "unknown")[:64]
