"""The evaluator's end of a ZeroMQ REQ socket, with the methods and the faults of `connection.Connection`.

This is the wire protocol ZMTP 3 without encryption, on a plain socket. With libzmq, an agent that sent a
message without end filled the memory, 700 MB in three seconds: libzmq limits the parts of a message, but not
their number. It also hides broken connections and makes new ones by itself.
"""

from __future__ import annotations

import socket
import struct
import time
from urllib.parse import urlsplit

from proctor.agents.connection import MAX_FRAME_BYTES, Connection, no_connection, timed_out
from proctor.agents.messages import AgentGone, WireFault
from proctor.core.addresses import DEFAULT_PORTS
from proctor.core.errors import AgentFault

HANDSHAKE_S = 5.0  # a server's ZeroMQ answers by itself, also while its model is busy
SIGNATURE_BYTES, GREETING_BYTES = 10, 64
GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
MAX_HANDSHAKE_BYTES = 4096


class ZmtpConnection(Connection):
    """An open REQ socket. Make one with `open_zmtp_connection`.

    Deadlines are points of `time.monotonic()`. After a fault the connection must be dropped.
    """

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._reply_bytes = 0

    @property
    def subprotocol(self) -> str | None:
        """None: ZeroMQ has no subprotocols."""
        return None

    def shake_hands(self, deadline_s: float) -> None:
        """Exchange greetings and READY commands; a ValueError if the other side is not a REP socket."""
        self._send(GREETING, deadline_s)
        signature = self._read(SIGNATURE_BYTES, deadline_s)
        if signature[0] != 0xFF or signature[9] != 0x7F:
            raise ValueError("it does not greet as ZeroMQ does")
        rest = self._read(GREETING_BYTES - SIGNATURE_BYTES, deadline_s)
        if rest[0] < 3 or rest[2:22].rstrip(b"\0") != b"NULL":
            raise ValueError("its ZeroMQ is older than version 4, or encrypted")
        ready = b"\x05READY" + _property(b"Socket-Type", b"REQ") + _property(b"Identity", b"")
        self._send(bytes([COMMAND, len(ready)]) + ready, deadline_s)
        flags, command = self._frame(MAX_HANDSHAKE_BYTES, deadline_s)
        if not flags & COMMAND or not command.startswith(b"\x05READY"):
            raise ValueError("it does not complete ZeroMQ's handshake")
        if not any(_property(b"Socket-Type", kind) in command for kind in (b"REP", b"ROUTER")):
            raise ValueError("its socket takes no requests")

    def send(self, frame: str | bytes, deadline_s: float) -> None:
        """Raise AgentFault: a REQ socket sends requests only, by `exchange`."""
        del frame, deadline_s
        raise AgentFault(WireFault.UNASKED, "ZeroMQ servers reply to every message")

    def receive(self, deadline_s: float) -> str | bytes:
        """Raise AgentFault: a REQ socket gets replies only, by `exchange`."""
        del deadline_s
        raise AgentFault(WireFault.ACTION_TIMEOUT, "ZeroMQ servers do not speak first")

    def exchange(self, frame: str | bytes, deadline_s: float) -> bytes:
        """Send a request and wait for the reply."""
        if self.pending() is not None:
            raise AgentFault(WireFault.UNASKED, "the server sent a reply that it had not been asked for")
        body = frame.encode() if isinstance(frame, str) else frame
        self._reply_bytes = 0
        self._send(bytes([MORE, 0, LONG]) + struct.pack(">Q", len(body)) + body, deadline_s)
        flags, delimiter = self._message_frame(0, deadline_s)
        if flags & MORE and not delimiter:
            flags, reply = self._message_frame(MAX_FRAME_BYTES, deadline_s)
            if not flags & MORE:
                return reply
        raise AgentFault(WireFault.MALFORMED, "expected a reply of one part, as to a REQ socket")

    def pending(self) -> str | bytes | None:
        """Return what has arrived without being asked for."""
        self._line.settimeout(0)
        try:
            found = self._line.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return None
        except OSError:
            found = b""
        if not found:
            raise AgentGone(WireFault.DISCONNECTED, "the connection broke")
        return found

    def is_alive(self, deadline_s: float) -> bool:
        """Return whether the connection has not ended."""
        del deadline_s
        try:
            self.pending()
        except AgentGone:
            return False
        return True

    def close(self) -> None:
        """Close the socket."""
        self._line.close()

    def drop(self) -> None:
        """Close the socket."""
        self._line.close()

    def _message_frame(self, max_bytes: int, deadline_s: float) -> tuple[int, bytes]:
        """Return the next frame of a message. Commands, such as pings, are skipped."""
        while True:
            flags, body = self._frame(max(max_bytes, MAX_HANDSHAKE_BYTES), deadline_s)
            if not flags & COMMAND:
                return flags, body

    def _frame(self, max_bytes: int, deadline_s: float) -> tuple[int, bytes]:
        flags, *size = self._read(2, deadline_s)
        length = size[0]
        if flags & LONG:
            (length,) = struct.unpack(">Q", bytes(size) + self._read(7, deadline_s))
        if flags & ~(MORE | LONG | COMMAND):
            raise AgentFault(WireFault.MALFORMED, f"no ZeroMQ frame: flags {flags:#x}")
        if length > max_bytes:
            raise AgentFault(WireFault.TOO_BIG, f"a frame of more than {max_bytes} bytes")
        return flags, self._read(length, deadline_s)

    def _send(self, data: bytes, deadline_s: float) -> None:
        try:
            self._line.settimeout(max(0.001, deadline_s - time.monotonic()))
            self._line.sendall(data)
        except TimeoutError:
            raise timed_out(0, is_sent=False) from None
        except OSError:
            raise AgentGone(WireFault.DISCONNECTED, "the connection broke") from None

    def _read(self, count: int, deadline_s: float) -> bytes:
        found = bytearray()
        while len(found) < count:
            left_s = deadline_s - time.monotonic()
            try:
                if left_s <= 0:
                    raise TimeoutError
                self._line.settimeout(left_s)
                more = self._line.recv(min(count - len(found), 1 << 16))
            except TimeoutError:
                raise timed_out(self._reply_bytes, is_sent=True) from None
            except OSError:
                more = b""
            if not more:
                raise AgentGone(WireFault.DISCONNECTED, "the connection broke")
            self._reply_bytes += len(more)
            found += more
        return bytes(found)


def open_zmtp_connection(url: str, deadline_s: float) -> ZmtpConnection:
    """Connect once, or raise AgentFault."""
    parts = urlsplit(url)
    place = (parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme])
    try:
        line = socket.create_connection(place, timeout=max(0.001, deadline_s - time.monotonic()))
    except OSError as error:
        raise no_connection(url, error) from None
    connection = ZmtpConnection(line)
    try:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.shake_hands(min(deadline_s, time.monotonic() + HANDSHAKE_S))
    except (AgentFault, ValueError) as error:
        connection.close()
        problem = f"{url} is not a server for ZeroMQ requests ({error})"
        hint = "the address of a WebSocket server begins with ws://"
        raise AgentFault(WireFault.MISMATCH, f"{problem}: {hint}") from None
    except BaseException:
        connection.close()
        raise
    return connection


def _property(name: bytes, value: bytes) -> bytes:
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
