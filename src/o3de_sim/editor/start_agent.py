"""Starts the agent in the Editor.

As a script: `Editor --project-path P --runpython .../o3de_sim/editor/start_agent.py --runpythonargs "8080"`.
The script runs before the Editor's main loop, so it sets everything up and returns.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):  # run as a script, where the package may be in no folder that Python knows
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from o3de_sim.constants import agent_port
from o3de_sim.editor.azlmbr_calls import KEEP_ACTIVE, Engine, Stop, start_pump, when_editor_is_ready
from o3de_sim.editor.operation_table import Dispatcher
from o3de_sim.editor.server import AgentServer


class _Agent:
    """The agent that runs, with all that must be undone when it stops."""

    def __init__(self, port: int) -> None:
        self.engine = Engine()
        try:
            self._was_active = str(self.engine.general("get_cvar", KEEP_ACTIVE))
            self.server = AgentServer(Dispatcher(self.engine), port=port)
        except BaseException:
            self.engine.close()
            raise
        self.engine.keep_active()  # and again when the Editor has started, which may set it back
        self._stops: list[Stop] = [
            start_pump(self.server.pump),
            when_editor_is_ready(self.engine.keep_active),
        ]

    def stop(self) -> None:
        for stop in self._stops:
            stop()
        self.server.close()
        was = int(self._was_active) if self._was_active.isdigit() else 0
        self.engine.general("set_cvar_integer", KEEP_ACTIVE, was, returns="nothing")
        self.engine.close()


_running: list[_Agent] = []  # at most one


def start(port: int | None = None) -> AgentServer:
    """Start the agent, or return the running one. Without a port, O3DE_AGENT_PORT, else 8080."""
    if not _running:
        agent = _Agent(agent_port(port))
        _running.append(agent)
        where = agent.server.token_path or "as the environment says"
        sys.stdout.write(f"O3DE agent on 127.0.0.1 port {agent.server.port}, token: {where}\n")
    return _running[0].server


def stop() -> None:
    """Stop the agent, if it runs."""
    while _running:
        _running.pop().stop()


if __name__ == "__main__":
    # Under its own name, so that a second run of the script finds the agent of the first.
    from o3de_sim.editor import start_agent  # noqa: PLW0406

    start_agent.start(agent_port(sys.argv[1]) if len(sys.argv) > 1 else None)
