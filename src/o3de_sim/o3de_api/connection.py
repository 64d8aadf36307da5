"""One TCP connection that carries frames."""

from __future__ import annotations

import select
import socket
import time

from o3de_sim.o3de_api.wire import FrameReader, Message, encode

CHUNK_BYTES = 65536


class WebServerFound(Exception):
    """What answered speaks HTTP."""


class Connection:
    """A connection that has been made. All waiting is up to a moment of `time.monotonic`.

    Args:
        connected: The socket, which is the connection's from now on.
    """

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._reader = FrameReader()
        self._waiting: list[Message] = []
        self._has_heard = False

    def is_stale(self) -> bool:
        """Return whether the other end has closed, or said something that nobody asked for."""
        return (
            bool(self._waiting)
            or self._reader.is_amid_frame
            or bool(select.select([self._socket], [], [], 0)[0])
        )

    def send(self, message: Message, ends: float) -> None:
        """Send a message.

        Raises:
            WireError: It cannot be written as a frame; nothing was sent.
            OSError: The connection broke, or the time is over (TimeoutError).
        """
        frame = encode(message)
        self._wait_until(ends)
        self._socket.sendall(frame)

    def receive(self, ends: float) -> Message:
        """Wait for a message.

        Raises:
            WebServerFound: What came is HTTP.
            WireError: What came is no frame.
            OSError: The connection broke or ended, or the time is over (TimeoutError).
        """
        while not self._waiting:
            self._wait_until(ends)
            data = self._socket.recv(CHUNK_BYTES)
            if not data:
                raise ConnectionResetError("the other end closed the connection")
            if not self._has_heard and data.startswith(b"HTTP"[: len(data)]):
                raise WebServerFound
            self._has_heard = True
            self._waiting += self._reader.feed(data)
        return self._waiting.pop(0)

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def _wait_until(self, ends: float) -> None:
        remaining_s = ends - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_s)


def speaks_http(address: tuple[str, int], timeout_s: float) -> bool:
    """Return whether a request for a page is answered as web servers do. The agent answers otherwise."""
    try:
        with socket.create_connection(address, timeout_s) as probe:
            probe.sendall(b"GET / HTTP/1.1\r\nHost: o3de\r\nConnection: close\r\n\r\n")
            answer = probe.recv(CHUNK_BYTES)
    except OSError:
        return False
    return answer.startswith(b"HTTP") and b"O3DE" not in answer
