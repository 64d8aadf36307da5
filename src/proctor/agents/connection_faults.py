"""What a line that does not come about, or does not hold, says about the agent at its end."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, ProxyError
from websockets.frames import CloseCode
from websockets.http11 import Response

from proctor.agents.faults import Departed, WireFault
from proctor.core.addresses import TOKEN_VARIABLE
from proctor.core.availability import is_busy_status
from proctor.core.errors import AgentFault, AgentUnavailable, EvaluatorError

MAX_FRAME_BYTES = 1 << 20
"""For what an agent sends: an action is small, even a chunk of them."""
COME_BACK = (CloseCode.SERVICE_RESTART, CloseCode.TRY_AGAIN_LATER)
"""Close codes of a server that cannot serve at present."""
GOOD_ORDER = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY, CloseCode.NO_STATUS_RCVD)
"""Close codes of a server that ends; the others complain of something."""
MAX_SAID = 200
"""Characters of a server's own word that are shown."""
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of this machine, which has no socket left."""


def no_handshake(url: str, error: InvalidHandshake) -> AgentFault:
    """Tell why a server that answered did not open a WebSocket."""
    if isinstance(error, InvalidStatus):
        return _refused(url, error.response)
    if isinstance(error, ProxyError):
        return _unreachable(f"{url} is not reached through the proxy: {error}")
    if isinstance(error.__cause__, EOFError):  # as a port does whose server is not up yet
        return _turned_away(url)
    problem = f"{url} is no WebSocket server, or not one for agents: {error}"
    return AgentFault(WireFault.MISMATCH, problem)


def _refused(url: str, response: Response) -> AgentFault:
    status = response.status_code
    if is_busy_status(status):
        return _unreachable(f"{url} is not ready, or overloaded (HTTP status {status})")
    if status in (401, 403):
        problem = f"{url} wants a token, or another one (HTTP status {status}): see {TOKEN_VARIABLE}"
        return AgentFault(WireFault.MISMATCH, problem)
    said = (response.body or b"").decode(errors="replace").strip()
    is_plain = 0 < len(said) <= MAX_SAID and said.isprintable()  # a page is not worth showing
    return AgentFault(
        WireFault.MISMATCH,
        f"{url} is an HTTP server, but has no WebSocket there (status {status})"
        + (f": {said}" if is_plain else ""),
    )


def no_line(url: str, error: OSError) -> AgentFault | EvaluatorError:
    """Tell why there is no connection: TLS and deadlines fail with kinds of OSError, too."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = f"{url}: its certificate is not trusted here ({error.verify_message}): see ca_file"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, ssl.SSLError):
        problem = f"{url}: no TLS with this server ({error.reason or error}); ws:// is without TLS"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, TimeoutError):
        return _unreachable(f"{url} did not answer in time")
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return _turned_away(url)
    if error.errno in OUT_OF_RESOURCES:
        return EvaluatorError(f"no socket for a connection to {url}: {_reason(error)}")
    return _unreachable(f"nobody answers at {url}: {_reason(error)}")


def _turned_away(url: str) -> AgentFault:
    other = "ws://, which is without TLS" if url.startswith("wss:") else "wss://, which is with TLS"
    problem = f"{url} closed the connection at once: it is not ready yet, or a server for {other}"
    return _unreachable(problem)


def _unreachable(problem: str) -> AgentUnavailable:
    return AgentUnavailable(problem, kind=WireFault.UNREACHABLE)


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or "no connection to any address of this host"
    return os.strerror(error.errno)


def late(reply_bytes: int, *, is_sent: bool) -> AgentFault:
    """Tell what had not happened by the deadline."""
    if not is_sent:
        return AgentFault(WireFault.ACTION_TIMEOUT, "the agent did not read what it was sent in time")
    if reply_bytes > 0:
        return AgentFault(
            WireFault.SLOW_REPLY, f"{reply_bytes} bytes of a reply came in time, but not its end"
        )
    return AgentFault(WireFault.ACTION_TIMEOUT, "no reply in time")


def gone(error: ConnectionClosed) -> AgentFault:
    """Tell why a connection ended, from the codes that were sent and received."""
    if error.sent is not None and not error.rcvd_then_sent:
        if error.sent.code == CloseCode.MESSAGE_TOO_BIG:
            return AgentFault(WireFault.TOO_BIG, f"a frame of more than {MAX_FRAME_BYTES} bytes")
        if error.sent.code in (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA):
            return AgentFault(
                WireFault.MALFORMED, f"no WebSocket frame: {error.sent.reason or error.sent.code}"
            )
    if error.rcvd is None:
        return Departed(WireFault.DISCONNECTED, "the connection broke")
    said = f"{error.rcvd.code} {error.rcvd.reason}".strip()
    if error.rcvd.code in COME_BACK:
        problem = f"the agent takes nothing at present and closed the connection ({said})"
        return AgentUnavailable(problem, kind=WireFault.UNAVAILABLE)
    if error.rcvd.code == CloseCode.INTERNAL_ERROR:
        return AgentFault(WireFault.AGENT_ERROR, f"the agent failed and closed the connection ({said})")
    problem = f"the agent closed the connection ({said})"
    if error.rcvd.code == CloseCode.MESSAGE_TOO_BIG and error.rcvd_then_sent:
        problem = f"the agent's server takes no observation of this size; raise its limit, max_size ({said})"
    kind = Departed if error.rcvd.code in GOOD_ORDER else AgentFault
    return kind(WireFault.DISCONNECTED, problem)
