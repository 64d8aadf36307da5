"""The tools `simulation_tool` and `ros2_tool` without an agent in hand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from o3de_sim.constants import O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE
from o3de_sim.editor.azlmbr_calls import azlmbr_is_here
from o3de_sim.o3de_api.interface.tools import Ros2Tool, SimulationTool
from o3de_sim.o3de_api.o3de_agent import O3DEAgent


@lru_cache(maxsize=1)
def default_agent() -> O3DEAgent:
    """Return the one agent of this process: inside the Editor the engine itself, else through the socket."""
    return O3DEAgent(O3DE_AGENT_PEB_MODE if azlmbr_is_here() else O3DE_AGENT_SOCKET_MODE)


def _call(op: str, args: dict[str, Any], timeout_s: float | None = None) -> Any:
    agent = default_agent()
    try:
        return agent.call(op, args, timeout_s)
    finally:
        if (
            agent.mode == O3DE_AGENT_SOCKET_MODE
        ):  # the Editor serves one client, so the connection is not kept
            agent.close()


simulation_tool = SimulationTool(_call)
ros2_tool = Ros2Tool(_call)
