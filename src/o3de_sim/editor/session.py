"""What the operations share: the engine, the entities that callers know, and the project's folder."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.handles import Entity, Handles
from o3de_sim.errors import O3DEError

T = TypeVar("T")
Frames = Generator[None, None, T]
"""An operation that needs frames: each `yield` hands the thread back until a later frame."""


class Session:
    """One Editor with its open level.

    Args:
        engine: The engine.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.handles = Handles()
        self.project = engine.project.resolve()
        self.waiting_for = ""
        """What the running operation waits for, in words, for the error if it waits too long."""
        self._level = self.level()

    def level(self) -> str:
        """Return the name of the open level; empty if none is."""
        return str(self.engine.general("get_current_level_name"))

    def is_in_game_mode(self) -> bool:
        """Return whether the game runs."""
        return bool(self.engine.general("is_in_game_mode"))

    def is_in_simulation_mode(self) -> bool:
        """Return whether the Editor's own physics runs."""
        return bool(self.engine.general("is_in_simulation_mode"))

    def what_ends_play(self) -> str | None:
        """Return by what the level can be edited again; None if it can be.

        In both modes the engine switches its entities off, and runs others in their stead.
        """
        if self.is_in_game_mode():
            return "simulation_tool.exit_game_mode"
        return "simulation_tool.toggle_physics(false)" if self.is_in_simulation_mode() else None

    def notice_changes(self) -> None:
        """Forget the entities of a level that is no longer open, and of a game that has ended."""
        level = self.level()
        if level != self._level:
            self.handles.forget_all()
            self._level = level
        if not self.is_in_game_mode():
            self.handles.forget_game()

    def entity(self, text: str) -> Entity:
        """Return a known entity that exists.

        Raises:
            O3DEError: not_found.
        """
        found = self.handles.get(text)
        if not found.is_in_game and not self.exists(found):
            self.handles.forget(text)
            raise O3DEError("not_found", f"the entity {text} does not exist any more: it was deleted")
        return found

    def exists(self, entity: Entity) -> bool:
        """Return whether an entity is still there."""
        return bool(self.engine.broadcast("editor.ToolsApplicationRequestBus", "EntityExists", entity.id))

    def file(self, path: str) -> Path:
        """Return the file of a path in the project.

        Raises:
            O3DEError: bad_request: It leads out of the project by a symbolic link, or cannot be looked at.
        """
        try:
            found = (self.project / path).resolve()
            found.exists()
        except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError
            raise O3DEError("bad_request", f"{path} cannot be looked at: {error}") from None
        if not found.is_relative_to(self.project):
            raise O3DEError("bad_request", f"{path} leads out of the project by a symbolic link")
        return found

    def pass_frames(self, count: int = 1) -> Frames[None]:
        """Let frames pass."""
        last = self.engine.frame_count + count
        yield from self.wait(lambda: self.engine.frame_count >= last, "frames to pass")

    def wait(self, is_so: Callable[[], bool], what: str) -> Frames[None]:
        """Let frames pass until something is so. The deadline is the caller's."""
        self.waiting_for = what
        while not is_so():
            yield


def valid_id(entity_id: Any, what: str) -> Any:
    """Return an id that the engine gave.

    Raises:
        O3DEError: az_call_failed: It is that of no entity.
    """
    if not entity_id.IsValid():
        raise O3DEError(
            "az_call_failed", f"{what}: the engine gave no entity. Is a level open, and out of game mode?"
        )
    return entity_id
