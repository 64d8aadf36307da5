"""The stand-in: an Editor with the real agent in it, and the embedded world as its game mode."""

from __future__ import annotations

import os
import select
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from o3de_sim.editor.azlmbr_calls import Engine
from o3de_sim.editor.dispatcher import Dispatcher
from o3de_sim.editor.server import AgentServer
from proctor.o3de.standin.az_transform import Placement
from proctor.o3de.standin.fake_editor import FRAME_S, FakeEditor
from proctor.o3de.standin.game_world import GameWorld, WorldSettings
from proctor.o3de.standin.project_files import prepare_project


class StandIn:
    """Editor frames, the agent and the world take turns in one thread, that of `run`.

    Only `stop` may be called from another one, or from a signal handler.

    Args:
        project: The project's folder; what it needs is written into it.
        port: Where the agent listens; 0 for any free one.
        settings: How robots see in game mode.

    Raises:
        O3DEError: The port is taken.
    """

    def __init__(self, project: Path, *, port: int = 8080, settings: WorldSettings | None = None) -> None:
        prepare_project(project)
        self.editor = FakeEditor(project)
        self.editor.on_game_mode = self._switch_game_mode
        self.editor.game_transform = self._game_transform
        self.world: GameWorld | None = None
        """In game mode."""
        self._settings = settings or WorldSettings()
        self._stopped = threading.Event()
        with ExitStack() as stack:
            stack.enter_context(self.editor.installed())
            engine = Engine()
            stack.callback(engine.close)
            self.server = AgentServer(Dispatcher(engine), port=port)
            stack.callback(self.server.close)
            self._stack = stack.pop_all()

    def run(self, *, parent_pid: int | None = None) -> None:
        """Pass frames and answer until `stop` is called.

        Args:
            parent_pid: Ends it as well when this process is no longer our parent.
        """
        while not (self._stopped.is_set() or self.editor.wants_to_quit):
            if parent_pid is not None and os.getppid() != parent_pid:
                return
            self.turn()

    def turn(self) -> None:
        """Pass one frame. Waits for a part of one, if there is nothing to do."""
        self.editor.frame()
        self.server.pump()
        if self.world is not None:
            self.world.host.turn(0.0 if self.server.is_busy else FRAME_S)
        elif not self.server.is_busy:
            select.select(self.server.sockets(), [], [], FRAME_S)

    def stop(self) -> None:
        """Let `run` return soon."""
        self._stopped.set()

    def close(self) -> None:
        """Leave the network, in good order. May be called twice."""
        self._stopped.set()
        if self.world is not None:
            self.world.close()
            self.world = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _switch_game_mode(self, is_on: bool) -> None:  # noqa: FBT001
        if self.world is not None:
            self.world.close()
            self.world = None
        level = self.editor.level
        if is_on and level is not None:
            self.world = GameWorld(level.name, level.template, self.editor.assets, self._settings)

    def _game_transform(self, name: str) -> Placement | None:
        return None if self.world is None else self.world.placement(name)
