"""The evaluator's end of a WebSocket: blocking calls, each with a deadline.

The sockets of a process live in one thread of their own, which answers pings and takes in frames also
while the evaluator is busy with its world. A deadline covers the whole of a call, sending included: an
agent that does not read, or that sends a byte now and then, cannot hold it up.
"""

from __future__ import annotations

import asyncio
import logging
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
)
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.typing import Subprotocol

from proctor.agents.connection_faults import MAX_FRAME_BYTES, gone, late, no_handshake, no_line
from proctor.core.errors import EvaluatorError

Result = TypeVar("Result")
MAX_WAITING_FRAMES = 4
CLOSE_TIMEOUT_S = 1.0
PIECE_BYTES = 256 << 10
MAX_UNSENT_BYTES = 64 << 20
"""For an agent that sends pings and does not read the answers."""
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
                raise gone(ConnectionClosedError(*ending)) from None
            raise late(self.reply_bytes - before, is_sent=is_sent) from None
        except ConnectionClosed as error:
            raise gone(error) from None

    async def pending(self) -> str | bytes | None:
        """Return a frame that has come already."""
        try:
            async with asyncio.timeout(0):
                return await self.recv()
        except TimeoutError:
            return None
        except ConnectionClosed as error:
            raise gone(error) from None

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
        raise no_handshake(url, error) from None
    except (InvalidProxy, ImportError) as error:  # its address, which may hold a password, is not quoted
        raise EvaluatorError(f"{url}: the proxy of this machine cannot be used: {error.msg}") from None
    except OSError as error:
        raise no_line(url, error) from None
    if not isinstance(opened, _Socket):
        raise TypeError("websockets ignored create_connection")
    return opened


def _pieces(frame: str | bytes) -> str | bytes | list[memoryview]:
    """Cut a big frame into fragments, so that the agent takes in one while the next is on its way."""
    if isinstance(frame, str) or len(frame) <= PIECE_BYTES:
        return frame
    whole = memoryview(frame)
    return [whole[at : at + PIECE_BYTES] for at in range(0, len(frame), PIECE_BYTES)]


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
