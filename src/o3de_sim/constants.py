"""Words and numbers that both ends of the connection know, and the port that they use."""

from __future__ import annotations

import os
from typing import Final, Literal

from o3de_sim.errors import O3DEError

Mode = Literal["peb", "socket"]
O3DE_AGENT_PEB_MODE: Final = "peb"  # inside the Editor's own Python (Python Editor Bindings)
O3DE_AGENT_SOCKET_MODE: Final = "socket"  # from another process, through the agent that runs in the Editor

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8080
PORT_VARIABLE: Final = "O3DE_AGENT_PORT"
TOKEN_VARIABLE: Final = "O3DE_AGENT_TOKEN"  # noqa: S105  (the name of a variable)
TOKEN_FOLDER: Final = ".o3de_sim"  # noqa: S105
"""In the home folder: where an agent leaves its token, in `token-<port>`, for clients of the same user."""

PROTOCOL: Final = 1
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
DEFAULT_TIMEOUT_S: Final = 30.0
MAX_TIMEOUT_S: Final = 600.0

EXPORT_FOLDER: Final = "Assets/Proctor"  # in a project: where exported scenes and their meshes lie
ENVIRONMENT: Final = "Atom Default Environment"
"""The entity that new levels of the engine have: sky, sun and camera."""
GROUND: Final = "proctor_ground"  # the entity that is the floor of a built scene: a box whose top is z = 0


def agent_port(given: int | str | None = None) -> int:
    """Return the given port, else that of O3DE_AGENT_PORT, else 8080; O3DEError if it is not a port."""
    value = (os.environ.get(PORT_VARIABLE) or DEFAULT_PORT) if given is None else given
    text = str(value)
    if not text.isascii() or not text.isdigit() or len(text) > 5 or not 0 < int(text) < 65536:
        origin = PORT_VARIABLE if given is None else "port"
        raise O3DEError("bad_request", f"{origin}: expected a port from 1 to 65535, found {text[:80]!a}")
    return int(text)
