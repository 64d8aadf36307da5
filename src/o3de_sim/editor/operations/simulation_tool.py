"""Game mode, in which ROS 2 runs, and the Editor's own physics."""

from __future__ import annotations

from o3de_sim.editor.session import EditorSession, Frames
from o3de_sim.errors import O3DEError


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


def toggle_physics(session: EditorSession, enabled: bool) -> Frames[None]:  # noqa: FBT001  (as it comes from outside)
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
