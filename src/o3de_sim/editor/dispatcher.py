"""From the name of an operation and its arguments to what it does, the same for both ways to reach it."""

from __future__ import annotations

from collections.abc import Generator
from difflib import get_close_matches
from typing import Any

from o3de_sim.editor.arguments import Argument, shown
from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.operation_table import TABLE, Operation
from o3de_sim.editor.session import EditorSession, GivenEntity
from o3de_sim.errors import O3DEError


class Dispatcher:
    """Starts operations."""

    def __init__(self, engine: Engine) -> None:
        self._session = EditorSession(engine, list(TABLE))

    @property
    def frame_count(self) -> int:
        """How many frames have passed."""
        return self._session.engine.frame_count

    def start(self, op: str, args: dict[str, Any]) -> Generator[None, None, Any]:
        """Check everything, and return the operation, ready to run: resume it once in each frame.

        It returns the result, which is JSON. O3DEError comes now or when it runs.
        """
        operation = TABLE.get(op)
        if operation is None:
            raise O3DEError("unknown_op", f"no operation {shown(op)}{_like(op, list(TABLE))}")
        values = _checked(operation, args)
        self._session.notice_changes()
        end = self._session.what_ends_play() if operation.edits else None
        if end is not None:
            raise O3DEError(
                "bad_state",
                f"{op} changes the level, which cannot be done while the game runs: {end} ends it",
            )
        for argument in operation.arguments:
            if argument.kind.is_entity and values[argument.name] is not None:
                values[argument.name] = self._looked_up(operation, argument, values[argument.name])
        self._session.waiting_for = ""
        return _run(self._session, operation, values)

    def why_late(self, frames: int) -> str:
        """Return what probably keeps an operation from its end, `frames` frames after it began."""
        waited = self._session.waiting_for or "its end"
        if frames == 0:
            return (
                f"waited for {waited}, but no frame has passed: the Editor has no focus and "
                "ed_keepEditorActive is 0, a dialog waits for an answer, or a level is being loaded"
            )
        state = "in game mode" if self._session.is_in_game_mode() else "not in game mode"
        return f"waited for {waited} through {frames} frames; the Editor is {state}, and its log may say more"

    def _looked_up(
        self, operation: Operation, argument: Argument, found: str | list[str]
    ) -> GivenEntity | list[GivenEntity]:
        if isinstance(found, list):
            return [self._entity(operation, argument, text) for text in found]
        return self._entity(operation, argument, found)

    def _entity(self, operation: Operation, argument: Argument, text: str) -> GivenEntity:
        entity = self._session.entity(text)
        if entity.is_in_game and argument.kind.must_be_edited:
            raise O3DEError(
                "bad_state",
                f'{operation.name}: "{argument.name}" is {text}, which belongs to the running game; '
                "only tc.get_position and tc.get_rotation take such an entity",
            )
        return entity


def _checked(operation: Operation, args: dict[str, Any]) -> dict[str, Any]:
    known = [argument.name for argument in operation.arguments]
    for name in args:
        if name not in known:
            takes = ", ".join(known) or "none"
            raise O3DEError(
                "bad_request",
                f"{operation.name} has no argument {shown(name)}{_like(name, known)}; it takes {takes}",
            )
    return {argument.name: argument.value(operation.name, args) for argument in operation.arguments}


def _like(word: str, words: list[str]) -> str:
    close = get_close_matches(word[:80], words, n=3)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _run(session: EditorSession, operation: Operation, values: dict[str, Any]) -> Generator[None, None, Any]:
    result = operation.function(session, **values)
    if isinstance(result, Generator):
        result = yield from result
    return result
