"""The evaluator's end of a WebSocket: blocking calls, each with a deadline that covers sending, too.

The sockets of a process live in the event loop of one thread, which answers pings and receives frames while
the evaluator is busy with its world. `websockets.sync` would need no loop, but its `send` takes no deadline:
to an agent that sends pings and does not read the answers, `send` had not returned after 15 s when it was
tried (version 17.4), because the thread that receives holds the lock while it writes a pong.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    ConnectionClosedError,
    InvalidHandshake,
    InvalidProxy,
    InvalidStatus,
    ProxyError,
)
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import Event, State
from websockets.typing import Subprotocol

from proctor.agents.messages import AgentGone, WireFault
from proctor.core.addresses import TOKEN_VARIABLE
from proctor.core.errors import AgentFault, AgentUnavailable, EvaluatorError, is_busy_status

Result = TypeVar("Result")
CLOSE_TIMEOUT_S = 1.0
FRAGMENT_BYTES = 256 << 10
MAX_UNSENT_BYTES = 64 << 20  # for an agent that sends pings and does not read the answers
LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)  # at DEBUG, websockets logs headers, and with them tokens
MAX_FRAME_BYTES = 1 << 20  # of what an agent sends: an action is small, even a chunk of them
BUSY_CODES = (CloseCode.SERVICE_RESTART, CloseCode.TRY_AGAIN_LATER)
"""Close codes of a server that cannot serve at present."""
ORDERLY_CODES = (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY, CloseCode.NO_STATUS_RCVD)
"""Close codes of a server that ends; the others report a problem."""
MAX_QUOTE_CHARS = 200
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of this machine, not of the agent's."""


class Connection:
    """An open WebSocket. Make one with `open_connection`.

    Deadlines are points of `time.monotonic()`. All methods raise AgentFault if the agent is late, gone, or
    sends too much. After a fault the connection must be dropped, so that a late reply cannot arrive.
    """

    def __init__(self, socket: _Socket) -> None:
        self._socket = socket
        # A connection that nobody holds any more is cut, whatever happened to its holder.
        weakref.finalize(self, _abort, socket).atexit = False

    @property
    def subprotocol(self) -> str | None:
        """The subprotocol that the agent chose of those offered."""
        return self._socket.subprotocol

    def send(self, frame: str | bytes, deadline_s: float) -> None:
        """Send a frame."""
        _run(self._socket.talk(frame, deadline_s, reply=False))

    def receive(self, deadline_s: float) -> str | bytes:
        """Wait for the next frame."""
        frame: str | bytes = _run(self._socket.talk(None, deadline_s, reply=True))
        return frame

    def exchange(self, frame: str | bytes, deadline_s: float) -> str | bytes:
        """Send a frame and wait for the next one."""
        reply: str | bytes = _run(self._socket.talk(frame, deadline_s, reply=True))
        return reply

    def pending(self) -> str | bytes | None:
        """Return the next frame if it has arrived already."""
        if self._socket.state is State.OPEN and not self._socket.unread_messages:
            return None  # a call into the other thread would cost a tenth of a step
        return _run(self._socket.pending())

    def is_alive(self, deadline_s: float) -> bool:
        """Return whether the other side answers a ping."""
        return _run(self._socket.is_alive(deadline_s))

    def close(self) -> None:
        """Close with the closing handshake if the other side cooperates within a second."""
        _run(self._socket.close_or_abort())

    def drop(self) -> None:
        """Cut the connection without a closing handshake."""
        _abort(self._socket)


def open_connection(
    url: str,
    deadline_s: float,
    *,
    subprotocols: tuple[str, ...] = (),
    headers: dict[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Connection:
    """Connect once.

    Raises:
        AgentFault: Nothing listens there yet (`agent_unreachable`), or it is not a WebSocket server that
            accepts us (`protocol_mismatch`).
        EvaluatorError: This machine has no socket left, or a proxy that cannot be used.
    """
    options: dict[str, Any] = {"ssl": tls} if tls is not None else {}
    if urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1"):
        options["proxy"] = None  # the proxy of the network has another localhost
    if subprotocols:
        options["subprotocols"] = [Subprotocol(name) for name in subprotocols]
    return Connection(_run(_open(url, deadline_s, additional_headers=headers or {}, **options)))


class _Socket(ClientConnection):
    """A WebSocket that counts the bytes and messages that have arrived."""

    reply_bytes = 0  # without pings and pongs
    unread_messages = 0

    def data_received(self, data: bytes) -> None:
        if not self.reply_bytes and data.startswith(b"\xff"):  # ZeroMQ's greeting, which has no end of line
            self.transport.abort()
        self.reply_bytes += len(data)
        super().data_received(data)

    def process_event(self, event: Event) -> None:
        super().process_event(event)
        if not isinstance(event, Frame):
            return
        if event.opcode in (Opcode.PING, Opcode.PONG):
            self.reply_bytes -= 2 + len(event.data)
            if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
                self.transport.abort()
        elif event.opcode is not Opcode.CLOSE:
            self.unread_messages += event.fin

    async def talk(self, frame: str | bytes | None, deadline_s: float, *, reply: bool) -> Any:
        """Send, receive, or both, by a deadline."""
        before, is_sent = self.reply_bytes, False
        try:
            async with asyncio.timeout(deadline_s - time.monotonic()):
                if frame is not None:
                    await self.send(_fragments(frame))
                is_sent = True
                return await self._next_message() if reply else None
        except TimeoutError:
            protocol = self.protocol
            if protocol.close_sent or protocol.close_rcvd:  # it is closing, but the other side takes its time
                ending = (protocol.close_rcvd, protocol.close_sent, protocol.close_rcvd_then_sent)
                raise closed(ConnectionClosedError(*ending)) from None
            raise timed_out(self.reply_bytes - before, is_sent=is_sent) from None
        except ConnectionClosed as error:
            raise closed(error) from None

    async def pending(self) -> str | bytes | None:
        try:
            async with asyncio.timeout(0):
                return await self._next_message()
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise closed(error) from None

    async def is_alive(self, deadline_s: float) -> bool:
        try:
            async with asyncio.timeout(deadline_s - time.monotonic()):
                await (await self.ping())
        except (TimeoutError, ConnectionClosed):
            return False
        return True

    async def close_or_abort(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
                await self.close()
        self.transport.abort()

    async def _next_message(self) -> str | bytes:
        message: str | bytes = await self.recv()
        self.unread_messages -= 1
        return message


class _Connect(connect):
    """Connects to the given address only: redirects are not followed."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def _open(url: str, deadline_s: float, **options: Any) -> _Socket:
    try:
        async with asyncio.timeout(deadline_s - time.monotonic()):
            opened = await _Connect(
                url,
                create_connection=_Socket,
                compression=None,  # the network is faster than deflate
                max_size=MAX_FRAME_BYTES,
                max_queue=4,
                ping_interval=None,  # an agent may think for longer than a ping may take; deadlines are ours
                open_timeout=None,
                close_timeout=CLOSE_TIMEOUT_S,
                logger=LOG,
                **options,
            )
    except InvalidHandshake as error:
        raise no_handshake(url, error) from None
    except (InvalidProxy, ImportError) as error:  # its address, which may hold a password, is not quoted
        raise EvaluatorError(f"{url}: the proxy of this machine cannot be used: {error.msg}") from None
    except OSError as error:
        raise no_connection(url, error) from None
    if not isinstance(opened, _Socket):
        raise TypeError("websockets ignored create_connection")
    return opened


def _fragments(frame: str | bytes) -> str | bytes | list[memoryview]:
    """Cut a big frame into fragments, so that the agent reads one while the next is on its way."""
    if isinstance(frame, str) or len(frame) <= FRAGMENT_BYTES:
        return frame
    whole = memoryview(frame)
    return [whole[at : at + FRAGMENT_BYTES] for at in range(0, len(frame), FRAGMENT_BYTES)]


def _abort(socket: _Socket) -> None:
    # In its own loop: this may run during garbage collection, when no lock may be waited for.
    socket.loop.call_soon_threadsafe(socket.transport.abort)


_STARTING = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop of the thread that all connections of this process live in."""
    with _STARTING:  # `cache` alone would let two callers start one each
        return _started_loop()


@cache
def _started_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="connections", daemon=True).start()
    return loop


def _run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    job = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        return job.result()
    finally:
        job.cancel()  # after Ctrl-C, nothing may go on that nobody waits for


def no_handshake(url: str, error: InvalidHandshake) -> AgentFault:
    """Return why a server that answered did not open a WebSocket."""
    if isinstance(error, InvalidStatus):
        return _refused(url, error.response)
    if isinstance(error, ProxyError):
        return _unreachable(f"{url} is not reached through the proxy: {error}")
    if isinstance(error.__cause__, EOFError):  # as a port does whose server is not up yet
        return _closed_at_once(url)
    problem = f"{url} is not a WebSocket server, or not one for agents: {error}"
    return AgentFault(WireFault.MISMATCH, problem)


def _refused(url: str, response: Response) -> AgentFault:
    status = response.status_code
    if is_busy_status(status):
        return _unreachable(f"{url} is not ready, or overloaded (HTTP status {status})")
    if status in (401, 403):
        problem = f"{url} wants a token, or another one (HTTP status {status}): see {TOKEN_VARIABLE}"
        return AgentFault(WireFault.MISMATCH, problem)
    said = (response.body or b"").decode(errors="replace").strip()
    is_plain = 0 < len(said) <= MAX_QUOTE_CHARS and said.isprintable()  # a page is not worth showing
    return AgentFault(
        WireFault.MISMATCH,
        f"{url} is an HTTP server, but has no WebSocket there (status {status})"
        + (f": {said}" if is_plain else ""),
    )


def no_connection(url: str, error: OSError) -> AgentFault | EvaluatorError:
    """Return why there is no connection. TLS and deadlines fail with kinds of OSError, too."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = f"{url}: its certificate is not trusted here ({error.verify_message}): see ca_file"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, ssl.SSLError):
        problem = f"{url}: no TLS with this server ({error.reason or error}); ws:// is without TLS"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, TimeoutError):
        return _unreachable(f"{url} did not answer in time")
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return _closed_at_once(url)
    if error.errno in OUT_OF_RESOURCES:
        return EvaluatorError(f"no socket for a connection to {url}: {_reason(error)}")
    return _unreachable(f"nobody answers at {url}: {_reason(error)}")


def _closed_at_once(url: str) -> AgentFault:
    other = "ws://, which is without TLS" if url.startswith("wss:") else "wss://, which is with TLS"
    problem = f"{url} closed the connection at once: it is not ready yet, or a server for {other}"
    return _unreachable(problem)


def _unreachable(problem: str) -> AgentUnavailable:
    return AgentUnavailable(problem, kind=WireFault.UNREACHABLE)


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or "no connection to any address of this host"
    return os.strerror(error.errno)


def timed_out(reply_bytes: int, *, is_sent: bool) -> AgentFault:
    """Return what had not happened by the deadline."""
    if not is_sent:
        return AgentFault(WireFault.ACTION_TIMEOUT, "the agent did not read what it was sent in time")
    if reply_bytes > 0:
        return AgentFault(
            WireFault.SLOW_REPLY, f"{reply_bytes} bytes of a reply came in time, but not its end"
        )
    return AgentFault(WireFault.ACTION_TIMEOUT, "no reply in time")


def closed(error: ConnectionClosed) -> AgentFault:
    """Return why a connection ended, from the codes that were sent and received."""
    if error.sent is not None and not error.rcvd_then_sent:
        if error.sent.code == CloseCode.MESSAGE_TOO_BIG:
            return AgentFault(WireFault.TOO_BIG, f"a frame of more than {MAX_FRAME_BYTES} bytes")
        if error.sent.code in (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA):
            return AgentFault(
                WireFault.MALFORMED, f"no WebSocket frame: {error.sent.reason or error.sent.code}"
            )
    if error.rcvd is None:
        return AgentGone(WireFault.DISCONNECTED, "the connection broke")
    said = f"{error.rcvd.code} {error.rcvd.reason}".strip()
    if error.rcvd.code in BUSY_CODES:
        problem = f"the agent takes nothing at present and closed the connection ({said})"
        return AgentUnavailable(problem, kind=WireFault.UNAVAILABLE)
    if error.rcvd.code == CloseCode.INTERNAL_ERROR:
        return AgentFault(WireFault.AGENT_ERROR, f"the agent failed and closed the connection ({said})")
    problem = f"the agent closed the connection ({said})"
    if error.rcvd.code == CloseCode.MESSAGE_TOO_BIG and error.rcvd_then_sent:
        problem = f"the agent's server takes no observation of this size; raise its limit, max_size ({said})"
    kind = AgentGone if error.rcvd.code in ORDERLY_CODES else AgentFault
    return kind(WireFault.DISCONNECTED, problem)
