"""The entities that callers know, by the text of their ids."""

from __future__ import annotations

from typing import Any, NamedTuple

from o3de_sim.errors import O3DEError


class Entity(NamedTuple):
    """An entity that an operation was given."""

    text: str
    id: Any
    """The engine's own `EntityId`. Never a key of a dict: its hash is that of its address."""
    is_in_game: bool
    """It belongs to the running game, and is not the one that is edited."""


class Handles:
    """Text to id, because the engine makes no id of a number. What was forgotten cannot be guessed."""

    def __init__(self) -> None:
        self._edited: dict[str, Any] = {}
        self._in_game: dict[str, Any] = {}

    def remember(self, entity_id: Any) -> str:
        """Take an id of an entity that is edited; return its text."""
        text = str(entity_id.ToString())
        self._edited[text] = entity_id
        return text

    def remember_in_game(self, entity_id: Any) -> str:
        """Take an id of an entity of the running game; return its text."""
        text = str(entity_id.ToString())
        self._in_game[text] = entity_id
        return text

    def find(self, text: str) -> Entity | None:
        """Return the entity of a text, if it is known."""
        if text in self._in_game:
            return Entity(text, self._in_game[text], is_in_game=True)
        if text in self._edited:
            return Entity(text, self._edited[text], is_in_game=False)
        return None

    def get(self, text: str) -> Entity:
        """Return the entity of a text.

        Raises:
            O3DEError: not_found: It is not known.
        """
        found = self.find(text)
        if found is None:
            raise O3DEError(
                "not_found",
                f"no entity {text} is known here: ids come from entity_tool.create and find, and are "
                "forgotten when the level changes and, those of the game, when game mode ends",
            )
        return found

    def forget(self, text: str) -> None:
        """Forget one entity, such as a deleted one."""
        self._edited.pop(text, None)
        self._in_game.pop(text, None)

    def forget_game(self) -> None:
        """Forget what was in the game, which has ended."""
        self._in_game.clear()

    def forget_all(self) -> None:
        """Forget everything: another level is open."""
        self._edited.clear()
        self._in_game.clear()
