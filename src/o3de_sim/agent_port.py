"""Where the agent listens."""

from __future__ import annotations

import os

from o3de_sim.constants import DEFAULT_PORT, PORT_VARIABLE
from o3de_sim.errors import O3DEError


def agent_port(given: int | str | None = None) -> int:
    """Return the given port, else that of O3DE_AGENT_PORT, else 8080; O3DEError if it is not a port."""
    value = (os.environ.get(PORT_VARIABLE) or DEFAULT_PORT) if given is None else given
    text = str(value)
    if not text.isascii() or not text.isdigit() or len(text) > 5 or not 0 < int(text) < 65536:
        origin = PORT_VARIABLE if given is None else "port"
        raise O3DEError("bad_request", f"{origin}: expected a port from 1 to 65535, found {text[:80]!a}")
    return int(text)
