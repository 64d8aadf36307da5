"""Find out what listens at an address where no WebSocket server does, and say what to do about it."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

from proctor.core.addresses import DEFAULT_PORTS

LISTEN_S = 1.0
WRAP = (
    "load the model in a class with `reset` and `act`, and serve that with "
    "`proctor serve-policy my_agent:Agent` (docs/dialects.md has an example)"
)


def describe_other_server(url: str) -> str | None:
    """Return what a server without WebSockets is and what to do, None if it shows nothing of itself.

    It is connected to once more: both ZeroMQ and the gRPC of Python speak first.
    """
    parts = urlsplit(url)
    if parts.scheme == "wss":  # neither GR00T's server nor LeRobot's has TLS
        return None
    host, port = parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]
    with suppress(OSError), socket.create_connection((host, port), timeout=LISTEN_S) as line:
        found = _heard(line, time.monotonic() + LISTEN_S)
        if found[:1] == b"\xff" and found[9:10] == b"\x7f":
            remedy = f"if it is GR00T's, write gr00t+tcp://{host}:{port}; for another one {WRAP}"
            return f"{host}:{port} is a ZeroMQ server: {remedy}"
        if found[3:4] == b"\x04" and found[5:9] == bytes(4):  # a frame of settings, on stream 0
            why = "which Proctor does not unpickle, as that runs code"
            kind = f"a gRPC server, as LeRobot's policy server is. That one exchanges pickled objects, {why}"
            return f"{host}:{port} is {kind}: {WRAP}"
    return None


def _heard(line: socket.socket, until_s: float) -> bytes:
    """Return the first bytes that a server sends; none if it waits."""
    found = b""
    with suppress(TimeoutError, ConnectionError):
        while len(found) < 10 and (left_s := until_s - time.monotonic()) > 0:
            line.settimeout(left_s)
            more = line.recv(64)
            if not more:
                break
            found += more
    return found
