"""What the operations share: the engine, the entities that callers know, and the project's folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.errors import O3DEError

T = TypeVar("T")
Frames = Generator[None, None, T]
"""An operation that needs frames: each `yield` hands the thread back until a later frame."""


class GivenEntity(NamedTuple):
    """An entity that an operation was given."""

    text: str
    id: Any  # the engine's own `EntityId`. Never a key of a dict: its hash is that of its address.
    is_in_game: bool  # it belongs to the running game, and is not the one that is edited


class EditorSession:
    """One Editor with its open level, and the entities that callers were told of, by the texts of their ids.

    The engine makes no id of a number, so what was forgotten cannot be guessed.
    """

    def __init__(self, engine: Engine, operations: list[str]) -> None:
        self.engine = engine
        self.operations = operations  # the names of all
        self._edited: dict[str, GivenEntity] = {}
        self._in_game: dict[str, GivenEntity] = {}
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
        """Return what makes the level editable again; None if it is editable.

        In both modes the engine switches its entities off, and runs others in their place.
        """
        if self.is_in_game_mode():
            return "simulation_tool.exit_game_mode"
        return "simulation_tool.toggle_physics(false)" if self.is_in_simulation_mode() else None

    def notice_changes(self) -> None:
        """Forget the entities of a level that is no longer open, and of a game that has ended."""
        level = self.level()
        if level != self._level:
            self.forget_all()
            self._level = level
        if not self.is_in_game_mode():
            self._in_game.clear()

    def remember(self, entity_id: Any, *, is_in_game: bool = False) -> str:
        """Take the id of an entity, of the level or of the running game; return its text."""
        text = str(entity_id.ToString())
        entities = self._in_game if is_in_game else self._edited
        entities[text] = GivenEntity(text, entity_id, is_in_game)
        return text

    def known(self, text: str) -> GivenEntity | None:
        """Return the entity of a text, if callers were told of it."""
        return self._in_game.get(text) or self._edited.get(text)

    def forget(self, text: str) -> None:
        """Forget one entity, such as a deleted one."""
        self._edited.pop(text, None)
        self._in_game.pop(text, None)

    def forget_all(self) -> None:
        """Forget everything: another level is open."""
        self._edited.clear()
        self._in_game.clear()

    def entity(self, text: str) -> GivenEntity:
        """Return a known entity that exists; O3DEError not_found."""
        found = self.known(text)
        if found is None:
            raise O3DEError(
                "not_found",
                f"no entity {text} is known here: ids come from entity_tool.create and find, and are "
                "forgotten when the level changes and, those of the game, when game mode ends",
            )
        if not found.is_in_game and not self.exists(found):
            self.forget(text)
            raise O3DEError("not_found", f"the entity {text} does not exist any more: it was deleted")
        return found

    def exists(self, entity: GivenEntity) -> bool:
        """Return whether an entity is still there."""
        return bool(self.engine.broadcast("editor.ToolsApplicationRequestBus", "EntityExists", entity.id))

    def file(self, path: str) -> Path:
        """Return the file of a path in the project; bad_request if a symbolic link leads out of it."""
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
    """Return an id that the engine gave; O3DEError az_call_failed if it is that of no entity."""
    if not entity_id.IsValid():
        raise O3DEError(
            "az_call_failed", f"{what}: the engine gave no entity. Is a level open, and out of game mode?"
        )
    return entity_id


@contextmanager
def undo_batch(engine: Engine, label: str, entity_id: Any) -> Iterator[None]:
    """Record what is done to an entity inside.

    Without it a change of a transform is seen in the viewport and lost when the level is saved or played,
    because those take the prefab's template, and only what is dirty within a batch is written there.
    """
    engine.broadcast("editor.ToolsApplicationRequestBus", "BeginUndoBatch", label, returns="nothing")
    try:
        engine.broadcast("editor.ToolsApplicationRequestBus", "AddDirtyEntity", entity_id, returns="nothing")
        yield
    finally:
        engine.broadcast("editor.ToolsApplicationRequestBus", "EndUndoBatch", returns="nothing")
