"""Starts the agent with the Editor: copy this file, and the package, to `Editor/Scripts` of a project or Gem.

Other tools, such as the asset builders, run it too: they have no Editor, and it does nothing there.
Python in the Editor must come up whatever happens here, so what goes wrong is said, and not raised.
"""

from __future__ import annotations

import sys


def _say(problem: object) -> None:
    sys.stdout.write(f"the O3DE agent does not run: {problem}\n")


def _start() -> None:
    try:
        start_agent.start()
    except (O3DEError, ImportError, OSError) as error:
        _say(error)


try:
    from o3de_sim.editor import azlmbr_calls, start_agent
    from o3de_sim.errors import O3DEError
except ImportError as error:
    _say(error)
else:
    if azlmbr_calls.azlmbr_is_here():
        o3de_agent_is_waiting = azlmbr_calls.when_editor_is_ready(_start)
