"""Words and numbers that both ends of the connection know."""

from __future__ import annotations

from typing import Final, Literal

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
