"""One client of the agent: bytes in, bytes out, never waiting, and with bounds on everything."""

from __future__ import annotations

import socket
from time import monotonic

from o3de_sim.constants import MAX_FRAME_BYTES, PROTOCOL
from o3de_sim.o3de_api.wire import FrameReader, Message, WireError, encode

READ_BYTES = 256 * 1024
MAX_UNSENT_BYTES = 2 * MAX_FRAME_BYTES
HELLO_S = 5.0  # how long a client may take to say hello
FRAME_S = 10.0  # how long a frame may take to arrive, and an answer to be taken
FAREWELL_S = 1.0  # how long a client that is let go may take to read why
WEB = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")
NOT_WEB = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"This is the agent of an O3DE Editor, which speaks frames of JSON. It is no web server, no policy.\r\n"
)


class Client:
    """A connected client."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a second answer waits for 40 ms
        self.socket = sock
        self.is_known = False  # it has said hello with the right token
        self.is_open = True
        self._reader = FrameReader()
        self._first = b""
        self._unsent = bytearray()
        self._is_leaving = False
        self._deadline: float | None = monotonic() + HELLO_S  # of a hello, or of a frame that has begun
        self._send_deadline: float | None = None

    def receive(self) -> list[Message]:
        """Return the messages that have arrived. After a WireError nothing more can be read."""
        data = self._read()
        if self._is_leaving or not data:
            self._check_deadlines()
            return []
        self._first = (self._first + data[:4])[:4]
        messages = self._reader.feed(data)
        if self.is_known and (messages or not self._reader.is_amid_frame):
            self._deadline = None
        if self.is_known and self._reader.is_amid_frame and self._deadline is None:
            self._deadline = monotonic() + FRAME_S
        if not messages and len(data) < READ_BYTES:  # else there is more of it, which came while nobody read
            self._check_deadlines()
        return messages

    def know(self) -> None:
        """Its token is right: it may stay."""
        self.is_known = True
        self._deadline = monotonic() + FRAME_S if self._reader.is_amid_frame else None

    def send(self, message: Message) -> None:
        """Queue a message, to be sent as the client takes it; WireError if it does not fit a frame."""
        data = encode(message)
        if self.is_open and not self._is_leaving:
            self._put(data)

    def leave(self, message: Message | None = None) -> None:
        """Let the client go, with a last message. The socket stays for a moment, so that it can be read."""
        if self._is_leaving or not self.is_open:
            return
        if message is not None:
            self.send(message)
        self.is_known = False
        self._is_leaving = True
        self._deadline = monotonic() + FAREWELL_S
        self.flush()

    def refuse_bytes(self, error: WireError) -> None:
        """Let a client go that does not speak frames."""
        if self._first in WEB:
            self._put(NOT_WEB)
            self.leave()
            return
        self._give_up(f"{error}. A frame is four bytes of length, most significant first, and a JSON object")

    def flush(self) -> None:
        """Send what the client takes now."""
        if not self.is_open:
            return
        if self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close()
                return
            if sent:
                del self._unsent[:sent]
                self._send_deadline = monotonic() + FRAME_S
        if self._unsent:
            if self._send_deadline is not None and monotonic() > self._send_deadline:
                self.close()
        elif self._is_leaving:
            self._end_sending()

    def close(self) -> None:
        """Close the socket."""
        self.is_open = False
        self.socket.close()

    def _give_up(self, problem: str) -> None:
        error = {"code": "bad_request", "message": problem}
        self.leave({"v": PROTOCOL, "id": None, "ok": False, "error": error})

    def _put(self, data: bytes) -> None:
        if len(self._unsent) + len(data) > MAX_UNSENT_BYTES:
            self.close()  # it asks, and does not read the answers
            return
        if not self._unsent:
            self._send_deadline = monotonic() + FRAME_S
        self._unsent += data

    def _read(self) -> bytes:
        data = self._read_once()
        if 0 < len(data) < READ_BYTES:
            data += self._read_once()  # by which a client that has sent its last and left is noticed now
        return data

    def _read_once(self) -> bytes:
        try:
            data = self.socket.recv(READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError:
            self.close()
            return b""
        if not data:
            self.close()
        return data

    def _check_deadlines(self) -> None:
        if self.is_open and self._deadline is not None and monotonic() > self._deadline:
            if self._is_leaving:
                self.close()
            else:
                self._give_up("nothing complete has come for too long: say hello, and send whole frames")

    def _end_sending(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
