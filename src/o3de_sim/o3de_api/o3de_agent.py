"""The way to the engine, and all that can be asked of it."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from o3de_sim.constants import DEFAULT_TIMEOUT_S, O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE, Mode
from o3de_sim.errors import O3DEError
from o3de_sim.o3de_api.interface.asset_tool import AssetTool
from o3de_sim.o3de_api.interface.editor_tool import EditorTool
from o3de_sim.o3de_api.interface.entity_tool import EntityTool
from o3de_sim.o3de_api.interface.general import GeneralTool
from o3de_sim.o3de_api.interface.physics import PhysicsTool
from o3de_sim.o3de_api.interface.prefab_tool import PrefabTool
from o3de_sim.o3de_api.interface.render_tool import RenderTool
from o3de_sim.o3de_api.interface.transform import TransformTool
from o3de_sim.o3de_api.interface_extras.ros2_tool import Ros2Tool
from o3de_sim.o3de_api.interface_extras.simulation_tool import SimulationTool
from o3de_sim.o3de_api.link import Link
from o3de_sim.o3de_api.peb_link import PebLink
from o3de_sim.o3de_api.socket_link import SocketLink


class O3DEAgent:
    """The engine, seen from Python. Both modes do the same operations with the same results.

    Nothing is connected before the first call.

    Args:
        mode: `socket`, from another process, or `peb`, inside the Editor's own Python.
        host: Where the Editor runs; this machine if missing.
        port: Of the agent in the Editor; from O3DE_AGENT_PORT, else 8080, if missing.
        token: What the agent wants to hear; from O3DE_AGENT_TOKEN or the file it left, if missing.
        timeout_s: How long an operation may take, unless a call says otherwise.

    Raises:
        O3DEError: The mode is neither, the port is none, or the mode is `peb` and this is not the Editor.
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
        self._link: Link = PebLink() if mode == O3DE_AGENT_PEB_MODE else SocketLink(host, port, token)
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
        """Return what the agent in the Editor said of itself at first: protocol, engine, project, level, ...

        Raises:
            O3DEError: It cannot be reached.
        """
        return self._link.greet(self.timeout_s)

    def call(self, op: str, args: dict[str, Any], timeout_s: float | None = None) -> Any:
        """Do an operation of the table and return its result.

        Args:
            op: Its name, such as `tc.get_position`.
            args: By name, as they stand on the wire: lists for vectors, quaternions x, y, z, w.
            timeout_s: How long it may take in the Editor.

        Raises:
            O3DEError: It failed; the code says of what kind.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
