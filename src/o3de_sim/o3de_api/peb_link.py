"""The engine from inside: operations run in the Editor's own Python, which waits for frames in between."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from o3de_sim.errors import O3DEError

if TYPE_CHECKING:
    from o3de_sim.editor.azlmbr_calls import Engine
    from o3de_sim.editor.dispatcher import Dispatcher


class PebLink:
    """Does operations in this process.

    While one waits for a frame the Editor goes on, so this is for scripts and not for what itself runs in a
    frame, such as a tick handler: there the engine would wait for itself.

    Raises:
        O3DEError: This is not the Editor's Python.
    """

    def __init__(self) -> None:
        from o3de_sim.editor.azlmbr_calls import azlmbr_is_here  # noqa: PLC0415 - only in this mode

        if not azlmbr_is_here():
            raise O3DEError(
                "connection",
                "mode 'peb' works only in the Python of the O3DE Editor, where azlmbr can be imported; from "
                "other processes use mode 'socket'",
            )
        self._engine: Engine | None = None
        self._dispatcher: Dispatcher | None = None
        self._info: dict[str, Any] | None = None

    def greet(self, timeout_s: float) -> dict[str, Any]:
        """Return what the agent says of itself."""
        if self._info is None:
            self._info = dict(self.call("hello", {}, timeout_s))
        return self._info

    def call(self, op: str, args: dict[str, Any], timeout_s: float) -> Any:
        """Do an operation and return its result.

        Raises:
            O3DEError: It failed, or took longer than it may.
        """
        engine, dispatcher = self._start()
        ends = time.monotonic() + timeout_s
        steps = dispatcher.start(op, args)
        try:
            while True:
                next(steps)
                if time.monotonic() > ends:
                    raise O3DEError("timeout", f"{op} was not done after {timeout_s:g} s")
                engine.idle_wait_frames(1)
        except StopIteration as done:
            return done.value
        finally:
            steps.close()

    def close(self) -> None:
        """Stop counting frames, and forget the entities that were asked for."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._dispatcher = self._info = None

    def _start(self) -> tuple[Engine, Dispatcher]:
        from o3de_sim.editor.azlmbr_calls import Engine  # noqa: PLC0415 - only in this mode
        from o3de_sim.editor.dispatcher import Dispatcher  # noqa: PLC0415

        if self._engine is None or self._dispatcher is None:
            self._engine = Engine()
            self._dispatcher = Dispatcher(self._engine)
        return self._engine, self._dispatcher
