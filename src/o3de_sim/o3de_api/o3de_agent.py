"""The agent: all operations of the engine, from inside the Editor's Python or through a socket."""

from __future__ import annotations

import time
from typing import Any

from o3de_sim.constants import DEFAULT_TIMEOUT_S, O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE, Mode
from o3de_sim.editor.azlmbr_calls import Engine, azlmbr_is_here
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.tools import (
    AssetTool,
    EditorTool,
    EntityTool,
    GeneralTool,
    PhysicsTool,
    PrefabTool,
    RenderTool,
    Ros2Tool,
    SimulationTool,
    TransformTool,
)
from o3de_sim.o3de_api.socket_link import SocketLink


class PebLink:
    """Does operations in this process.

    While one waits for a frame the Editor goes on, so this is for scripts and not for what itself runs in a
    frame, such as a tick handler: there the engine would wait for itself.
    """

    def __init__(self) -> None:
        if not azlmbr_is_here():
            raise O3DEError(
                "connection",
                "mode 'peb' works only in the Python of the O3DE Editor, where azlmbr can be imported; from "
                "other processes use mode 'socket'",
            )
        self._started: tuple[Engine, Dispatcher] | None = None
        self._info: dict[str, Any] | None = None

    def greet(self, timeout_s: float) -> dict[str, Any]:
        """Return what the agent says of itself."""
        if self._info is None:
            self._info = dict(self.call("hello", {}, timeout_s))
        return self._info

    def call(self, op: str, args: dict[str, Any], timeout_s: float) -> Any:
        """Do an operation and return its result."""
        if self._started is None:
            engine = Engine()
            self._started = engine, Dispatcher(engine)
        engine, dispatcher = self._started
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
        if self._started is not None:
            self._started[0].close()
        self._started = self._info = None


class O3DEAgent:
    """The engine, seen from Python. Both modes do the same operations with the same results.

    Nothing is connected before the first call. The mode is `socket`, from another process, or `peb`, inside
    the Editor's own Python. The defaults: this machine, the port of O3DE_AGENT_PORT or 8080, the token of
    O3DE_AGENT_TOKEN or of the file that the agent left. `timeout_s` is for each operation, unless a call says
    otherwise.
    """

    def __init__(
        self,
        mode: Mode = O3DE_AGENT_SOCKET_MODE,
        host: str | None = None,
        port: int | None = None,
        token: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        if mode not in (O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE):
            raise O3DEError("bad_request", f"mode: expected 'socket' or 'peb', found {mode!r}")
        self.mode = mode
        self.timeout_s = timeout_s
        self._link = PebLink() if mode == O3DE_AGENT_PEB_MODE else SocketLink(host, port, token)
        self.entity_tool = EntityTool(self.call)
        self.editor_tool = EditorTool(self.call)
        self.tc = TransformTool(self.call)
        self.pc = PhysicsTool(self.call)
        self.render_tool = RenderTool(self.call)
        self.asset_tool = AssetTool(self.call)
        self.prefab_tool = PrefabTool(self.call)
        self.general = GeneralTool(self.call)
        self.simulation_tool = SimulationTool(self.call)
        self.ros2_tool = Ros2Tool(self.call)

    @property
    def info(self) -> dict[str, Any]:
        """The agent's first answer: protocol, engine, project, level, ..."""
        return self._link.greet(self.timeout_s)

    def call(self, op: str, args: dict[str, Any], timeout_s: float | None = None) -> Any:
        """Do an operation of the table, such as `tc.get_position`, and return its result.

        The arguments are as on the wire: lists for vectors, quaternions x, y, z, w.
        """
        return self._link.call(op, args, self.timeout_s if timeout_s is None else timeout_s)

    def ping(self) -> None:
        """Ask for a sign of life."""
        self.call("ping", {})

    def selftest(self, timeout_s: float | None = None) -> list[dict[str, Any]]:
        """Try what the engine can do; return for each trial `name`, `ok` and `detail`."""
        return list(self.call("selftest", {}, timeout_s))

    def close(self) -> None:
        """End the connection. Another call begins a new one."""
        self._link.close()

    def __enter__(self) -> O3DEAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
