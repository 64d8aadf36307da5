"""The evaluator's end of a WebSocket: blocking calls, each with a deadline.

The sockets of a process live in one thread of their own, which answers pings and takes in frames also
while the evaluator is busy with its world. A deadline covers the whole of a call, sending included: an
agent that does not read, or that sends a byte now and then, cannot hold it up.
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
from websockets.protocol import Event, State
from websockets.typing import Subprotocol

from proctor.core.errors import AgentFault, EvaluatorError
from proctor.protocol.faults import WireFault

Result = TypeVar("Result")
MAX_FRAME_BYTES = 1 << 20
"""For what an agent sends: an action is small, even a chunk of them."""
MAX_WAITING_FRAMES = 4
CLOSE_TIMEOUT_S = 1.0
PIECE_BYTES = 256 << 10
MAX_UNSENT_BYTES = 64 << 20
"""For an agent that sends pings and does not read the answers."""
LOADING = (502, 503, 504)
"""HTTP statuses of a server that is not ready yet."""
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""Errors of this machine, which has no socket left."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LOG = logging.getLogger(__name__)
LOG.setLevel(logging.INFO)  # at DEBUG, websockets writes down headers, and with them tokens


class Connection:
    """An open WebSocket. Make one with `open_connection`.

    Deadlines are points of `time.monotonic()`. After a fault the connection must be dropped: a reply that
    comes too late has then nowhere to arrive.
    """

    def __init__(self, socket: _Socket) -> None:
        self._socket = socket
        self.frames_sent = 0
        """How many frames have been given to it to send."""
        self.frames_received = 0
        # One that nobody holds any more is cut, whatever happened to its holder.
        weakref.finalize(self, _cut, socket).atexit = False

    @property
    def subprotocol(self) -> str | None:
        """What the agent chose of what was offered."""
        return self._socket.subprotocol

    def send(self, frame: str | bytes, deadline_s: float) -> None:
        """Send a frame.

        Raises:
            AgentFault: The agent is gone, or does not read.
        """
        self.frames_sent += 1
        _run(self._socket.talk(frame, deadline_s, reply=False))

    def receive(self, deadline_s: float) -> str | bytes:
        """Wait for the next frame.

        Raises:
            AgentFault: None came in time, it is too big, or the agent is gone.
        """
        frame: str | bytes = _run(self._socket.talk(None, deadline_s, reply=True))
        self.frames_received += 1
        return frame

    def exchange(self, frame: str | bytes, deadline_s: float) -> str | bytes:
        """Send a frame and wait for the next one.

        Raises:
            AgentFault: As for `send` and `receive`.
        """
        self.frames_sent += 1
        reply: str | bytes = _run(self._socket.talk(frame, deadline_s, reply=True))
        self.frames_received += 1
        return reply

    def pending(self) -> str | bytes | None:
        """Return the next frame if it has come already.

        Raises:
            AgentFault: The agent is gone.
        """
        if self._socket.is_open and self._socket.messages_in == self.frames_received:
            return None  # known without a word to the other thread, which would cost a tenth of a step
        frame = _run(self._socket.pending())
        self.frames_received += frame is not None
        return frame

    def is_alive(self, deadline_s: float) -> bool:
        """Tell whether the other side still answers a ping."""
        return _run(self._socket.is_alive(deadline_s))

    def close(self) -> None:
        """Close it in good order if the other side cooperates within a second."""
        _run(self._socket.hang_up())

    def drop(self) -> None:
        """Cut the line, without a word."""
        _cut(self._socket)


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
        AgentFault: Nobody is there yet (`agent_unreachable`), or it is no WebSocket server that would
            have us (`protocol_mismatch`).
        EvaluatorError: This machine has no socket left, or a proxy that cannot be used.
    """
    options: dict[str, Any] = {"ssl": tls} if tls is not None else {}
    if urlsplit(url).hostname in LOOPBACK:
        options["proxy"] = None  # the proxy of the network has another localhost
    return Connection(_run(_open(url, deadline_s, subprotocols, headers or {}, options)))


class _Socket(ClientConnection):
    """A WebSocket that knows how much has come."""

    reply_bytes = 0
    messages_in = 0
    """Whole ones, read or not."""

    @property
    def is_open(self) -> bool:
        """Whether neither side has begun to close it."""
        return self.state is State.OPEN

    def data_received(self, data: bytes) -> None:
        """Count what comes in."""
        self.reply_bytes += len(data)
        super().data_received(data)

    def process_event(self, event: Event) -> None:
        """Count messages, and leave pings and pongs out of the bytes."""
        super().process_event(event)
        if not isinstance(event, Frame):
            return
        if event.opcode in (Opcode.PING, Opcode.PONG):
            self.reply_bytes -= 2 + len(event.data)
            if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
                self.transport.abort()
        elif event.opcode is not Opcode.CLOSE:
            self.messages_in += event.fin

    async def talk(self, frame: str | bytes | None, deadline_s: float, *, reply: bool) -> Any:
        """Send, receive, or both, by a deadline."""
        before, is_sent = self.reply_bytes, False
        try:
            async with asyncio.timeout(deadline_s - time.monotonic()):
                if frame is not None:
                    await self.send(_pieces(frame))
                is_sent = True
                return await self.recv() if reply else None
        except TimeoutError:
            protocol = self.protocol
            if protocol.close_sent or protocol.close_rcvd:  # it is ending, but the other side takes its time
                ending = (protocol.close_rcvd, protocol.close_sent, protocol.close_rcvd_then_sent)
                raise _gone(ConnectionClosedError(*ending)) from None
            raise _late(self.reply_bytes - before, is_sent=is_sent) from None
        except ConnectionClosed as error:
            raise _gone(error) from None

    async def pending(self) -> str | bytes | None:
        """Return a frame that has come already."""
        try:
            async with asyncio.timeout(0):
                return await self.recv()
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise _gone(error) from None

    async def is_alive(self, deadline_s: float) -> bool:
        """Ping."""
        try:
            async with asyncio.timeout(deadline_s - time.monotonic()):
                await (await self.ping())
        except (TimeoutError, ConnectionClosed):
            return False
        return True

    async def hang_up(self) -> None:
        """Close, and cut the line if that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * CLOSE_TIMEOUT_S):
                await self.close()
        self.transport.abort()


class _Connect(connect):
    """Connects to the address that was given, and to no other that its server names."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Follow no redirect."""
        return exc


async def _open(
    url: str,
    deadline_s: float,
    subprotocols: tuple[str, ...],
    headers: dict[str, str],
    options: dict[str, Any],
) -> _Socket:
    try:
        async with asyncio.timeout(deadline_s - time.monotonic()):
            opened = await _Connect(
                url,
                create_connection=_Socket,
                subprotocols=[Subprotocol(name) for name in subprotocols] or None,
                additional_headers=headers,
                compression=None,  # the network is faster than deflate
                max_size=MAX_FRAME_BYTES,
                max_queue=MAX_WAITING_FRAMES,
                ping_interval=None,  # an agent may think for longer than a ping may take; deadlines are ours
                open_timeout=None,
                close_timeout=CLOSE_TIMEOUT_S,
                logger=LOG,
                **options,
            )
    except InvalidHandshake as error:
        raise _no_handshake(url, error) from None
    except (InvalidProxy, ImportError) as error:  # its address, which may hold a password, is not quoted
        raise EvaluatorError(f"{url}: the proxy of this machine cannot be used: {error.msg}") from None
    except OSError as error:
        raise _no_line(url, error) from None
    if not isinstance(opened, _Socket):
        raise TypeError("websockets ignored create_connection")
    return opened


def _pieces(frame: str | bytes) -> str | bytes | list[memoryview]:
    """Cut a big frame into fragments, so that the agent takes in one while the next is on its way."""
    if isinstance(frame, str) or len(frame) <= PIECE_BYTES:
        return frame
    whole = memoryview(frame)
    return [whole[at : at + PIECE_BYTES] for at in range(0, len(frame), PIECE_BYTES)]


def _turned_away(url: str) -> AgentFault:
    other = "ws://, which is without TLS" if url.startswith("wss:") else "wss://, which is with TLS"
    problem = f"{url} closed the connection at once: it is not ready yet, or a server for {other}"
    return AgentFault(WireFault.UNREACHABLE, problem)


def _no_handshake(url: str, error: InvalidHandshake) -> AgentFault:
    if isinstance(error, InvalidStatus):
        return _refused(url, error.response.status_code)
    if isinstance(error, ProxyError):
        return AgentFault(WireFault.UNREACHABLE, f"{url} is not reached through the proxy: {error}")
    if isinstance(error.__cause__, EOFError):  # as a port does whose server is not up yet
        return _turned_away(url)
    problem = f"{url} is no WebSocket server, or not one for agents: {error}"
    return AgentFault(WireFault.MISMATCH, problem)


def _refused(url: str, status: int) -> AgentFault:
    if status in LOADING:
        return AgentFault(WireFault.UNREACHABLE, f"{url} is not ready (HTTP status {status})")
    if status in (401, 403):
        return AgentFault(WireFault.MISMATCH, f"{url} wants another token (HTTP status {status})")
    return AgentFault(
        WireFault.MISMATCH, f"{url} is an HTTP server, but has no WebSocket there (status {status})"
    )


def _no_line(url: str, error: OSError) -> AgentFault | EvaluatorError:
    """Tell why there is no connection: TLS and deadlines fail with kinds of OSError, too."""
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = f"{url}: its certificate is not trusted here: {error.verify_message}"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, ssl.SSLError):
        problem = f"{url}: no TLS with this server ({error.reason or error}); ws:// is without TLS"
        return AgentFault(WireFault.MISMATCH, problem)
    if isinstance(error, TimeoutError):
        return AgentFault(WireFault.UNREACHABLE, f"{url} did not answer in time")
    if isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError):
        return _turned_away(url)
    if error.errno in OUT_OF_RESOURCES:
        return EvaluatorError(f"no socket for a connection to {url}: {_reason(error)}")
    return AgentFault(WireFault.UNREACHABLE, f"nobody answers at {url}: {_reason(error)}")


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or "no connection to any address of this host"
    return os.strerror(error.errno)


def _late(reply_bytes: int, *, is_sent: bool) -> AgentFault:
    if not is_sent:
        return AgentFault(WireFault.ACTION_TIMEOUT, "the agent did not read what it was sent in time")
    if reply_bytes > 0:
        return AgentFault(
            WireFault.SLOW_REPLY, f"{reply_bytes} bytes of a reply came in time, but not its end"
        )
    return AgentFault(WireFault.ACTION_TIMEOUT, "no reply in time")


def _gone(error: ConnectionClosed) -> AgentFault:
    """Tell why a connection ended, from the codes that were sent and received."""
    if error.sent is not None and not error.rcvd_then_sent:
        if error.sent.code == CloseCode.MESSAGE_TOO_BIG:
            return AgentFault(WireFault.TOO_BIG, f"a frame of more than {MAX_FRAME_BYTES} bytes")
        if error.sent.code in (CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA):
            return AgentFault(
                WireFault.MALFORMED, f"no WebSocket frame: {error.sent.reason or error.sent.code}"
            )
    if error.rcvd is None:
        return AgentFault(WireFault.DISCONNECTED, "the connection broke")
    said = f"{error.rcvd.code} {error.rcvd.reason}".strip()
    if error.rcvd.code == CloseCode.INTERNAL_ERROR:
        return AgentFault(WireFault.AGENT_ERROR, f"the agent failed and closed the connection ({said})")
    if error.rcvd.code == CloseCode.MESSAGE_TOO_BIG and error.rcvd_then_sent:
        problem = f"the agent's server takes no observation of this size; raise its limit, max_size ({said})"
        return AgentFault(WireFault.DISCONNECTED, problem)
    return AgentFault(WireFault.DISCONNECTED, f"the agent closed the connection ({said})")


def _cut(socket: _Socket) -> None:
    # By its own loop: this may run while garbage is collected, when no lock may be waited for.
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
        job.cancel()  # if Ctrl-C came first, nothing may go on that nobody waits for
