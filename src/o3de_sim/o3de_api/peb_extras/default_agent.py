"""The agent of those who have none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from o3de_sim.constants import O3DE_AGENT_PEB_MODE, O3DE_AGENT_SOCKET_MODE
from o3de_sim.editor.azlmbr_calls import azlmbr_is_here
from o3de_sim.o3de_api.o3de_agent import O3DEAgent


@lru_cache(maxsize=1)
def default_agent() -> O3DEAgent:
    """Return the one agent of this process: inside the Editor the engine itself, else through the socket."""
    return O3DEAgent(O3DE_AGENT_PEB_MODE if azlmbr_is_here() else O3DE_AGENT_SOCKET_MODE)


@contextmanager
def lent_agent() -> Iterator[O3DEAgent]:
    """Lend that agent for one question. The Editor serves one client, so the connection is not kept."""
    agent = default_agent()
    try:
        yield agent
    finally:
        if agent.mode == O3DE_AGENT_SOCKET_MODE:
            agent.close()
